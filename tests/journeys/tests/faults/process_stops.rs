//! A worker whose process is stopped for longer than its lease, and that nobody reaps.

use std::{
    future::pending,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use crate::common::Bench;
use optimus_core::{BoxError, Context, Task, TaskOptions};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

const LEASE: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(60);

/// How many runs have begun in this process.
static RUNS: AtomicU32 = AtomicU32::new(0);

/// A task that has no retries. Its first run lasts until it is dropped, and the next one succeeds.
#[derive(Serialize, Deserialize)]
struct Slow {}

impl Task for Slow {
    const NAME: &'static str = "slow";
    type Output = u32;

    fn options() -> TaskOptions {
        TaskOptions::new().timeout(TIMEOUT).max_retry(0)
    }

    async fn run(self, ctx: Context) -> Result<u32, BoxError> {
        println!("begun");
        if RUNS.fetch_add(1, Ordering::Relaxed) == 0 {
            pending::<()>().await;
        }
        Ok(ctx.attempt())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it is the child process of another test"]
async fn a_worker_process_for_the_next_test() {
    let bench = Bench::of_parent().await;
    bench.worker().lease(LEASE).task_type::<Slow>().run().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_whose_time_passes_while_its_process_is_stopped_does_not_count() {
    let bench = Bench::on_redis().await;
    let handle = bench.client.submit(Slow {}.call()).await.unwrap();
    let worker = bench.child("process_stops::a_worker_process_for_the_next_test").start();
    worker.wait_for_line("begun", SOON).await;
    worker.signal("STOP");
    // The process is stopped for longer than its lease.
    sleep(LEASE + TIMEOUT).await;
    worker.signal("CONT");
    assert_eq!(handle.result_within(SOON).await.unwrap(), 1);
}
