//! A worker whose process is stopped for longer than its lease, and that nobody reaps.

use std::{
    future::pending,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant, SystemTime},
};

use crate::common::{Bench, died_of};
use optimus_core::{BoxError, Context, Reason, StatsUnit, Task, TaskOptions};
use optimus_testkit::{Proc, eventually};
use serde::{Deserialize, Serialize};

/// A worker renews its lease after a third of it, so two thirds are left when it is stopped.
const LEASE: Duration = Duration::from_secs(6);
/// It passes during a stop, and not between the begin of an attempt and the stop.
const TIMEOUT: Duration = Duration::from_secs(3);
const SOON: Duration = Duration::from_secs(60);

/// How many runs have begun in this process.
static RUNS: AtomicU32 = AtomicU32::new(0);

/// A task that has no retries. So many runs last until they are dropped, and the next one succeeds.
#[derive(Serialize, Deserialize)]
struct Slow {
    runs: u32,
}

impl Task for Slow {
    const NAME: &'static str = "slow";
    type Output = u32;

    fn options() -> TaskOptions {
        TaskOptions::new().timeout(TIMEOUT).max_retry(0)
    }

    async fn run(self, ctx: Context) -> Result<u32, BoxError> {
        println!("begin attempt {}", ctx.attempt());
        if RUNS.fetch_add(1, Ordering::Relaxed) < self.runs {
            pending::<()>().await;
        }
        Ok(ctx.attempt())
    }
}

/// The timeout of [`Blocks`]. Its process is stopped for two thirds of a lease or longer.
const BLOCKS_FOR: Duration = Duration::from_secs(3);

/// A handler that blocks notices such a stop.
const NOTICED: Duration = Duration::from_millis(3_500);

/// A task that has no retries and blocks a thread until its process was stopped, and for half of
/// its timeout after that.
#[derive(Serialize, Deserialize)]
enum Blocks {
    /// A thread for blocking work.
    OwnThread,
    /// A thread of the runtime.
    Runtime,
}

impl Task for Blocks {
    const NAME: &'static str = "blocks";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().timeout(BLOCKS_FOR).max_retry(0)
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        // On a busy machine, its lease may be over before it ends. Then it runs again, and no
        // second stop would end that.
        if ctx.attempt() > 1 {
            return Ok(());
        }
        match self {
            Self::OwnThread => ctx.run_blocking(|| block("its own thread")).await,
            Self::Runtime => block("a thread of the runtime"),
        }
        Ok(())
    }
}

fn block(thread: &str) {
    let mut looked = Instant::now();
    for looks in 0.. {
        if looked.elapsed() > BLOCKS_FOR {
            break;
        }
        // By this time, the worker has checked its attempts.
        if looks == 50 {
            println!("blocks {thread}");
        }
        looked = Instant::now();
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(BLOCKS_FOR / 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it is the child process of other tests"]
async fn a_worker_process_for_the_next_tests() {
    let bench = Bench::of_parent().await;
    let worker = bench.worker().lease(LEASE).concurrency(2);
    worker.task_type::<Slow>().task_type::<Blocks>().run().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_whose_time_passes_while_its_process_is_stopped_is_lost_and_has_not_failed() {
    let bench = Bench::on_redis().await;
    let handle = bench.client.submit(Slow { runs: 1 }.call()).await.unwrap();
    let worker = bench.child("process_stops::a_worker_process_for_the_next_tests").start();
    stop_while_it_runs(&bench, &worker, 1).await;
    assert_eq!(handle.result_within(SOON).await.unwrap(), 2);
    let (inspector, hour) = (bench.client.inspector(), StatsUnit::Hour);
    let counted = async || inspector.stats("default", hour, 2).await.unwrap().total();
    let is_counted = async || counted().await.ended() == 2;
    eventually("the statistics have both attempts", SOON, is_counted).await;
    let counted = counted().await;
    assert_eq!((counted.successes, counted.retries, counted.losses), (1, 1, 1));
    assert_eq!(counted.run.count(), 1, "how long the lost one ran says nothing");
}

/// Stops the process until its lease is over, once the handler has begun this attempt.
async fn stop_while_it_runs(bench: &Bench, worker: &Proc, attempt: u32) {
    worker.wait_for_line(&format!("begin attempt {attempt}"), SOON).await;
    stop_until_its_lease_is_over(bench, worker).await;
}

async fn stop_until_its_lease_is_over(bench: &Bench, worker: &Proc) {
    worker.signal("STOP");
    let stopped = Instant::now();
    eventually("its lease is over", SOON, async || {
        let workers = bench.client.inspector().workers("default").await.unwrap();
        let is_over = |until| SystemTime::from(until) < SystemTime::now();
        // On a busy machine, little of the lease may be left when it is stopped.
        stopped.elapsed() > NOTICED && workers.iter().all(|worker| is_over(worker.lease_until))
    })
    .await;
    worker.signal("CONT");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_whose_process_is_stopped_each_time_it_runs_is_dead_after_its_losses() {
    let bench = Bench::on_redis().await;
    let call = Slow { runs: u32::MAX }.call().max_losses(1);
    let handle = bench.client.submit(call).await.unwrap();
    let worker = bench.child("process_stops::a_worker_process_for_the_next_tests").start();
    // Before its last loss counts, it runs alone.
    stop_while_it_runs(&bench, &worker, 1).await;
    stop_while_it_runs(&bench, &worker, 2).await;
    died_of(&handle, Reason::Lost).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_while_its_process_is_stopped_for_its_whole_timeout_may_succeed() {
    let bench = Bench::on_redis().await;
    let own_thread = bench.client.submit(Blocks::OwnThread.call()).await.unwrap();
    let runtime = bench.client.submit(Blocks::Runtime.call()).await.unwrap();
    let worker = bench.child("process_stops::a_worker_process_for_the_next_tests").start();
    worker.wait_for_line("blocks its own thread", SOON).await;
    worker.wait_for_line("blocks a thread of the runtime", SOON).await;
    stop_until_its_lease_is_over(&bench, &worker).await;
    own_thread.result_within(SOON).await.unwrap();
    runtime.result_within(SOON).await.unwrap();
}
