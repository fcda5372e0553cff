//! A worker in a process without a tracing subscriber prints to stderr how to get a log.

mod common;

use std::{env, time::Duration};

use common::{Bench, Double};
use optimus_testkit::{EachEvent, Proc};
use optimus_worker::{Worker, WorkerBuilder};
use tracing::subscriber::set_global_default;

const PATIENCE: Duration = Duration::from_secs(20);
const HINT: &str = "no tracing subscriber is installed";

fn worker() -> WorkerBuilder {
    Worker::builder("memory://no-subscriber").only_named_tasks().task_type::<Double>()
}

async fn two_of(worker: impl Fn() -> WorkerBuilder) {
    for _ in 0..2 {
        worker().build().unwrap().run_until(async {}).await.unwrap();
    }
    println!("both workers have ended");
}

#[tokio::test]
#[ignore = "run by its parent"]
async fn two_workers() {
    two_of(worker).await;
}

#[tokio::test]
#[ignore = "run by its parent"]
async fn two_quiet_workers() {
    two_of(|| worker().quiet()).await;
}

#[tokio::test]
#[ignore = "run by its parent"]
async fn two_workers_with_a_subscriber() {
    set_global_default(EachEvent::new(drop)).unwrap();
    two_of(worker).await;
}

/// Returns how often a process that runs this test prints the hint.
async fn hints(test: &str) -> usize {
    let mut process = Bench::on_memory().await.child(test).start();
    let status = process.wait(PATIENCE).await;
    let lines = process.lines();
    assert!(
        status.success() && lines.iter().any(|line| line == "both workers have ended"),
        "{lines:#?}"
    );
    lines.iter().filter(|line| line.contains(HINT)).count()
}

#[tokio::test]
async fn a_process_without_a_subscriber_prints_once_how_to_get_a_log() {
    assert_eq!(hints("two_workers").await, 1);
}

#[tokio::test]
async fn a_process_with_a_subscriber_or_with_quiet_workers_prints_no_hint() {
    assert_eq!(hints("two_workers_with_a_subscriber").await, 0);
    assert_eq!(hints("two_quiet_workers").await, 0);
}

#[tokio::test]
async fn a_worker_whose_stderr_is_full_or_closed_still_runs() {
    let test = env::current_exe().unwrap();
    for stderr in ["2>/dev/full", "2>&-"] {
        let command =
            format!("exec {} two_workers --exact --ignored --nocapture {stderr}", test.display());
        let mut process = Proc::program("sh").arg("-c").arg(command).start();
        let status = process.wait(PATIENCE).await;
        assert!(status.success(), "{stderr}: {:#?}", process.lines());
    }
}
