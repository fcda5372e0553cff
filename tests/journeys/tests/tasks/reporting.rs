//! Reports that Redis refuses, and other reports at the same time.

use std::time::Duration;

use crate::common::{Bench, died_of};
use optimus_core::{BoxError, Context, Reason, Task, TaskState};
use optimus_testkit::{RedisServer, Signal, eventually};
use serde::{Deserialize, Serialize};

const SOON: Duration = Duration::from_secs(30);

/// A task that returns this many bytes.
#[derive(Serialize, Deserialize)]
struct Return {
    bytes: usize,
}

impl Task for Return {
    const NAME: &'static str = "return";
    type Output = String;

    async fn run(self, ctx: Context) -> Result<String, BoxError> {
        if let Some(ran) = ctx.data::<Signal>() {
            ran.hit();
        }
        Ok("x".repeat(self.bytes))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_refuses_reports_delays_no_other_and_loses_nothing() {
    let bench = Bench::on_redis().await;
    let call = |queue| Return { bytes: 1 }.call().queue(queue);
    let mut raw = bench.raw().await;
    let success = bench.key("broken", "success");
    raw.run(&format!("SET {success} odd")).await;
    let held = bench.client.submit_all((0..2_000).map(|_| call("broken"))).await.unwrap();
    let builder = bench.worker().queues(["broken", "fine"]).concurrency(64);
    let ran = Signal::new();
    let worker = bench.start(builder.task_type::<Return>().data(ran.clone()));
    ran.wait_for(2_000).await;
    let fine = bench.client.submit_all((0..200).map(|_| call("fine"))).await.unwrap();
    for handle in fine {
        assert_eq!(handle.result_within(Duration::from_secs(5)).await.unwrap(), "x");
    }
    raw.run(&format!("DEL {success}")).await;
    for handle in held {
        assert_eq!(handle.result_within(SOON).await.unwrap(), "x");
    }
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_that_redis_does_not_take_ends_its_task_and_no_other() {
    let bench = Bench::on_redis().await;
    let call = || Return { bytes: 1 }.call();
    // The report of this task's success removes its blob. The other tasks have no blob.
    let culprit = bench.client.submit(call().priority(1)).await.unwrap();
    let blobs = bench.key("default", "blobs");
    let mut raw = bench.raw().await;
    raw.run(&format!("SET {blobs} odd")).await;
    let worker = bench.start(bench.worker().task_type::<Return>());
    eventually("the other reports pass, and the task is dead", SOON, async || {
        let other = bench.client.submit(call()).await.unwrap();
        assert_eq!(other.result_within(SOON).await.unwrap(), "x");
        culprit.status().await.unwrap() == TaskState::Dead
    })
    .await;
    raw.run(&format!("DEL {blobs}")).await;
    died_of(&culprit, Reason::Unreported).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_redis_would_not_take_ends_its_task_with_what_to_raise() {
    for setting in ["--proto-max-bulk-len", "--client-query-buffer-limit"] {
        let server = RedisServer::builder().arg(setting, "1mb").start();
        let bench = Bench::at(&server.url()).await;
        let worker = bench.start(bench.worker().result_limit(8 << 20).task_type::<Return>());
        let large = bench.client.submit(Return { bytes: 2_000_000 }.call()).await.unwrap();
        let problem = large.result_within(SOON).await.unwrap_err();
        let last = problem.attempt_error().expect("the task is dead");
        assert_eq!(last.reason, Reason::ResultTooLarge);
        assert!(last.message.contains(&setting["--".len()..]), "{}", last.message);
        let fits = bench.client.submit(Return { bytes: 900_000 }.call()).await.unwrap();
        assert_eq!(fits.result_within(SOON).await.unwrap().len(), 900_000);
        worker.stop().await;
    }
}

on_both! {
    async fn a_result_above_the_limit_ends_its_task_with_that_reason(bench: Bench) {
        let builder = bench.worker().result_limit(1_000).task_type::<Return>();
        let worker = bench.start(builder);
        let large = bench.client.submit(Return { bytes: 1_000 }.call()).await.unwrap();
        let fits = bench.client.submit(Return { bytes: 998 }.call()).await.unwrap();
        assert_eq!(fits.result_within(SOON).await.unwrap().len(), 998);
        died_of(&large, Reason::ResultTooLarge).await;
        worker.stop().await;
    }
}
