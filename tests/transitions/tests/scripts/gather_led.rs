//! Tasks that lead a run and end, or come back, before they have collected the others.

use optimus_core::{
    Lease, OnLost, TaskId, TaskState, WorkerId,
    broker::{FailureOutcome, Give},
};

use crate::{
    acts::{LEASE, failed, given, ms},
    bench::Bench,
    gathers::{gathered, many_of, three_of},
    jobs::{job, ready_at},
};

/// A task that leads a run that is due at 10 s, and a task that joined 1 ms after it.
async fn led(bench: &Bench) -> (Lease, TaskId) {
    let worker = bench.worker_for(0, "w", ms(90_000)).await;
    let first = bench.add_gathered(0, &many_of("a")).await;
    let next = bench.add_gathered(1, &many_of("a")).await;
    let leader = bench.take(10_000, &worker, 1).await;
    assert_eq!(leader.id, first);
    (leader, next)
}

/// Fails unless this task leads now, and ends its run.
async fn assert_leads(bench: &Bench, worker: &WorkerId, next: &TaskId) {
    assert_eq!(bench.due_run("a").await, Some(10_001));
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    assert!(bench.answer_wakeup().await, "an idle worker is woken");
    let lease = bench.take(10_002, worker, 2).await;
    assert_eq!(&lease.id, next);
    assert!(bench.collect(10_003, &lease, 9).await.grants.is_empty());
}

async fn the_next_leads_at_once_if_one_expired(bench: Bench) {
    let (leader, next) = led(&bench).await;
    bench.answer_wakeup().await;
    bench.fail(10_001, &[failed(&leader, FailureOutcome::Expired)]).await;
    assert_eq!(bench.state(&leader.id).await, TaskState::Dead);
    assert_leads(&bench, &leader.worker, &next).await;
}

async fn the_next_leads_at_once_if_one_is_retried(bench: Bench) {
    let (leader, next) = led(&bench).await;
    bench.answer_wakeup().await;
    bench.fail(10_001, &[failed(&leader, FailureOutcome::Retry(ms(20_000)))]).await;
    assert_eq!(bench.state(&leader.id).await, TaskState::Retry);
    assert_leads(&bench, &leader.worker, &next).await;
}

async fn the_next_leads_at_once_if_no_worker_of_this_kind_knows_one(bench: Bench) {
    let (leader, next) = led(&bench).await;
    bench.answer_wakeup().await;
    bench.release(10_001, &[given(&leader, Give::Misfit(ms(3_000)))]).await;
    assert_eq!(bench.state(&leader.id).await, TaskState::Delayed);
    assert_leads(&bench, &leader.worker, &next).await;
}

async fn the_next_leads_at_once_if_one_was_asked_to_stop(bench: Bench) {
    let (leader, next) = led(&bench).await;
    bench.at(10_000).cancel(&leader.id).await.unwrap();
    bench.answer_wakeup().await;
    bench.release(10_001, &[given(&leader, Give::Head)]).await;
    assert_eq!(bench.state(&leader.id).await, TaskState::Cancelled);
    assert_leads(&bench, &leader.worker, &next).await;
}

async fn one_that_is_given_back_unstarted_joins_the_others(bench: Bench) {
    let (leader, next) = led(&bench).await;
    bench.release(10_001, &[given(&leader, Give::Head)]).await;
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    let run = bench.run_of(10_002, &leader.worker, 2).await;
    let mut ids: Vec<_> = run.iter().map(|lease| &lease.id).collect();
    ids.sort();
    assert_eq!(ids, [&leader.id, &next]);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_key_without_others_ends_with_the_one_that_led(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.submit(0, &gathered(0, 1, &many_of("a"))).await;
    let leader = bench.take(10_000, &worker, 1).await;
    bench.fail(10_001, &[failed(&leader, FailureOutcome::Expired)]).await;
    assert_eq!(bench.score("gathers", "job:a").await, None);
    assert_eq!(bench.gathering("a").await, []);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn the_next_leads_at_once_if_one_is_dead_with_its_worker(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(90_000)).await;
    let lost = bench.worker(0, "lost").await;
    let calls = (0..3).map(|_| ready_at(0, job().on_lost(OnLost::Dead)).gathered(three_of("a")));
    bench.submit(0, &calls.collect::<Vec<_>>()).await;
    let leader = bench.take(1, &lost, 1).await;
    bench.at(7_500).renew(&bench.queue, &worker, ms(90_000)).await.unwrap();
    bench.at(15_000).reap(&bench.queue, &worker, LEASE, 128).await.unwrap();
    assert_eq!(bench.state(&leader.id).await, TaskState::Dead);
    assert_eq!(bench.due_run("a").await, Some(15_000));
    let next = bench.take(15_000, &worker, 1).await;
    assert_ne!(next.id, leader.id);
    assert!(!bench.gathering("a").await.iter().any(|(id, _)| *id == leader.id.stored()));
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn none_joins_a_run_in_a_queue_that_was_paused_meanwhile(bench: Bench) {
    let (leader, next) = led(&bench).await;
    bench.at(10_001).pause(&bench.queue).await.unwrap();
    assert!(bench.collect(10_002, &leader, 9).await.grants.is_empty());
    assert_eq!(bench.state(&next).await, TaskState::Blocked);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    bench.at(10_003).resume(&bench.queue).await.unwrap();
    bench.answer_wakeup().await;
    assert_eq!(bench.take(10_011, &leader.worker, 2).await.id, next);
}

on_both! {
    none_joins_a_run_in_a_queue_that_was_paused_meanwhile,
    the_next_leads_at_once_if_one_expired,
    the_next_leads_at_once_if_one_is_retried,
    the_next_leads_at_once_if_no_worker_of_this_kind_knows_one,
    the_next_leads_at_once_if_one_was_asked_to_stop,
    one_that_is_given_back_unstarted_joins_the_others,
    a_key_without_others_ends_with_the_one_that_led,
    the_next_leads_at_once_if_one_is_dead_with_its_worker,
}
