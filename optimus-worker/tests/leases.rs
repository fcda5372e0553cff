//! What befalls one queue of a worker costs the others nothing.

mod common;

use std::time::Duration;

use common::{Bench, Double};
use optimus_core::Task;
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
    eventually("it serves both", SOON, is_there).await;

    raw.run(&format!("SET {bad} foreign")).await;
    let until = Instant::now() + WATCHED;
    let (mut expiry, mut renewals) = (Vec::new(), 0);
    while Instant::now() < until {
        let now = raw.run(&format!("ZRANGE {good} 0 -1 WITHSCORES")).await;
        renewals += u32::from(now != expiry);
        expiry = now;
        sleep(Duration::from_millis(10)).await;
    }
    // Each 0.65 to 1 s; each 0.25 s the one that is refused.
    assert!((3..=9).contains(&renewals), "{renewals} renewals in {WATCHED:?}");
    let handle = bench.client.submit(Double { number: 21 }.call().queue("good")).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 42);
    raw.run(&format!("UNLINK {bad}")).await;
    let handle = bench.client.submit(Double { number: 21 }.call().queue("bad")).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 42, "under a new id");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_workers_of_a_queue_share_the_looks_at_it() {
    const WORKERS: usize = 12;
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let mut raw = bench.raw().await;
    let worker = || bench.worker().lease(LEASE).poll(Duration::from_millis(100));
    let workers: Vec<_> =
        (0..WORKERS).map(|_| bench.start(worker().task_type::<Double>())).collect();
    // A heartbeat each a second; ten looks each would be 120 more.
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
    eventually("they share the looks", SOON, few).await;
    for worker in workers {
        worker.stop().await;
    }
}
