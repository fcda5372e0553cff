//! `await`: registers a client as waiting for a task's end.

use optimus_core::{Due, TaskId, TaskState, broker::Verdict};

use crate::{
    acts::{done, failed, ms},
    bench::Bench,
    jobs::job,
};

async fn state(bench: &Bench, id: &TaskId, client: &str) -> TaskState {
    bench.now().wait_for_end(id, client).await.expect("a client may always ask")
}

async fn a_client_waits_for_a_live_task(bench: Bench) {
    let delayed = bench.add(0, job().due(Due::In(ms(90)))).await;
    let working = bench.add(0, job()).await;
    let retry = bench.add(0, job()).await;
    let ready = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    bench.take(0, &worker, 1).await;
    let lease = bench.take(0, &worker, 2).await;
    assert!(bench.fail(0, &[failed(&lease, Verdict::Retry(ms(90)))]).await.is_empty());
    for (id, expected) in [
        (&delayed, TaskState::Delayed),
        (&working, TaskState::Working),
        (&retry, TaskState::Retry),
        (&ready, TaskState::Ready),
    ] {
        let before = bench.dump().await;
        assert_eq!(state(&bench, id, "c").await, expected);
        assert_eq!(bench.changes(&before).await, ["waiters"], "{expected}");
        assert_eq!(bench.field("waiters", &id.stored()).await.as_deref(), Some("c"));
    }
}

async fn nobody_waits_for_what_has_ended(bench: Bench) {
    let [good, bad, cancelled] =
        [bench.add(0, job()).await, bench.add(0, job()).await, bench.add(0, job()).await];
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.complete(0, &[done(&lease)]).await.is_empty());
    let lease = bench.take(0, &worker, 2).await;
    assert!(bench.fail(0, &[failed(&lease, Verdict::Dead)]).await.is_empty());
    bench.at(0).cancel(&cancelled).await.unwrap();
    let before = bench.dump().await;
    for (id, expected) in [
        (good, TaskState::Success),
        (bad, TaskState::Dead),
        (cancelled, TaskState::Cancelled),
        (TaskId::new(bench.queue.clone()), TaskState::Forgotten),
    ] {
        assert_eq!(state(&bench, &id, "c").await, expected);
    }
    bench.assert_unchanged(&before).await;
}

async fn a_success_is_known_as_long_as_its_result(bench: Bench) {
    let id = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    let mut report = done(&lease);
    report.result = Some((b"1".to_vec(), ms(60_000)));
    assert!(bench.complete(0, &[report]).await.is_empty());
    let () = bench.raw(redis::cmd("DEL").arg(bench.key("success"))).await;
    assert_eq!(state(&bench, &id, "c").await, TaskState::Success);
}

async fn a_client_that_asks_again_waits_once(bench: Bench) {
    let id = bench.add(0, job()).await;
    for client in ["c", "cc", "c", "cc", "c"] {
        state(&bench, &id, client).await;
    }
    assert_eq!(bench.field("waiters", &id.stored()).await.as_deref(), Some("c,cc"));
}

async fn without_a_client_it_only_looks(bench: Bench) {
    let id = bench.add(0, job()).await;
    let before = bench.dump().await;
    assert_eq!(state(&bench, &id, "").await, TaskState::Ready);
    bench.assert_unchanged(&before).await;
}

async fn the_mail_of_an_end_arrives(bench: Bench) {
    let id = bench.add(0, job()).await;
    state(&bench, &id, "c").await;
    let (mailbox, queues) = (bench.now().blocking("mail"), [bench.queue.clone()]);
    let waiting =
        tokio::spawn(async move { mailbox.wait_for_mail(&queues, "c", ms(20_000)).await });
    bench.at(0).cancel(&id).await.unwrap();
    let letter = waiting.await.unwrap().unwrap();
    assert_eq!(letter, Some((id, TaskState::Cancelled)));
}

on_both![
    a_client_waits_for_a_live_task,
    nobody_waits_for_what_has_ended,
    a_success_is_known_as_long_as_its_result,
    a_client_that_asks_again_waits_once,
    without_a_client_it_only_looks,
    the_mail_of_an_end_arrives,
];
