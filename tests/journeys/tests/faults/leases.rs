//! A failure in one queue of a worker does not affect the others.

use std::time::Duration;

use crate::common::{Bench, Double, Gate, Wait};
use optimus_core::{QueueName, Task, WorkerId};
use optimus_testkit::{RedisServer, eventually};
use tokio::time::{Instant, sleep};

const SOON: Duration = Duration::from_secs(20);
const LEASE: Duration = Duration::from_secs(3);
const WATCHED: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_whose_heartbeats_are_refused_costs_the_others_none() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let mut raw = bench.raw().await;
    let worker = bench.worker().lease(LEASE).queues(["good", "bad"]).task_type::<Double>();
    let worker = bench.start(worker);
    let (good, bad) = (bench.key("good", "workers"), bench.key("bad", "workers"));
    let is_there = async || raw.run(&format!("EXISTS {good} {bad}")).await[0] == b"2";
    eventually("the worker serves both queues", SOON, is_there).await;

    raw.run(&format!("SET {bad} foreign")).await;
    let until = Instant::now() + WATCHED;
    let (mut expiry, mut renewals) = (Vec::new(), 0);
    while Instant::now() < until {
        let now = raw.run(&format!("ZRANGE {good} 0 -1 WITHSCORES")).await;
        renewals += u32::from(now != expiry);
        expiry = now;
        sleep(Duration::from_millis(10)).await;
    }
    // The good queue has a heartbeat each 0.65 to 1 s, and the refused queue has one each 0.25 s.
    assert!((3..=9).contains(&renewals), "{renewals} renewals in {WATCHED:?}");
    let handle = bench.client.submit(Double { number: 21 }.call().queue("good")).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 42);
    raw.run(&format!("UNLINK {bad}")).await;
    let handle = bench.client.submit(Double { number: 21 }.call().queue("bad")).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 42, "the task runs under a new id");
    worker.stop().await;
}

/// The number of workers. With this many workers, idle ones have leases of twice the usual length.
const MANY: usize = 16;

/// Waits until all leases are long.
async fn all_are_idle(bench: &Bench) {
    let workers = bench.key("default", "workers");
    let mut raw = bench.raw().await;
    let all_long = async || {
        let scores = raw.run(&format!("ZRANGE {workers} 0 -1 WITHSCORES")).await;
        let long = scores.iter().skip(1).step_by(2).filter(|score| score.ends_with(b".5"));
        long.count() == MANY
    };
    eventually("all leases are long", SOON, all_long).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_of_an_idle_worker_among_many_runs_once_for_longer_than_any_lease() {
    let lease = Duration::from_millis(1_500);
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let gate = Gate::new();
    let worker = || bench.worker().lease(lease).data(gate.clone()).task_type::<Wait>();
    let workers: Vec<_> = (0..MANY).map(|_| bench.start(worker())).collect();
    all_are_idle(&bench).await;
    let handle = bench.client.submit(Wait {}.call()).await.unwrap();
    gate.began.wait_for(1).await;
    let holder_until_ms = async || {
        let workers = bench.client.inspector().workers(handle.id().queue()).await.unwrap();
        let holder = workers.iter().find(|worker| worker.running.contains(handle.id()));
        holder.map_or(0, |worker| worker.lease_until.timestamp_millis())
    };
    let begun_ms = holder_until_ms().await;
    let is_kept = async || holder_until_ms().await > begun_ms + 4_500;
    eventually("the lease is renewed three times", SOON, is_kept).await;
    assert_eq!(gate.began.hits(), 1, "the lease was kept");
    gate.open.hit();
    handle.result_within(SOON).await.unwrap();
    for worker in workers {
        worker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_a_dead_worker_that_was_idle_among_many_run_again_after_a_lease() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let (queue, ghost) = (QueueName::new("default").unwrap(), WorkerId::generate("ghost", 1));
    let worker = || bench.start(bench.worker().lease(LEASE).task_type::<Double>());
    let workers: Vec<_> = (1..MANY).map(|_| worker()).collect();
    let broker = bench.client.broker();
    broker.register(&queue, &ghost, LEASE, "{}").await.unwrap();
    let is_long = async || broker.renew(&queue, &ghost, LEASE).await.unwrap().lease > LEASE;
    eventually("the lease of the ghost is long", SOON, is_long).await;
    all_are_idle(&bench).await;

    // The first worker that claims gets the tasks, and at some time this is the ghost.
    let (mut handles, mut taken) = (Vec::new(), 0);
    for seq in 1.. {
        let calls = (0..50).map(|number| Double { number }.call());
        handles.extend(bench.client.submit_all(calls).await.unwrap());
        taken = broker.claim(&queue, &ghost, seq, 50).await.unwrap().grants.len();
        if taken > 0 {
            break;
        }
    }
    let died_at = Instant::now();
    for handle in &handles {
        handle.result_within(SOON).await.unwrap();
    }
    let took = died_at.elapsed();
    assert!(took <= LEASE + Duration::from_secs(1), "{taken} tasks came back after {took:?}");
    assert!(took >= LEASE.mul_f64(0.9), "{taken} tasks came back after {took:?}");
    for worker in workers {
        worker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_workers_of_a_queue_share_its_polls() {
    const WORKERS: usize = 12;
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let mut raw = bench.raw().await;
    let worker = || bench.worker().lease(LEASE).poll(Duration::from_millis(100));
    let workers: Vec<_> =
        (0..WORKERS).map(|_| bench.start(worker().task_type::<Double>())).collect();
    // Each worker has one heartbeat in a second. Ten polls of each worker would be 120 more.
    let mut scripts = async || {
        let info = String::from_utf8(raw.run("INFO commandstats").await.remove(0)).unwrap();
        let line = info.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
        line.and_then(|line| line.split(',').next()?.parse::<u32>().ok()).unwrap_or(0)
    };
    let few = async || {
        let (before, began_at) = (scripts().await, Instant::now());
        sleep(Duration::from_secs(1)).await;
        let count = f64::from(scripts().await - before);
        before > 0 && count / began_at.elapsed().as_secs_f64() < 50.0
    };
    eventually("the workers share the polls", SOON, few).await;
    for worker in workers {
        worker.stop().await;
    }
}
