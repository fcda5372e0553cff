//! Lanes over several worker processes, of which one is killed and one is added: no task overtakes
//! another of its lane, and none begins before the former has ended.

use std::time::{Duration, Instant};

use optimus_core::{QueueName, Task};
use optimus_testkit::{Proc, RedisServer, eventually};

use crate::common::{
    Bench,
    steps::{Journal, Step, Verdict},
};

const SOON: Duration = Duration::from_secs(60);

#[derive(Clone, Copy)]
struct Size {
    lanes: u32,
    steps: u32,
    within: Duration,
}

/// Long enough for a machine that is busy, so that no live worker is taken for a dead one.
const LEASE: Duration = Duration::from_secs(5);

/// How many tasks a worker process runs at once.
const SLOTS: usize = 64;

#[tokio::test]
#[ignore = "a process for other tests, which start it with what it needs"]
async fn a_worker_process_for_the_other_tests() {
    let bench = Bench::of_parent().await;
    let journal = Journal::in_redis(&bench.url()).await;
    let worker = bench.worker().lease(LEASE).task_type::<Step>().data(journal);
    let _worker = bench.start(worker.concurrency(SLOTS));
    println!("works");
    // It works until it is killed, however long the run takes.
    std::future::pending::<()>().await;
}

async fn worker_process(bench: &Bench) -> Proc {
    let process = bench.child("lanes::a_worker_process_for_the_other_tests").start();
    process.wait_for_line("works", SOON).await;
    process
}

/// The steps of all lanes, lane after lane. One in twenty fails once, and one in two hundred dies.
fn steps(size: &Size) -> impl Iterator<Item = Step> {
    let (lanes, steps) = (size.lanes, size.steps);
    (0..lanes * steps).map(move |at| {
        let (number, lane, chance) = (at / lanes, at % lanes, at.wrapping_mul(7_919) % 200);
        Step { lane, number, fails: u32::from(chance < 10), dies: chance == 10 }
    })
}

async fn runs_in_order(size: Size) {
    let redis = RedisServer::start();
    let bench = Bench::at(&redis.url()).await;
    let journal = Journal::in_redis(&redis.url()).await;
    let (mut doomed, _second) = (worker_process(&bench).await, worker_process(&bench).await);
    let begun = Instant::now();
    let submits = async {
        let mut steps = steps(&size);
        loop {
            let calls: Vec<_> = steps.by_ref().take(10_000).map(Task::call).collect();
            if calls.is_empty() {
                break;
            }
            bench.client.submit_all(calls).await.unwrap();
        }
    };
    let all = (size.lanes * size.steps) as usize;
    let harm = async {
        let some_ran = async || journal.len().await > all / 2;
        eventually("a quarter has run", size.within, some_ran).await;
        doomed.kill9();
        worker_process(&bench).await
    };
    let ((), _added) = tokio::join!(submits, harm);
    let (inspector, queue) = (bench.client.inspector(), QueueName::new("default").unwrap());
    let ended = async || {
        let now = inspector.counts(&queue).await.unwrap();
        now.ready + now.blocked + now.retry + now.working == 0
    };
    eventually("all have ended", size.within, ended).await;
    let took = begun.elapsed();
    let verdict = Verdict::of(&journal.lines().await);
    let first = &verdict.problems[..verdict.problems.len().min(5)];
    assert!(first.is_empty(), "{} problems, such as {first:?}", verdict.problems.len());
    assert_eq!(verdict.ended, all, "each step has ended");
    assert!(verdict.reruns <= SLOTS, "{} attempts were repeated", verdict.reruns);
    println!(
        "{} lanes x {} steps in {took:.1?}: in order; the killed worker cost {} repeats",
        size.lanes, size.steps, verdict.reruns
    );
    let lanes = journal.keys(&bench.key("default", "lane")).await;
    assert!(lanes.is_empty(), "an empty lane leaves no key: {lanes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_task_overtakes_another_of_its_lane_while_workers_come_and_go() {
    runs_in_order(Size { lanes: 50, steps: 40, within: SOON }).await;
}

mod long {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "minutes; cargo xtask scale runs it"]
    async fn no_task_overtakes_another_in_a_thousand_lanes_of_a_thousand_tasks() {
        let within = Duration::from_secs(1_800);
        runs_in_order(Size { lanes: 1_000, steps: 1_000, within }).await;
    }
}
