//! `leave`: a worker of the queue → ∅.

use optimus_core::{Due, WorkerId};

use crate::{
    acts::{done, ms},
    bench::Bench,
    jobs::{job, jobs},
};

async fn a_worker_that_holds_nothing_is_forgotten(bench: Bench) {
    bench.submit(0, &jobs(1)).await;
    let worker = bench.worker(0, "w").await;
    bench.worker(0, "other").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.complete(0, &[done(&lease)]).await.is_empty());
    let before = bench.dump().await;
    assert_eq!(bench.at(0).leave(&bench.queue, &worker).await.unwrap(), 0);
    assert_eq!(bench.changes(&before).await, ["worker:w", "workers", "working:w"]);
    assert_eq!(bench.score("workers", "w").await, None);
    assert!(bench.score("workers", "other").await.is_some());
}

async fn a_worker_that_holds_something_stays(bench: Bench) {
    bench.submit(0, &jobs(3)).await;
    let worker = bench.worker(0, "w").await;
    bench.claim(0, &worker, 1, 2).await;
    let before = bench.dump().await;
    assert_eq!(bench.at(0).leave(&bench.queue, &worker).await.unwrap(), 2);
    bench.assert_unchanged(&before).await;
}

async fn a_leaving_worker_passes_its_wait_for_a_due_time_on(bench: Bench) {
    bench.add(0, job().due(Due::In(ms(9_000)))).await;
    let [timer, other] = [bench.worker(0, "timer").await, bench.worker(0, "other").await];
    assert!(bench.claim(0, &timer, 1, 1).await.grants.is_empty());
    bench.answer_wakeup().await;
    assert_eq!(bench.at(1).leave(&bench.queue, &other).await.unwrap(), 0);
    assert!(!bench.answer_wakeup().await);
    assert!(bench.field("meta", "timer").await.is_some());
    assert_eq!(bench.at(1).leave(&bench.queue, &timer).await.unwrap(), 0);
    assert_eq!(bench.field("meta", "timer").await, None);
    assert!(bench.answer_wakeup().await, "for another");
}

async fn leaving_twice_is_not_an_error(bench: Bench) {
    let stranger = WorkerId::from_stored("stranger");
    assert_eq!(bench.at(0).leave(&bench.queue, &stranger).await.unwrap(), 0);
    assert!(bench.names().await.is_empty());
}

on_both![
    a_worker_that_holds_nothing_is_forgotten,
    a_worker_that_holds_something_stays,
    a_leaving_worker_passes_its_wait_for_a_due_time_on,
    leaving_twice_is_not_an_error,
];
