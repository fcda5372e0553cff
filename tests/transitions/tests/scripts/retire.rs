//! `retire`: an unused queue → ∅.

use std::time::Duration;

use optimus_core::{
    TaskState,
    broker::{Batch, FailureOutcome, Receipt, Refusal, StoredBy},
};

use crate::{
    acts::{LEASE, done, failed, keep, ms, refusal},
    bench::Bench,
    jobs::{job, jobs, ready},
};

const IDLE: Duration = Duration::from_secs(60);

async fn retire(bench: &Bench, at: u64) -> bool {
    bench.at(at).retire(&bench.queue, IDLE).await.expect("the call is not refused")
}

/// Removes ended tasks and every ledger.
async fn purge(bench: &Bench, at: u64) {
    bench.at(at).purge(&bench.queue, keep(0, ms(0)), ms(0)).await.expect("a purge is not refused");
}

/// Tasks that succeed, die, and are cancelled in the ready list and in `delayed`, by 1,000 ms.
async fn use_up(bench: &Bench) {
    let mut tasks = jobs(2);
    tasks.push(ready(job().biz_id("b")));
    tasks.push(ready(job().due(optimus_core::Due::In(ms(500)))));
    let (queue, since) = (&bench.queue, 0);
    let batch = Batch { queue, client: "c1", number: 1, since, keep: true, tasks: &tasks };
    bench.at(0).submit(&batch).await.unwrap();
    bench.wait(tasks[0].id(), "waiting").await;
    let worker = bench.worker(0, "w").await;
    let first = bench.take(0, &worker, 1).await;
    let second = bench.take(0, &worker, 2).await;
    assert!(bench.complete(0, &[done(&first)]).await.is_empty());
    assert!(bench.fail(1_000, &[failed(&second, FailureOutcome::Dead)]).await.is_empty());
    for task in &tasks[2..] {
        bench.at(1_000).cancel(task.id()).await.unwrap();
    }
    assert_eq!(bench.at(1_000).leave(queue, &worker).await.unwrap(), 0);
}

async fn a_retire_removes_all_keys_of_an_unused_queue(bench: Bench) {
    use_up(&bench).await;
    purge(&bench, 2_000).await;
    assert!(!retire(&bench, 60_007).await, "a task ended a minute ago");
    let left = bench.names().await;
    assert!(["meta", "ready", "skips", "success"].iter().all(|key| left.iter().any(|l| l == key)));
    assert!(retire(&bench, 60_008).await);
    assert_eq!(bench.names().await, ["completions:waiting"], "it expires");
    assert!(retire(&bench, 60_008).await, "the queue was removed before");
}

async fn a_used_queue_is_not_changed(bench: Bench) {
    use_up(&bench).await;
    let mut kept = Vec::new();
    let mut stays = async |why: &'static str| {
        let before = bench.dump().await;
        assert!(!retire(&bench, 900_000).await, "{why}");
        bench.assert_unchanged(&before).await;
        kept.push(why);
    };
    stays("tasks have ended and are kept").await;
    purge(&bench, 2_000).await;
    bench.at(2_000).pause(&bench.queue).await.unwrap();
    stays("the queue is paused").await;
    bench.at(2_000).resume(&bench.queue).await.unwrap();
    let worker = bench.worker(2_000, "w").await;
    stays("a worker is registered").await;
    bench.at(2_000).leave(&bench.queue, &worker).await.unwrap();
    let tasks = [ready(job())];
    let (queue, number) = (&bench.queue, 17);
    let batch = Batch { queue, client: "c1", number, since: 1, keep: true, tasks: &tasks };
    bench.at(2_000).submit(&batch).await.unwrap();
    stays("a task waits").await;
    let worker = bench.worker(3_000, "w2").await;
    let lease = bench.take(3_000, &worker, 1).await;
    assert!(bench.complete(3_000, &[done(&lease)]).await.is_empty());
    bench.at(3_000).leave(queue, &worker).await.unwrap();
    stays("a client may ask for what it has submitted").await;
    purge(&bench, 4_000).await;
    assert!(retire(&bench, 900_000).await);
    assert_eq!(kept.len(), 5);
}

async fn a_reap_does_not_count_as_use_of_a_queue(bench: Bench) {
    use_up(&bench).await;
    purge(&bench, 2_000).await;
    let stranger = optimus_core::WorkerId::from_stored("stranger");
    for at in [20_000, 40_000, 61_000] {
        bench.at(at).reap(&bench.queue, &stranger, LEASE, 9).await.unwrap();
    }
    assert!(retire(&bench, 62_000).await);
}

async fn a_fence_that_is_ahead_of_the_clock_is_kept(bench: Bench) {
    use_up(&bench).await;
    purge(&bench, 2_000).await;
    let ahead = (crate::bench::START + 100_000) * 1024;
    let () = bench.raw(redis::cmd("HSET").arg(bench.key("meta")).arg("fence").arg(ahead)).await;
    assert!(!retire(&bench, 100_000).await);
    assert!(!retire(&bench, 160_000).await);
    assert!(retire(&bench, 160_001).await);
}

async fn a_queue_that_is_created_again_does_not_mix_up_old_and_new_tasks(bench: Bench) {
    let tasks = jobs(2);
    let (queue, client) = (&bench.queue, "c1");
    let batch = Batch { queue, client, number: 1, since: 0, keep: true, tasks: &tasks };
    bench.at(0).submit(&batch).await.unwrap();
    let worker = bench.worker(0, "w").await;
    let before = bench.take(0, &worker, 1).await;
    assert!(bench.complete(0, &[done(&before)]).await.is_empty());
    let dead = bench.take(0, &worker, 2).await;
    assert!(bench.fail(0, &[failed(&dead, FailureOutcome::Dead)]).await.is_empty());
    bench.at(0).leave(queue, &worker).await.unwrap();
    purge(&bench, 1_000).await;
    assert!(retire(&bench, 70_000).await);

    // A worker that was suspended all the time has no lease any more, and must register again.
    assert_eq!(bench.complete(80_000, &[done(&before)]).await, [0]);
    let claimed = bench.at(80_000).claim(queue, &worker, 3, 1).await;
    assert_eq!(refusal(claimed), Refusal::Lapsed);
    // The next call of a suspended client reports that the previous call is lost.
    let more = jobs(1);
    let batch = Batch { number: 17, since: 1, tasks: &more, ..batch };
    let submitted = bench.at(80_000).submit(&batch).await.unwrap();
    assert_eq!((&submitted.receipts[..], submitted.lost), (&[Receipt::Created][..], true));
    let state_of = async |id, number| {
        bench.at(80_000).state_of(id, Some(StoredBy { client, number })).await.unwrap()
    };
    assert_eq!(state_of(&dead.id, 1).await, TaskState::Forgotten, "a dead task is not a success");
    let worker = bench.worker(80_000, "w2").await;
    let after = bench.take(80_000, &worker, 1).await;
    assert!(after.token.fence > dead.token.fence.max(before.token.fence));
    assert!(bench.complete(80_000, &[done(&after)]).await.is_empty());
    assert_eq!(state_of(&after.id, 17).await, TaskState::Success);
}

on_both![
    a_retire_removes_all_keys_of_an_unused_queue,
    a_used_queue_is_not_changed,
    a_reap_does_not_count_as_use_of_a_queue,
    a_fence_that_is_ahead_of_the_clock_is_kept,
    a_queue_that_is_created_again_does_not_mix_up_old_and_new_tasks,
];
