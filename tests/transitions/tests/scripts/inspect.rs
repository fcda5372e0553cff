//! `inspect`: one task, its state and all its data.

use optimus_core::{
    Due, TaskId, TaskRecord, TaskState, WorkerId,
    broker::{Counts, FailureOutcome, Found, Give},
};

use crate::{
    acts::{done, failed, given, ms},
    bench::{Bench, START},
    jobs::{job, job_of},
};

async fn inspect(bench: &Bench, id: &TaskId) -> Found {
    let before = bench.dump().await;
    let found = bench.now().inspect(id).await.expect("a task can be inspected");
    bench.assert_unchanged(&before).await;
    found
}

async fn assert_found(bench: &Bench, id: &TaskId, state: TaskState, at: Option<u64>) {
    let found = inspect(bench, id).await;
    assert_eq!(found.state, state);
    assert_eq!(found.at_ms, at.map(|at| START + at), "{state}");
    let worker = (state == TaskState::Working).then(|| WorkerId::from_stored("w"));
    assert_eq!(found.worker, worker, "{state}");
    assert_eq!(TaskRecord::decode(found.record.clone()).unwrap().payload, b"{}", "{state}");
}

async fn a_task_is_found_in_each_of_its_states(bench: Bench) {
    let id = bench.add(0, job().due(Due::In(ms(10)))).await;
    assert_found(&bench, &id, TaskState::Delayed, Some(10)).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(10, &worker, 1).await;
    assert_found(&bench, &id, TaskState::Working, None).await;
    assert!(bench.fail(11, &[failed(&lease, FailureOutcome::Retry(ms(9)))]).await.is_empty());
    assert_found(&bench, &id, TaskState::Retry, Some(20)).await;
    let lease = bench.take(20, &worker, 2).await;
    assert!(bench.release(21, &[given(&lease, Give::Head)]).await.is_empty());
    assert_found(&bench, &id, TaskState::Ready, None).await;
    let lease = bench.take(22, &worker, 3).await;
    assert!(bench.fail(23, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
    assert_found(&bench, &id, TaskState::Dead, Some(23)).await;
    bench.at(24).requeue(&id).await.unwrap();
    assert_found(&bench, &id, TaskState::Ready, None).await;
    bench.at(25).cancel(&id).await.unwrap();
    assert_found(&bench, &id, TaskState::Cancelled, Some(25)).await;
}

async fn a_success_has_a_summary_and_no_record(bench: Bench) {
    let id = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.complete(7, &[done(&lease)]).await.is_empty());
    let found = inspect(&bench, &id).await;
    assert_eq!((found.state, found.at_ms), (TaskState::Success, Some(START + 7)));
    assert_eq!(found.summary, format!("{} {} job 1 5 w", id.stored(), START + 7));
    assert!(found.record.is_empty());
}

async fn an_unknown_task_is_forgotten(bench: Bench) {
    let found = inspect(&bench, &TaskId::new(bench.queue.clone())).await;
    assert_eq!((found.state, found.at_ms, found.worker), (TaskState::Forgotten, None, None));
    assert!(found.record.is_empty() && found.summary.is_empty() && found.errors.is_empty());
}

async fn tries_errors_and_a_large_payload_are_shown(bench: Bench) {
    let large = format!("\"{}\"", "x".repeat(20_000));
    let id = bench.add(0, job_of(large.clone())).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Retry(ms(1)))]).await.is_empty());
    let lease = bench.take(1, &worker, 2).await;
    assert!(bench.release(1, &[given(&lease, Give::Misfit(ms(1)))]).await.is_empty());
    let found = inspect(&bench, &id).await;
    assert_eq!((found.tries, found.errors.lines().count()), ((1, 0, 1), 1));
    assert_eq!(found.blob, large.as_bytes());
    assert!(TaskRecord::decode(found.record.clone()).unwrap().has_blob);
}

async fn reading_an_empty_queue_keeps_the_connection(bench: Bench) {
    let (broker, queue) = (bench.now(), &bench.queue);
    assert_eq!(broker.counts(queue).await.unwrap(), Counts::default());
    assert!(broker.workers(queue).await.unwrap().is_empty());
    for state in TaskState::ALL {
        assert!(broker.list(queue, state, 10, "").await.unwrap().rows.is_empty(), "{state}");
    }
    assert_eq!(broker.breaks(), 0);
}

on_both![
    reading_an_empty_queue_keeps_the_connection,
    a_task_is_found_in_each_of_its_states,
    a_success_has_a_summary_and_no_record,
    an_unknown_task_is_forgotten,
    tries_errors_and_a_large_payload_are_shown,
];
