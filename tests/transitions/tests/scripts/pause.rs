//! `pause`: stops and restarts the claims of a queue.

use optimus_core::broker::Refusal;

use crate::{
    acts::{Grants, done, refusal},
    bench::Bench,
    jobs::jobs,
};

async fn nothing_is_claimed_from_a_paused_queue(bench: Bench) {
    let tasks = jobs(2);
    bench.submit(0, &tasks).await;
    let worker = bench.worker(0, "w").await;
    let before = bench.dump().await;
    bench.at(0).pause(&bench.queue).await.unwrap();
    assert_eq!(bench.changes(&before).await, ["meta", "paused"]);
    assert!(bench.now().counts(&bench.queue).await.unwrap().paused);

    let before = bench.dump().await;
    let answer = bench.at(1).claim(&bench.queue, &worker, 1, 1).await;
    assert_eq!(refusal(answer), Refusal::Paused);
    bench.assert_unchanged(&before).await;

    bench.at(2).resume(&bench.queue).await.unwrap();
    assert!(!bench.now().counts(&bench.queue).await.unwrap().paused);
    assert_eq!(bench.claim(3, &worker, 1, 1).await.ids(), [tasks[0].id().clone()]);
}

async fn a_worker_ends_what_it_holds_when_the_queue_is_paused(bench: Bench) {
    bench.submit(0, &jobs(2)).await;
    let worker = bench.worker(0, "w").await;
    let claimed = bench.claim(0, &worker, 1, 1).await;
    bench.at(0).pause(&bench.queue).await.unwrap();
    assert_eq!(bench.claim(0, &worker, 1, 1).await.ids(), claimed.ids(), "the repeat of an answer");
    assert!(bench.complete(0, &[done(&claimed.leases(&worker)[0])]).await.is_empty());
}

async fn a_paused_queue_accepts_submits(bench: Bench) {
    bench.at(0).pause(&bench.queue).await.unwrap();
    bench.submit(0, &jobs(3)).await;
    assert_eq!(bench.now().counts(&bench.queue).await.unwrap().ready, 3);
}

async fn the_end_of_a_pause_adds_a_wakeup(bench: Bench) {
    bench.at(0).pause(&bench.queue).await.unwrap();
    bench.submit(0, &jobs(1)).await;
    bench.answer_wakeup().await;
    assert!(!bench.answer_wakeup().await);
    for _ in 0..2 {
        bench.at(0).resume(&bench.queue).await.unwrap();
    }
    assert!(bench.answer_wakeup().await);
    assert!(!bench.answer_wakeup().await, "at most one token");
}

async fn the_pause_of_a_queue_that_nobody_knows_leaves_no_key(bench: Bench) {
    let before = bench.dump().await;
    bench.at(0).pause(&bench.queue).await.unwrap();
    bench.at(0).resume(&bench.queue).await.unwrap();
    bench.assert_unchanged(&before).await;
}

async fn the_pause_of_an_unused_queue_reports_that(bench: Bench) {
    for _ in 0..2 {
        assert!(!bench.at(0).pause(&bench.queue).await.unwrap());
    }
    assert!(!bench.at(0).resume(&bench.queue).await.unwrap());
    bench.submit(0, &jobs(1)).await;
    assert!(bench.at(0).pause(&bench.queue).await.unwrap(), "a task was submitted");
    bench.at(0).resume(&bench.queue).await.unwrap();
    let worker = bench.worker(0, "w").await;
    let claimed = bench.claim(0, &worker, 1, 1).await;
    assert!(bench.complete(0, &[done(&claimed.leases(&worker)[0])]).await.is_empty());
    assert!(bench.at(1).pause(&bench.queue).await.unwrap(), "the task has succeeded since then");
}

async fn a_registered_worker_makes_a_queue_known(bench: Bench) {
    bench.worker(0, "w").await;
    assert!(bench.at(0).pause(&bench.queue).await.unwrap());
}

async fn pausing_twice_is_not_an_error(bench: Bench) {
    for _ in 0..2 {
        bench.at(0).pause(&bench.queue).await.unwrap();
    }
    bench.at(0).resume(&bench.queue).await.unwrap();
    assert!(!bench.now().counts(&bench.queue).await.unwrap().paused);
}

on_both![
    nothing_is_claimed_from_a_paused_queue,
    a_worker_ends_what_it_holds_when_the_queue_is_paused,
    a_paused_queue_accepts_submits,
    the_end_of_a_pause_adds_a_wakeup,
    the_pause_of_a_queue_that_nobody_knows_leaves_no_key,
    the_pause_of_an_unused_queue_reports_that,
    a_registered_worker_makes_a_queue_known,
    pausing_twice_is_not_an_error,
];
