//! `complete`, `fail` and `release` with a lease that has passed to another worker: they change
//! nothing.

use optimus_core::{
    Call, Lease, Task, TaskState, Token, WorkerId,
    broker::{Completion, FailureOutcome, Give},
};

use crate::{
    acts::{Grants, LEASE, LEASE_MS, done, done_biz, failed, given, keep, lease, ms},
    bench::Bench,
    jobs::{Fragile, job, jobs},
};

/// Reports with a lease in every form: each must be refused and change nothing.
async fn assert_stale(bench: &Bench, at: u64, lease: &Lease) {
    let before = bench.dump().await;
    assert_eq!(bench.complete(at, &[done(lease)]).await, [0]);
    for outcome in [FailureOutcome::Retry(ms(1)), FailureOutcome::Dead, FailureOutcome::Cancelled] {
        assert_eq!(bench.fail(at, &[failed(lease, outcome)]).await, [0], "{outcome:?}");
    }
    for give in [Give::Head, Give::Snooze(ms(1)), Give::Misfit(ms(1))] {
        assert_eq!(bench.release(at, &[given(lease, give)]).await, [0], "{give:?}");
    }
    bench.assert_unchanged(&before).await;
}

async fn the_lease_of_a_reaped_worker(bench: Bench) {
    let id = bench.add(0, job()).await;
    let lost = bench.worker(0, "lost").await;
    let lease = bench.take(0, &lost, 1).await;
    let other = bench.worker(LEASE_MS / 2, "other").await;
    assert_eq!(bench.at(LEASE_MS).reap(&bench.queue, &other, LEASE, 9).await.unwrap().tasks, 1);
    assert_stale(&bench, LEASE_MS, &lease).await;

    let now = bench.take(LEASE_MS, &other, 1).await;
    assert_stale(&bench, LEASE_MS, &lease).await;
    assert_eq!((bench.state(&id).await, now.id), (TaskState::Working, id));
}

async fn the_lease_of_a_task_that_was_marked_dead_and_purged_and_whose_biz_id_is_taken(
    bench: Bench,
) {
    let marked_dead = || Call::new(Fragile).biz_id("o-17");
    let id = bench.add(0, marked_dead()).await;
    let lost = bench.worker(0, "lost").await;
    let claimed = bench.at(0).claim_alone(&bench.queue, &lost, 1).await.unwrap();
    let lease = claimed.leases(&lost).remove(0);
    let other = bench.worker(LEASE_MS / 2, "other").await;
    assert_eq!(bench.at(LEASE_MS).reap(&bench.queue, &other, LEASE, 9).await.unwrap().tasks, 1);
    assert_eq!(bench.state(&id).await, TaskState::Dead);
    assert_stale(&bench, LEASE_MS, &lease).await;

    let purged = bench.at(LEASE_MS).purge(&bench.queue, keep(0, LEASE), LEASE).await.unwrap();
    assert_eq!((purged.tasks, bench.state(&id).await), (1, TaskState::Forgotten));
    let successor = bench.add(LEASE_MS, marked_dead()).await;
    let before = bench.dump().await;
    let late = Completion { task: Fragile::NAME, ..done_biz(&lease, "o-17") };
    assert_eq!(bench.complete(LEASE_MS, &[late]).await, [0]);
    bench.assert_unchanged(&before).await;
    assert_stale(&bench, LEASE_MS, &lease).await;
    assert_eq!(bench.take(LEASE_MS, &other, 1).await.id, successor);
}

async fn an_earlier_claim_of_the_same_worker(bench: Bench) {
    let id = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let old = bench.take(0, &worker, 1).await;
    assert!(bench.release(0, &[given(&old, Give::Head)]).await.is_empty());
    let new = bench.take(0, &worker, 2).await;
    assert_eq!((&new.id, &old.id), (&id, &id));
    assert_stale(&bench, 0, &old).await;
    assert!(bench.complete(0, &[done(&new)]).await.is_empty());
}

async fn a_lease_that_was_reported_already(bench: Bench) {
    bench.submit(0, &jobs(1)).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.complete(0, &[done(&lease)]).await.is_empty());
    assert_stale(&bench, 0, &lease).await;
}

async fn the_lease_of_another_worker(bench: Bench) {
    bench.submit(0, &jobs(1)).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    let thief = bench.worker(0, "thief").await;
    assert_stale(&bench, 0, &Lease { worker: thief, ..lease }).await;
}

async fn a_token_with_another_claim_or_another_fence(bench: Bench) {
    let id = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let Token { seq, fence } = bench.take(0, &worker, 1).await.token;
    for token in [Token { seq: seq + 1, fence }, Token { seq, fence: fence + 1 }] {
        assert_stale(&bench, 0, &lease(&id, &worker, token)).await;
    }
}

async fn a_task_that_waits_or_never_existed(bench: Bench) {
    let id = bench.add(0, job()).await;
    let worker = WorkerId::from_stored("w");
    assert_stale(&bench, 0, &lease(&id, &worker, Token { seq: 1, fence: 1 })).await;
    let unknown = optimus_core::TaskId::new(bench.queue.clone());
    assert_stale(&bench, 0, &lease(&unknown, &worker, Token { seq: 1, fence: 1 })).await;
}

async fn a_lease_that_is_over_but_was_not_reaped_is_valid(bench: Bench) {
    bench.submit(0, &jobs(3)).await;
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 3).await.leases(&worker);
    let late = LEASE_MS * 9;
    assert!(bench.complete(late, &[done(&leases[0])]).await.is_empty());
    assert!(bench.fail(late, &[failed(&leases[1], FailureOutcome::Dead)]).await.is_empty());
    assert!(bench.release(late, &[given(&leases[2], Give::Snooze(ms(1)))]).await.is_empty());
}

async fn stale_positions_are_named_and_the_rest_is_done(bench: Bench) {
    bench.submit(0, &jobs(15)).await;
    let worker = bench.worker(0, "w").await;
    let mut leases = bench.claim(0, &worker, 1, 15).await.leases(&worker);
    for stale in [0, 3, 4, 5, 9, 10, 14] {
        leases[stale].token.fence += 1;
    }
    let (a, rest) = leases.split_at(5);
    let (b, c) = rest.split_at(5);
    let completions: Vec<_> = a.iter().map(done).collect();
    let failures: Vec<_> = b.iter().map(|lease| failed(lease, FailureOutcome::Dead)).collect();
    let releases: Vec<_> = c.iter().map(|lease| given(lease, Give::Snooze(ms(9)))).collect();
    assert_eq!(bench.complete(0, &completions).await, [0, 3, 4]);
    assert_eq!(bench.fail(0, &failures).await, [0, 4]);
    assert_eq!(bench.release(0, &releases).await, [0, 4]);

    let (success, dead, delayed) = (TaskState::Success, TaskState::Dead, TaskState::Delayed);
    for (position, lease) in leases.iter().enumerate() {
        let expected = match position {
            0 | 3 | 4 | 5 | 9 | 10 | 14 => TaskState::Working,
            1..5 => success,
            5..10 => dead,
            _ => delayed,
        };
        assert_eq!(bench.state(&lease.id).await, expected, "position {position}");
    }
}

async fn one_lease_twice_in_a_call_counts_once(bench: Bench) {
    bench.submit(0, &jobs(3)).await;
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 3).await.leases(&worker);
    let back = given(&leases[0], Give::Head);
    assert_eq!(bench.release(0, &[back.clone(), back]).await, [1]);
    assert_eq!(bench.ready_list().await.len(), 1, "two entries would run the task twice");
    let end = done(&leases[1]);
    assert_eq!(bench.complete(0, &[end.clone(), end]).await, [1]);
    assert_eq!(bench.list("success").await.len(), 1);
    let bad = failed(&leases[2], FailureOutcome::Dead);
    assert_eq!(bench.fail(0, &[bad.clone(), bad]).await, [1]);
}

on_both![
    the_lease_of_a_reaped_worker,
    the_lease_of_a_task_that_was_marked_dead_and_purged_and_whose_biz_id_is_taken,
    an_earlier_claim_of_the_same_worker,
    a_lease_that_was_reported_already,
    the_lease_of_another_worker,
    a_token_with_another_claim_or_another_fence,
    a_task_that_waits_or_never_existed,
    a_lease_that_is_over_but_was_not_reaped_is_valid,
    stale_positions_are_named_and_the_rest_is_done,
    one_lease_twice_in_a_call_counts_once,
];
