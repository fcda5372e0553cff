//! Tasks of a run that come back: those that were tried as often run together, apart from new ones.

use optimus_core::{
    Lease, TaskId, TaskState, WorkerId,
    broker::{FailureOutcome, Give},
};
use redis::cmd;

use crate::{
    acts::{LEASE, failed, given, ms},
    bench::{Bench, START},
    gathers::{gathered, many_of, three_of},
};

/// How long a task that comes back waits for others, if its run may have a thousand.
const MOMENT: u64 = 131;

/// A run of three that started 1 ms after the start.
async fn run_of_three(bench: &Bench, worker: &WorkerId) -> Vec<Lease> {
    bench.submit(0, &gathered(0, 3, &three_of("a"))).await;
    let run = bench.run_of(1, worker, 1).await;
    assert_eq!(run.len(), 3);
    run
}

async fn a_failed_run_is_retried_with_the_same_calls_and_no_new_one(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(90_000)).await;
    let run = run_of_three(&bench, &worker).await;
    let retry = FailureOutcome::Retry(ms(20_000));
    bench.fail(2, &run.iter().map(|lease| failed(lease, retry)).collect::<Vec<_>>()).await;
    for lease in &run {
        assert_eq!(bench.state(&lease.id).await, TaskState::Retry);
        assert_eq!(bench.tries(&lease.id).await, (1, 0, 0));
    }
    let late = bench.add_gathered(15_000, &many_of("a")).await;
    assert!(bench.claim(20_002, &worker, 2, 9).await.grants.is_empty(), "they join first");
    let failed: Vec<_> = run.iter().map(|lease| (&lease.id, 0)).collect();
    bench.assert_gathering("#1:0:a", &failed, Some(20_002)).await;
    bench.assert_gathering("a", &[(&late, 15_000)], Some(25_000)).await;
    let again = bench.claim(20_003, &worker, 3, 9).await;
    assert_eq!(again.grants[0].tries, (1, 0, 0));
    let again = crate::acts::Grants::leases(&again, &worker);
    let others = bench.collect(20_004, &again[0], 999).await;
    assert_eq!(others.grants.len(), 2);
    assert!(others.grants.iter().all(|grant| grant.tries == (1, 0, 0) && grant.id != late));
    assert_eq!(bench.due_run("#1:0:a").await, None);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn calls_that_come_back_apart_wait_a_moment_for_each_other(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(90_000)).await;
    bench.submit(0, &gathered(0, 4, &many_of("a"))).await;
    let run = bench.run_of(10_000, &worker, 1).await;
    for (at, lease) in (10_001..).zip(&run) {
        bench.fail(at, &[failed(lease, FailureOutcome::Retry(ms(5_000)))]).await;
    }
    assert!(bench.claim(15_001, &worker, 2, 9).await.grants.is_empty());
    let at = 15_001 + MOMENT;
    assert_eq!(bench.gathering("#1:0:a").await.len(), 1);
    assert_eq!(bench.due_run("#1:0:a").await, Some(at));
    assert!(bench.claim(15_100, &worker, 3, 9).await.grants.is_empty());
    assert_eq!(bench.gathering("#1:0:a").await.len(), 4);
    assert_eq!(bench.due_run("#1:0:a").await, Some(at));
    assert_eq!(bench.run_of(at, &worker, 4).await.len(), 4);
}

async fn a_run_that_failed_for_good_leaves_each_call_dead(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let run = run_of_three(&bench, &worker).await;
    let dead = FailureOutcome::Dead;
    bench.fail(2, &run.iter().map(|lease| failed(lease, dead)).collect::<Vec<_>>()).await;
    for lease in &run {
        assert_eq!(bench.state(&lease.id).await, TaskState::Dead);
    }
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_run_that_is_given_back_gathers_again(bench: Bench) {
    for give in [Give::Head, Give::Interrupted, Give::Snooze(ms(3_000)), Give::Misfit(ms(3_000))] {
        let worker = bench.worker_for(0, "w", ms(90_000)).await;
        let run = run_of_three(&bench, &worker).await;
        bench.release(2, &run.iter().map(|lease| given(lease, give)).collect::<Vec<_>>()).await;
        assert!(bench.ready_list().await.is_empty(), "none runs alone: {give:?}");
        assert!(bench.claim(4_000, &worker, 2, 9).await.grants.is_empty(), "{give:?}");
        assert_eq!(bench.gathering("a").await.len(), 3, "{give:?}");
        let again = bench.run_of(4_001, &worker, 3).await;
        assert_eq!(again.len(), 3, "{give:?}");
        for lease in &again {
            assert_eq!(bench.tries(&lease.id).await.0, 0, "no attempt was used: {give:?}");
        }
        let reports: Vec<_> = again.iter().map(crate::acts::done).collect();
        bench.complete(4_002, &reports).await;
        bench.at(4_003).leave(&bench.queue, &worker).await.unwrap();
    }
}

async fn a_run_that_snoozed_does_not_wait_for_its_whole_time_again(bench: Bench) {
    for give in [Give::Snooze(ms(3_000)), Give::Misfit(ms(3_000)), Give::Interrupted] {
        let worker = bench.worker_for(0, "w", ms(90_000)).await;
        bench.submit(0, &gathered(0, 4, &many_of("a"))).await;
        let run = bench.run_of(10_000, &worker, 1).await;
        bench
            .release(10_001, &run.iter().map(|lease| given(lease, give)).collect::<Vec<_>>())
            .await;
        assert!(bench.claim(13_001, &worker, 2, 9).await.grants.is_empty(), "{give:?}");
        assert_eq!(bench.due_run("a").await, Some(13_001 + MOMENT), "{give:?}");
        assert_eq!(bench.fsck_of_tasks().await, [""; 0], "{give:?}");
        let again = bench.run_of(13_001 + MOMENT, &worker, 3).await;
        assert_eq!(again.len(), 4, "{give:?}");
        for lease in &run {
            let (failures, losses, _) = bench.tries(&lease.id).await;
            assert_eq!((failures, losses), (0, 0), "no attempt was used: {give:?}");
        }
        let again: Vec<_> = again.iter().map(crate::acts::done).collect();
        bench.complete(14_002, &again).await;
        bench.at(14_003).leave(&bench.queue, &worker).await.unwrap();
    }
}

async fn the_calls_of_a_lost_worker_gather_again(bench: Bench) {
    let lost = bench.worker(0, "lost").await;
    let worker = bench.worker_for(0, "w", ms(90_000)).await;
    let run = run_of_three(&bench, &lost).await;
    bench.at(7_500).renew(&bench.queue, &worker, ms(90_000)).await.unwrap();
    let reaped = bench.at(15_000).reap(&bench.queue, &worker, LEASE, 128).await.unwrap();
    assert_eq!(reaped.tasks, 3);
    assert!(reaped.lost.iter().all(|lost| lost.state == TaskState::Delayed), "{reaped:?}");
    assert!(bench.claim(15_002, &worker, 1, 9).await.grants.is_empty());
    let again = bench.run_of(15_003, &worker, 2).await;
    assert_eq!(again.len(), 3);
    for lease in &run {
        assert_eq!(bench.tries(&lease.id).await, (0, 1, 0));
    }
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_leader_that_is_lost_before_it_collected_runs_apart_and_the_next_leads_at_once(
    bench: Bench,
) {
    let lost = bench.worker(0, "lost").await;
    let worker = bench.worker_for(0, "w", ms(90_000)).await;
    bench.submit(0, &gathered(0, 3, &three_of("a"))).await;
    let leader = bench.take(1, &lost, 1).await;
    bench.at(7_500).renew(&bench.queue, &worker, ms(90_000)).await.unwrap();
    let reaped = bench.at(15_000).reap(&bench.queue, &worker, LEASE, 128).await.unwrap();
    assert_eq!(reaped.tasks, 1);
    assert_eq!(bench.due_run("a").await, Some(15_000));
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    let run = bench.run_of(15_000, &worker, 1).await;
    assert_eq!(run.len(), 2);
    assert!(run.iter().all(|lease| lease.id != leader.id));
    assert_eq!(bench.gathering("#0:1:a").await, [(leader.id.stored(), 0)]);
    let alone = bench.run_of(15_000 + MOMENT, &worker, 2).await;
    assert_eq!(alone.iter().map(|lease| &lease.id).collect::<Vec<_>>(), [&leader.id]);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_call_that_comes_back_alone_waits_a_moment_for_others(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(90_000)).await;
    let id = bench.add_gathered(0, &many_of("a")).await;
    let leader = bench.take(10_000, &worker, 1).await;
    bench.fail(10_001, &[failed(&leader, FailureOutcome::Retry(ms(20_000)))]).await;
    assert!(bench.claim(30_002, &worker, 2, 9).await.grants.is_empty());
    bench.assert_gathering("#1:0:a", &[(&id, 0)], Some(30_002 + MOMENT)).await;
    assert_eq!(bench.take(30_002 + MOMENT, &worker, 3).await.id, id);
}

async fn calls_that_were_tried_as_often_run_together_and_others_apart(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(90_000)).await;
    bench.submit(0, &gathered(0, 3, &many_of("a"))).await;
    let run = bench.run_of(10_000, &worker, 1).await;
    let again = FailureOutcome::Retry(ms(1_000));
    bench.fail(10_001, &[failed(&run[0], again)]).await;
    assert!(bench.claim(12_000, &worker, 2, 9).await.grants.is_empty());
    let twice = bench.run_of(13_000, &worker, 3).await;
    assert_eq!(twice.len(), 1);
    bench.fail(13_001, &[failed(&twice[0], again), failed(&run[1], again)]).await;
    let snooze = given(&run[2], Give::Snooze(ms(1_000)));
    bench.release(13_001, &[snooze]).await;
    assert!(bench.claim(14_001, &worker, 4, 9).await.grants.is_empty());
    for (key, lease) in [("#2:0:a", &run[0]), ("#1:0:a", &run[1]), ("a", &run[2])] {
        bench.assert_gathering(key, &[(&lease.id, 0)], Some(14_001 + MOMENT)).await;
    }
}

/// Lets the calls of a key wait with new ones, as programs did that had one key for both.
async fn join_new_ones(bench: &Bench, ids: &[&TaskId]) {
    for id in ids {
        bench.raw::<()>(cmd("ZREM").arg(bench.key("gather:job#1:0:a")).arg(id.stored())).await;
        let key = bench.key("gather:job:a");
        bench.raw::<()>(cmd("ZADD").arg(key).arg(START).arg(id.stored())).await;
    }
    bench.raw::<()>(cmd("ZREM").arg(bench.key("gathers")).arg("job#1:0:a")).await;
    let due = START + 20_000;
    bench.raw::<()>(cmd("ZADD").arg(bench.key("gathers")).arg(due).arg("job:a")).await;
}

async fn calls_that_an_older_program_let_wait_with_new_ones_run_with_them(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(90_000)).await;
    bench.submit(0, &gathered(0, 4, &many_of("a"))).await;
    let run = bench.run_of(10_000, &worker, 1).await;
    let again = FailureOutcome::Retry(ms(1_000));
    bench.fail(10_001, &run.iter().map(|lease| failed(lease, again)).collect::<Vec<_>>()).await;
    assert!(bench.claim(12_000, &worker, 2, 9).await.grants.is_empty());
    let ids: Vec<_> = run.iter().map(|lease| &lease.id).collect();
    join_new_ones(&bench, &ids).await;
    let new = bench.add_gathered(12_001, &many_of("a")).await;
    assert_eq!(bench.state(ids[1]).await, TaskState::Blocked);
    bench.at(12_002).cancel(ids[1]).await.unwrap();
    let run = bench.run_of(20_000, &worker, 3).await;
    assert_eq!(run.len(), 4, "three that failed, and one that is new");
    assert!(run.iter().any(|lease| lease.id == new));
    assert_eq!((bench.gathering("a").await.len(), bench.due_run("a").await), (0, None));
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_call_that_the_next_loss_would_end_runs_alone(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(900_000)).await;
    bench.submit(0, &gathered(0, 3, &three_of("a"))).await;
    for (at, name) in [(1_000, "one"), (40_000, "two")] {
        let lost = bench.worker(at, name).await;
        if at > 1_000 {
            assert!(bench.claim(at, &lost, 1, 9).await.grants.is_empty());
        }
        let run = bench.run_of(at, &lost, 2).await;
        assert_eq!(run.len(), 3, "at {at}");
        bench.at(at + 7_500).renew(&bench.queue, &worker, ms(900_000)).await.unwrap();
        let reaped = bench.at(at + 15_000).reap(&bench.queue, &worker, LEASE, 128).await.unwrap();
        assert_eq!(reaped.tasks, 3, "at {at}");
    }
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    assert_eq!(bench.gathering("a").await, []);
    let claimed = bench.claim(60_000, &worker, 3, 9).await;
    assert_eq!(claimed.grants.len(), 3, "each runs alone");
    let alone = crate::acts::Grants::leases(&claimed, &worker);
    let wait = given(&alone[0], Give::Snooze(ms(1_000)));
    let head = given(&alone[1], Give::Head);
    bench.release(60_001, &[wait, head]).await;
    bench.fail(60_001, &[failed(&alone[2], FailureOutcome::Retry(ms(1_000)))]).await;
    assert_eq!(bench.claim(61_001, &worker, 4, 9).await.grants.len(), 3, "as before");
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_call_that_is_asked_to_stop_is_cancelled_and_the_run_continues(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let run = run_of_three(&bench, &worker).await;
    bench.at(2).cancel(&run[1].id).await.unwrap();
    let reports: Vec<_> = run.iter().map(|lease| given(lease, Give::Snooze(ms(9)))).collect();
    bench.release(3, &reports).await;
    assert_eq!(bench.state(&run[1].id).await, TaskState::Cancelled);
    assert_eq!(bench.state(&run[2].id).await, TaskState::Delayed);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

on_both! {
    a_failed_run_is_retried_with_the_same_calls_and_no_new_one,
    calls_that_come_back_apart_wait_a_moment_for_each_other,
    a_run_that_failed_for_good_leaves_each_call_dead,
    a_run_that_is_given_back_gathers_again,
    a_run_that_snoozed_does_not_wait_for_its_whole_time_again,
    the_calls_of_a_lost_worker_gather_again,
    a_leader_that_is_lost_before_it_collected_runs_apart_and_the_next_leads_at_once,
    a_call_that_comes_back_alone_waits_a_moment_for_others,
    calls_that_were_tried_as_often_run_together_and_others_apart,
    calls_that_an_older_program_let_wait_with_new_ones_run_with_them,
    a_call_that_the_next_loss_would_end_runs_alone,
    a_call_that_is_asked_to_stop_is_cancelled_and_the_run_continues,
}
