//! Lanes over several worker processes, of which one is killed and one is added. No task overtakes
//! another of its lane, and none begins before the previous one has ended.

use std::time::{Duration, Instant};

use optimus_core::{QueueName, Task};
use optimus_testkit::{Proc, RedisServer, eventually};

use crate::common::{
    Bench,
    steps::{Journal, Step, Verdict, step},
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
#[ignore = "other tests start this process with its settings"]
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

/// The most bytes that a waiting task of a lane takes in addition to its record.
const WAITING_BYTES_MAX: u64 = 150;

/// One tenant has submitted many tasks, and then ten others ten each. Each of the ten starts within
/// the first two turns of the claims.
async fn tenants_start_at_once(many: u32) {
    let redis = RedisServer::start();
    let bench = Bench::at(&redis.url()).await;
    let mut raw = bench.raw().await;
    let mut numbers = 0..many;
    loop {
        let calls: Vec<_> = numbers.by_ref().take(10_000).map(|number| step(0, number)).collect();
        if calls.is_empty() {
            break;
        }
        bench.client.submit_all(calls).await.unwrap();
    }
    let lane = bench.key("default", "lane:lane-0");
    let bytes = raw.run(&format!("MEMORY USAGE {lane} SAMPLES 0")).await.remove(0);
    let bytes: u64 = String::from_utf8(bytes).unwrap().parse().unwrap();
    let each = bytes / u64::from(many);
    assert!(each <= WAITING_BYTES_MAX, "{each} bytes for each waiting task");
    let few = (1..=10).flat_map(|tenant| (0..10).map(move |number| step(tenant, number)));
    bench.client.submit_all(few).await.unwrap();
    let journal = Journal::new();
    let worker = bench.worker().task_type::<Step>().data(journal.clone()).concurrency(16);
    let (worker, begun) = (bench.start(worker), Instant::now());
    let all_started = async || {
        let first = journal.begun().await;
        (1..=10).all(|tenant| first.contains(&format!("{tenant} 0")))
    };
    eventually("each tenant has started", SOON, all_started).await;
    let took = begun.elapsed();
    let first: Vec<String> = journal.begun().await.into_iter().take(2 * 16).collect();
    for tenant in 1..=10 {
        assert!(first.contains(&format!("{tenant} 0")), "tenant {tenant} waits: {first:?}");
    }
    println!(
        "next to {many} tasks, ten tenants started within {took:.1?} and the first 32 starts; \
              a waiting task takes {each} bytes besides its record"
    );
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_tenants_start_at_once_next_to_one_with_many_tasks() {
    tenants_start_at_once(5_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_task_overtakes_another_of_its_lane_while_workers_come_and_go() {
    runs_in_order(Size { lanes: 50, steps: 40, within: SOON }).await;
}

mod long {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "minutes; cargo xtask scale runs it"]
    async fn ten_tenants_start_at_once_next_to_one_with_a_million_tasks() {
        tenants_start_at_once(1_000_000).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "minutes; cargo xtask scale runs it"]
    async fn no_task_overtakes_another_in_a_thousand_lanes_of_a_thousand_tasks() {
        let within = Duration::from_secs(1_800);
        runs_in_order(Size { lanes: 1_000, steps: 1_000, within }).await;
    }
}
