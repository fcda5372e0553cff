//! `claim`: Ready → Working, with a token, and the repeat of its answer.

use std::slice;

use optimus_core::{
    TaskId, TaskRecord, TaskState,
    broker::{Give, Refusal},
};
use redis::cmd;

use crate::{
    acts::{Grants, LEASE_MS, done, given, ids_of, refusal},
    bench::{Bench, START},
    jobs::{job, job_of, jobs},
};

async fn a_claimed_task_is_held_by_its_worker_only(bench: Bench) {
    let id = bench.add(0, job_of("[1]")).await;
    let other = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let entry = bench.list("ready").await.remove(0);
    let before = bench.dump().await;

    let claimed = bench.claim(7, &worker, 1, 1).await;

    assert_eq!(claimed.ids(), slice::from_ref(&id));
    assert_eq!((claimed.now_ms, claimed.token.seq, claimed.more), (START + 7, 1, true));
    let grant = &claimed.grants[0];
    assert_eq!(entry, id.stored());
    assert_eq!(TaskRecord::decode(grant.record.clone()).unwrap().payload, b"[1]");
    assert_eq!(grant.tries, (0, 0, 0));
    let held = bench.field("working:w", &id.stored()).await;
    assert_eq!(held, Some(claimed.token.to_string()));
    assert_eq!(bench.state(&id).await, TaskState::Working);
    assert_eq!(bench.state(&other).await, TaskState::Ready);
    assert_eq!(bench.changes(&before).await, ["meta", "ready", "working:w"]);
}

async fn two_workers_never_get_the_same_task(bench: Bench) {
    let tasks = jobs(10);
    bench.submit(0, &tasks).await;
    let (one, two) = (bench.worker(0, "one").await, bench.worker(0, "two").await);
    let mut claimed = Vec::new();
    for seq in 1..=5 {
        claimed.extend(bench.claim(0, &one, seq, 1).await.ids());
        claimed.extend(bench.claim(0, &two, seq, 1).await.ids());
    }
    assert_eq!(claimed, ids_of(&tasks));
}

async fn a_claim_of_an_empty_queue_changes_nothing(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let before = bench.dump().await;
    let claimed = bench.claim(0, &worker, 1, 128).await;
    assert!(claimed.grants.is_empty() && !claimed.more && claimed.next_due.is_none());
    bench.assert_unchanged(&before).await;
}

async fn a_claim_of_nothing_grants_and_drops_nothing(bench: Bench) {
    bench.submit(0, &jobs(3)).await;
    let worker = bench.worker(0, "w").await;
    let before = bench.dump().await;
    let claimed = bench.claim(0, &worker, 1, 0).await;
    assert!(claimed.grants.is_empty() && claimed.more);
    bench.assert_unchanged(&before).await;
}

async fn no_claim_grants_more_than_128(bench: Bench) {
    bench.submit(0, &jobs(130)).await;
    let worker = bench.worker(0, "w").await;
    let claimed = bench.claim(0, &worker, 1, 1_000).await;
    assert_eq!((claimed.grants.len(), claimed.more), (128, true));
    let claimed = bench.claim(0, &worker, 2, 1_000).await;
    assert_eq!((claimed.grants.len(), claimed.more), (2, false));
}

async fn a_claim_adds_a_wakeup_if_work_is_left(bench: Bench) {
    bench.submit(0, &jobs(2)).await;
    let worker = bench.worker(0, "w").await;
    assert!(bench.answer_wakeup().await);
    bench.claim(0, &worker, 1, 1).await;
    assert!(bench.answer_wakeup().await, "the next worker is woken");
    bench.claim(0, &worker, 2, 1).await;
    assert!(!bench.answer_wakeup().await, "no work is left");
}

async fn a_repeated_claim_returns_what_is_still_held(bench: Bench) {
    let tasks = jobs(4);
    bench.submit(0, &tasks).await;
    let worker = bench.worker(0, "w").await;
    let first = bench.claim(0, &worker, 1, 3).await;
    let leases = first.leases(&worker);

    let before = bench.dump().await;
    let again = bench.claim(5, &worker, 1, 3).await;
    assert_eq!((again.token, again.ids().len()), (first.token, 3));
    for grant in &first.grants {
        let same = again.grants.iter().find(|g| g.id == grant.id).expect("granted before");
        assert_eq!(same.record, grant.record);
    }
    bench.assert_unchanged(&before).await;

    assert!(bench.complete(6, &[done(&leases[0])]).await.is_empty());
    let back = given(&leases[1], Give::Head);
    assert!(bench.release(6, &[back]).await.is_empty());
    assert_eq!(bench.claim(7, &worker, 1, 3).await.ids(), [leases[2].id.clone()]);
}

async fn a_repeated_claim_omits_what_a_later_claim_granted(bench: Bench) {
    bench.submit(0, &jobs(2)).await;
    let worker = bench.worker(0, "w").await;
    let first = bench.claim(0, &worker, 1, 1).await;
    let second = bench.claim(0, &worker, 2, 1).await;
    assert_ne!(first.ids(), second.ids());
    assert_eq!(bench.claim(1, &worker, 2, 1).await.ids(), second.ids());
    assert_eq!(refusal(bench.at(1).claim(&bench.queue, &worker, 1, 1).await), Refusal::Stale);
}

async fn an_older_claim_is_stale(bench: Bench) {
    bench.submit(0, &jobs(3)).await;
    let worker = bench.worker(0, "w").await;
    bench.claim(0, &worker, 10, 1).await;
    let before = bench.dump().await;
    assert_eq!(refusal(bench.at(0).claim(&bench.queue, &worker, 9, 1).await), Refusal::Stale);
    bench.assert_unchanged(&before).await;
}

async fn a_worker_whose_lease_is_over_has_lapsed(bench: Bench) {
    bench.submit(0, &jobs(2)).await;
    let worker = bench.worker(0, "w").await;
    assert_eq!(bench.claim(LEASE_MS - 1, &worker, 1, 1).await.grants.len(), 1);
    let before = bench.dump().await;
    for seq in [1, 2] {
        let answer = bench.at(LEASE_MS).claim(&bench.queue, &worker, seq, 1).await;
        assert_eq!(refusal(answer), Refusal::Lapsed, "claim {seq}");
    }
    bench.assert_unchanged(&before).await;
}

async fn a_worker_that_never_registered_has_lapsed(bench: Bench) {
    bench.submit(0, &jobs(1)).await;
    let worker = optimus_core::WorkerId::from_stored("stranger");
    let before = bench.dump().await;
    let answer = bench.at(0).claim(&bench.queue, &worker, 1, 1).await;
    assert_eq!(refusal(answer), Refusal::Lapsed);
    bench.assert_unchanged(&before).await;
}

async fn each_grant_has_a_higher_fence_even_if_the_clock_goes_back(bench: Bench) {
    bench.submit(0, &jobs(4)).await;
    let (one, two) = (bench.worker(0, "one").await, bench.worker(0, "two").await);
    let mut fences = Vec::new();
    for (at, worker, seq) in [(9, &one, 1), (9, &two, 1), (3, &one, 2), (10, &two, 2)] {
        fences.push(bench.claim(at, worker, seq, 1).await.token.fence);
    }
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
    assert_eq!((fences[0], fences[3]), ((START + 9) * 1024, (START + 10) * 1024));
}

async fn a_redis_that_restarted_empty_grants_a_higher_fence(bench: Bench) {
    bench.submit(0, &jobs(1)).await;
    let worker = bench.worker(0, "w").await;
    let before = bench.take(0, &worker, 1).await;
    bench.restore(&crate::dump::Dump::new()).await;
    bench.submit(1, &jobs(1)).await;
    let worker = bench.worker(1, "w").await;
    let after = bench.take(1, &worker, 1).await;
    assert!(after.token.fence > before.token.fence);
}

async fn a_missing_or_damaged_record_does_not_stop_a_claim(bench: Bench) {
    let tasks = jobs(3);
    bench.submit(0, &tasks).await;
    let [gone, damaged, fine] = [0, 1, 2].map(|i| tasks[i].id().stored());
    let () = bench.raw(cmd("HDEL").arg(bench.key("tasks")).arg(&gone)).await;
    let () = bench.raw(cmd("HSET").arg(bench.key("tasks")).arg(&damaged).arg("\0")).await;
    let worker = bench.worker(0, "w").await;
    let claimed = bench.claim(0, &worker, 1, 3).await;
    let ids: Vec<String> = claimed.ids().iter().map(TaskId::stored).collect();
    assert_eq!(ids, [damaged, fine]);
    assert_eq!(claimed.grants[0].record, b"\0", "the worker decides about it");
    assert_eq!(bench.ready_list().await, [""; 0]);
}

on_both![
    a_claimed_task_is_held_by_its_worker_only,
    two_workers_never_get_the_same_task,
    a_claim_of_an_empty_queue_changes_nothing,
    a_claim_of_nothing_grants_and_drops_nothing,
    no_claim_grants_more_than_128,
    a_claim_adds_a_wakeup_if_work_is_left,
    a_repeated_claim_returns_what_is_still_held,
    a_repeated_claim_omits_what_a_later_claim_granted,
    an_older_claim_is_stale,
    a_worker_whose_lease_is_over_has_lapsed,
    a_worker_that_never_registered_has_lapsed,
    each_grant_has_a_higher_fence_even_if_the_clock_goes_back,
    a_redis_that_restarted_empty_grants_a_higher_fence,
    a_missing_or_damaged_record_does_not_stop_a_claim,
];
