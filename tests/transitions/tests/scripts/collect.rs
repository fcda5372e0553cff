//! `collect`: the tasks that run together with one that the worker holds.

use optimus_core::TaskState;

use crate::{
    acts::{done, lease, ms},
    bench::Bench,
    gathers::{gathered, many_of, three_of},
};

async fn a_run_gets_the_others_under_one_token_of_their_own(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let tasks = gathered(0, 3, &three_of("a"));
    bench.submit(0, &tasks).await;
    let leader = bench.take(1, &worker, 1).await;
    let collected = bench.collect(2, &leader, 2).await;
    assert_eq!((collected.grants.len(), collected.more), (2, false));
    assert_eq!(collected.token.seq, 1, "the number of the claim");
    assert!(collected.token.fence > leader.token.fence);
    let expected = tasks.iter().find(|task| *task.id() == collected.grants[0].id).unwrap();
    assert_eq!(collected.grants[0].record, expected.stored());
    bench.assert_gathering("a", &[], None).await;
    assert_eq!(bench.field("meta", "blocked").await.as_deref(), Some("0"));
    let mut leases = vec![leader];
    leases.extend(collected.grants.iter().map(|g| lease(&g.id, &worker, collected.token)));
    for lease in &leases {
        assert_eq!(bench.state(&lease.id).await, TaskState::Working);
    }
    let reports: Vec<_> = leases.iter().map(done).collect();
    assert!(bench.complete(3, &reports).await.is_empty());
    assert_eq!(bench.now().counts(&bench.queue).await.unwrap().recent_successes, 3);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn only_the_worker_that_holds_the_leader_collects(bench: Bench) {
    let (worker, other) = (bench.worker(0, "w").await, bench.worker(0, "other").await);
    bench.submit(0, &gathered(0, 3, &three_of("a"))).await;
    let leader = bench.take(1, &worker, 1).await;
    let stranger = lease(&leader.id, &other, leader.token);
    assert!(bench.at(2).collect(&stranger, 2).await.unwrap().is_none());
    bench.complete(3, &[done(&leader)]).await;
    assert!(bench.at(4).collect(&leader, 2).await.unwrap().is_none(), "it has ended");
    assert_eq!(bench.gathering("a").await.len(), 3, "nothing has moved");
}

async fn each_task_is_collected_once(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.submit(0, &gathered(0, 3, &three_of("a"))).await;
    let leader = bench.take(1, &worker, 1).await;
    assert_eq!(bench.collect(2, &leader, 2).await.grants.len(), 2);
    let again = bench.collect(2, &leader, 2).await;
    assert_eq!((again.grants.len(), again.more), (0, false));
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_run_never_has_more_than_it_wants_and_the_rest_is_due_at_once(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.submit(0, &gathered(0, 7, &three_of("a"))).await;
    let leader = bench.take(1, &worker, 1).await;
    let collected = bench.collect(2, &leader, 2).await;
    assert_eq!((collected.grants.len(), collected.more), (2, false));
    assert_eq!((bench.gathering("a").await.len(), bench.due_run("a").await), (4, Some(2)));
    let second = bench.run_of(3, &worker, 2).await;
    assert_eq!(second.len(), 4, "this one asked for more than its definition says");
    bench.assert_gathering("a", &[], None).await;
}

async fn the_rest_waits_for_its_own_time(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.submit(0, &gathered(0, 3, &three_of("a"))).await;
    let leader = bench.take(1, &worker, 1).await;
    let late = bench.add_gathered(2, &three_of("a")).await;
    assert_eq!(bench.collect(5_000, &leader, 2).await.grants.len(), 2);
    bench.assert_gathering("a", &[(&late, 2)], Some(10_002)).await;
    assert!(bench.claim(10_001, &worker, 2, 9).await.grants.is_empty());
    assert_eq!(bench.take(10_002, &worker, 3).await.id, late);
}

async fn a_large_run_collects_in_several_calls_and_leads_until_the_last(bench: Bench) {
    let (worker, other) = (bench.worker(0, "w").await, bench.worker(0, "other").await);
    bench.submit(0, &gathered(0, 300, &many_of("a"))).await;
    let leader = bench.take(10_000, &worker, 1).await;
    let first = bench.collect(10_001, &leader, 299).await;
    assert_eq!((first.grants.len(), first.more), (128, true));
    assert!(bench.claim(10_002, &other, 1, 9).await.grants.is_empty(), "one leads");
    let second = bench.collect(10_003, &leader, 299 - 128).await;
    assert_eq!((second.grants.len(), second.more), (128, true));
    assert!(second.token.fence > first.token.fence);
    let third = bench.collect(10_004, &leader, 299 - 256).await;
    assert_eq!((third.grants.len(), third.more), (43, false));
    bench.assert_gathering("a", &[], None).await;
}

async fn a_run_of_one_lets_the_others_continue(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.submit(0, &gathered(0, 3, &three_of("a"))).await;
    let leader = bench.take(1, &worker, 1).await;
    let alone = bench.collect(2, &leader, 0).await;
    assert_eq!((alone.grants.len(), alone.more), (0, false));
    assert_eq!((bench.gathering("a").await.len(), bench.due_run("a").await), (2, Some(10_000)));
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    assert_eq!(bench.run_of(10_000, &worker, 2).await.len(), 2);
}

async fn a_repeated_claim_answers_with_the_leader_alone(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.submit(0, &gathered(0, 3, &three_of("a"))).await;
    let leader = bench.take(1, &worker, 1).await;
    bench.collect(2, &leader, 2).await;
    assert_eq!(bench.take_again(3, &worker, 1).await, [leader.id]);
}

async fn a_task_that_runs_alone_collects_nothing(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.add(0, crate::jobs::job()).await;
    let plain = bench.take(1, &worker, 1).await;
    let collected = bench.collect(2, &plain, 5).await;
    assert_eq!((collected.grants.len(), collected.more), (0, false));
}

async fn a_heartbeat_shows_what_was_collected(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.submit(0, &gathered(0, 3, &three_of("a"))).await;
    let run = bench.run_of(1, &worker, 1).await;
    let renewed = bench.at(2).renew(&bench.queue, &worker, ms(15_000)).await.unwrap();
    assert_eq!(renewed.held.len(), 3);
    for lease in run {
        assert!(renewed.held.contains(&(lease.id, lease.token)));
    }
}

on_both! {
    a_run_gets_the_others_under_one_token_of_their_own,
    only_the_worker_that_holds_the_leader_collects,
    each_task_is_collected_once,
    a_run_never_has_more_than_it_wants_and_the_rest_is_due_at_once,
    the_rest_waits_for_its_own_time,
    a_large_run_collects_in_several_calls_and_leads_until_the_last,
    a_run_of_one_lets_the_others_continue,
    a_repeated_claim_answers_with_the_leader_alone,
    a_task_that_runs_alone_collects_nothing,
    a_heartbeat_shows_what_was_collected,
}
