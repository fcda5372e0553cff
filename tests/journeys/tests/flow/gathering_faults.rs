//! Gathered calls whose worker is killed or receives no answers. None of the calls is lost.

use std::future::pending;

use crate::common::{
    Bench, Gate,
    digests::{LoggedWorker, SOON, Way, become_all, builder, done, hundred, three, tries},
    orders::Log,
};
use optimus_core::{Reason, TaskState};
use optimus_testkit::{FaultProxy, Hold, Proc, Way as Direction, eventually};

const CALLS: u64 = 3_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "another test starts it as a process"]
async fn a_worker_process_for_the_other_test() {
    let bench = Bench::of_parent().await;
    let gate = Gate::new();
    let worker = bench.start(builder(&bench, &Log::default(), &gate));
    println!("works");
    gate.began.wait_for(1).await;
    println!("runs");
    pending::<()>().await;
    worker.stop().await;
}

async fn start(bench: &Bench) -> Proc {
    let worker = bench.child("gathering_faults::a_worker_process_for_the_other_test").start();
    worker.wait_for_line("works", SOON).await;
    worker
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_calls_of_a_run_whose_worker_is_killed_run_together_elsewhere() {
    let bench = Bench::on_redis().await;
    let calls = (1..=3).map(|number| three("ann", number, Way::Waits));
    let handles = bench.client.submit_all(calls).await.unwrap();
    let mut doomed = start(&bench).await;
    doomed.wait_for_line("runs", SOON).await;
    become_all(&handles, TaskState::Working).await;
    doomed.kill9();
    let logged = LoggedWorker::of(&bench);
    logged.gate.open.hit();
    for handle in &handles {
        assert_eq!(done(handle).await, [1, 2, 3]);
    }
    assert_eq!(logged.log.lines(), ["ann#2: [1, 2, 3]"], "the lost attempt counts");
    logged.worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_while_a_worker_is_killed_among_many_runs() {
    let bench = Bench::on_redis().await;
    let mut doomed = start(&bench).await;
    let calls = (0..CALLS).map(|n| hundred(&format!("user-{}", n % 10), n));
    let handles = bench.client.submit_all(calls).await.unwrap();
    doomed.wait_for_line("runs", SOON).await;
    doomed.kill9();
    let logged = LoggedWorker::of(&bench);
    for handle in &handles {
        assert!(!done(handle).await.is_empty());
    }
    logged.worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_kills_its_worker_is_dead_and_the_others_succeed() {
    let bench = Bench::on_redis().await;
    let ways = [Way::Plain, Way::Kills, Way::Plain];
    let calls = (1..).zip(ways).map(|(number, way)| three("ann", number, way));
    let handles = bench.client.submit_all(calls).await.unwrap();
    // The next loss would mark each of them Dead, so each runs alone, and one of them kills again.
    for _ in 0..3 {
        let mut doomed = start(&bench).await;
        doomed.wait(SOON).await;
    }
    let mut worker = start(&bench).await;
    crate::common::died_of(&handles[1], Reason::Lost).await;
    for handle in [&handles[0], &handles[2]] {
        assert_eq!(done(handle).await.len(), 1, "it ran alone after two losses");
        assert_eq!(handle.status().await.unwrap(), TaskState::Success);
    }
    assert_eq!(tries(&bench, handles[1].id()).await.1, 3);
    worker.kill9();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_while_answers_are_lost() {
    let near = Bench::on_redis().await;
    let proxy = FaultProxy::start(&near.url()).await;
    let far = Bench::shared(&proxy.url(), near.namespace()).await;
    let logged = LoggedWorker::with(&far, |builder| builder.concurrency(4));
    // A worker that has no answer while it starts ends with an error.
    let has_started =
        async || !near.client.inspector().workers("default").await.unwrap().is_empty();
    eventually("the worker has started", SOON, has_started).await;
    let calls = (0..CALLS).map(|n| hundred(&format!("user-{}", n % 10), n));
    let handles = near.client.submit_all(calls).await.unwrap();
    for wait in 1..=12 {
        proxy.drop_reply(wait);
        let last = handles.last().unwrap();
        let is_over = async || proxy.struck() || last.status().await.unwrap() == TaskState::Success;
        eventually("an answer is lost", SOON, is_over).await;
    }
    for handle in &handles {
        assert!(!done(handle).await.is_empty());
    }
    let left = near.client.inspector().counts("default").await.unwrap();
    assert_eq!((left.blocked, left.working, left.ready), (0, 0, 0), "{left:?}");
    logged.worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn the_calls_of_a_run_that_blocks_its_thread_time_out_together() {
    let bench = Bench::on_redis().await;
    let hold = Hold::new();
    let logged = LoggedWorker::with(&bench, |builder| builder.data(hold.clone()));
    let ways = [Way::Blocks, Way::Plain, Way::Plain];
    let soon = std::time::Duration::from_millis(300);
    let calls = (1..).zip(ways).map(|(number, way)| three("ann", number, way));
    let calls = calls.map(|call| call.timeout(soon).max_retry(0));
    let handles = bench.client.submit_all(calls).await.unwrap();
    for handle in &handles {
        crate::common::died_of(handle, Reason::TimedOut).await;
    }
    assert_eq!(logged.log.lines(), ["ann#1: [1, 2, 3]"]);
    hold.release();
    logged.worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_lease_is_lost_runs_elsewhere_and_its_late_end_changes_nothing() {
    let near = Bench::on_redis().await;
    let proxy = FaultProxy::start(&near.url()).await;
    let far = Bench::shared(&proxy.url(), near.namespace()).await;
    let cut_off = LoggedWorker::of(&far);
    let calls = (1..=3).map(|number| three("ann", number, Way::Waits));
    let handles = near.client.submit_all(calls).await.unwrap();
    cut_off.gate.began.wait_for(1).await;
    become_all(&handles, TaskState::Working).await;
    proxy.black_hole(Direction::Both);
    let next = LoggedWorker::of(&near);
    next.gate.began.wait_for(1).await;
    cut_off.gate.open.hit();
    proxy.pass();
    cut_off.worker.stop().await;
    assert_eq!(handles[1].status().await.unwrap(), TaskState::Working, "the next worker has it");
    next.gate.open.hit();
    for handle in &handles {
        assert_eq!(done(handle).await, [1, 2, 3]);
    }
    assert_eq!(next.log.lines(), ["ann#2: [1, 2, 3]"]);
    next.worker.stop().await;
}
