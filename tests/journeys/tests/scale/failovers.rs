//! A client waits in a loop for five thousand tasks that return nothing. All of them have ended
//! before a failover from one real server to another.

use std::time::Duration;

use optimus_core::{QueueName, Task, TaskHandle, TaskOptions, TaskState};
use optimus_testkit::{FaultProxy, eventually};
use optimus_worker::WorkerBuilder;

use crate::common::{Bench, Raw, server_pair::Pair};

const TASKS: usize = 5_000;
const SOON: Duration = Duration::from_secs(60);

crate::idle_task!(Unit, "unit", TaskOptions::new());

/// A client and a worker whose address leads to one server of a pair.
struct Site {
    pair: Pair,
    proxy: FaultProxy,
    bench: Bench,
}

impl Site {
    async fn start() -> Self {
        let pair = Pair::start().await;
        let proxy = FaultProxy::start(&pair.primary.url()).await;
        let bench = Bench::at(&proxy.url()).await;
        Self { pair, proxy, bench }
    }

    fn worker(&self) -> WorkerBuilder {
        self.bench.worker().task_type::<Unit>().concurrency(256)
    }

    /// Runs this many tasks to their ends.
    async fn run_all(&self, tasks: usize) -> Vec<TaskHandle<()>> {
        let calls = (0..tasks).map(|_| Unit {}.call());
        let handles = self.bench.client.submit_all(calls).await.unwrap();
        let (inspector, queue) =
            (self.bench.client.inspector(), QueueName::new("default").unwrap());
        let ended = async || {
            let counts = inspector.counts(&queue).await;
            counts.is_ok_and(|counts| counts.ready + counts.working == 0)
        };
        eventually("all tasks have ended", SOON, ended).await;
        handles
    }

    /// Kills the primary, and the replica takes its place.
    async fn fail_over(&mut self) {
        self.pair.primary.kill();
        self.pair.promote().await;
        self.proxy.lead_to(&self.pair.replica.url());
        self.proxy.cut();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_are_ok_after_a_failover_that_kept_them() {
    let mut site = Site::start().await;
    let worker = site.bench.start(site.worker());
    let handles = site.run_all(TASKS).await;
    let mut primary = Raw::connect(&site.pair.primary.url()).await;
    primary.run("SET last 1").await;
    assert_eq!(primary.run("WAIT 1 30000").await, [b"1"], "the replica has all tasks");
    site.fail_over().await;
    for handle in &handles {
        handle.result_within(SOON).await.unwrap();
    }
    for handle in site.run_all(100).await {
        handle.result_within(SOON).await.unwrap();
    }
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_are_never_ok_after_a_failover_that_lost_them() {
    let mut site = Site::start().await;
    let worker = site.bench.start(site.worker());
    let kept = site.run_all(1_000).await;
    let mut primary = Raw::connect(&site.pair.primary.url()).await;
    primary.run("SET last 1").await;
    assert_eq!(primary.run("WAIT 1 30000").await, [b"1"], "the replica has the first tasks");
    site.pair.promote().await;
    let lost = site.run_all(TASKS).await;
    site.fail_over().await;
    for _ in 0..2 {
        for handle in &lost {
            let problem = handle.result_within(SOON).await.unwrap_err();
            assert!(problem.is_forgotten(), "{problem}");
            assert_eq!(handle.status().await.unwrap(), TaskState::Forgotten);
        }
        for handle in &kept {
            handle.result_within(SOON).await.unwrap();
        }
        // New submits may get the numbers of the lost ones.
        site.run_all(TASKS).await;
    }
    worker.stop().await;
}
