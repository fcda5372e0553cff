//! Counts the memory allocations for a task, in a submit and in a worker. Unlike time, this number
//! is the same on a busy machine.
#![expect(clippy::cast_precision_loss, reason = "counts become means, whose last bits are noise")]

use std::alloc::System;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use optimus::{Client, Layer, Worker, WorkerBuilder};
use optimus_testkit::RedisServer;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, Stats, StatsAlloc};
use tokio::sync::Notify;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The number of tasks before the count begins, so that buffers have grown to their size.
const WARM_UP: u64 = 2_000;
const COUNTED: u64 = 10_000;
const IN_FLIGHT: usize = 100;
/// The time limit. A longer time is a hang.
const PATIENCE: Duration = Duration::from_secs(60);

static EXECUTED: AtomicU64 = AtomicU64::new(0);
static WARM: Notify = Notify::const_new();
static DONE: Notify = Notify::const_new();

#[optimus::task]
async fn work(number: u64, text: String) {
    drop((number, text));
    let executed = EXECUTED.fetch_add(1, Ordering::Relaxed) + 1;
    if executed == WARM_UP {
        WARM.notify_one();
    } else if executed == WARM_UP + COUNTED {
        DONE.notify_one();
    }
}

/// A layer that does nothing in each of its calls.
struct Plain;

impl Layer for Plain {}

fn text() -> String {
    "x".repeat(170)
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let redis = RedisServer::builder().tcp().start();
    let client = Client::connect(&redis.url()).await.expect("the worker was started above");
    println!("\n{:<24}{:>14}{:>14}", "a task", "allocations", "bytes");
    one_by_one(&client, "submit").await;
    let layered = Client::builder(&redis.url()).layer(Plain).connect().await;
    one_by_one(&layered.expect("the worker was started above"), "submit, one layer").await;
    in_batches(&client).await;
    let worker = || Worker::builder(&redis.url()).quiet().concurrency(IN_FLIGHT);
    for (what, worker) in
        [("execute, 100 in flight", worker()), ("execute, one layer", worker().layer(Plain))]
    {
        redis_is_emptied(&redis);
        executed(&client, worker, what).await;
    }
}

async fn one_by_one(client: &Client, what: &str) {
    let submit = async |numbers: std::ops::Range<u64>| {
        for number in numbers {
            client.submit(work(number, text())).await.expect("Redis is available");
        }
    };
    submit(0..WARM_UP).await;
    let region = Region::new(ALLOCATOR);
    submit(0..COUNTED).await;
    print(what, region.change());
}

async fn in_batches(client: &Client) {
    let submit = async |count: u64| {
        for _ in 0..count / 1_000 {
            let calls = (0..1_000).map(|number| work(number, text()));
            client.submit_all(calls).await.expect("Redis is available");
        }
    };
    submit(WARM_UP).await;
    let region = Region::new(ALLOCATOR);
    submit(COUNTED).await;
    print("submit_all by 1,000", region.change());
}

fn redis_is_emptied(redis: &RedisServer) {
    let connection = redis::Client::open(redis.url()).and_then(|client| client.get_connection());
    let mut connection = connection.expect("Redis is available");
    redis::cmd("FLUSHALL").exec(&mut connection).expect("Redis is available");
}

async fn executed(client: &Client, worker: WorkerBuilder, what: &str) {
    EXECUTED.store(0, Ordering::Relaxed);
    let calls = (0..WARM_UP + COUNTED).map(|number| work(number, text()));
    client.submit_all(calls).await.expect("Redis is available");
    let worker = worker.build().expect("plain settings");
    let counting = async {
        WARM.notified().await;
        let region = Region::new(ALLOCATOR);
        DONE.notified().await;
        print(what, region.change());
    };
    let counted = worker.run_until(tokio::time::timeout(PATIENCE, counting)).await;
    counted.expect("Redis is available").expect("all tasks are executed within a minute");
}

fn print(what: &str, stats: Stats) {
    let each = |count: usize| count as f64 / COUNTED as f64;
    let allocations = each(stats.allocations + stats.reallocations);
    println!("{what:<24}{allocations:>14.1}{:>14.0}", each(stats.bytes_allocated));
}
