//! Workers on a Redis that may lose tasks say so once in a process.

use std::{env, time::Duration};

use crate::common::{Bench, Double};
use optimus_testkit::{EachEvent, RedisServer};
use optimus_worker::Worker;
use tracing::{Level, subscriber::set_global_default};

const PATIENCE: Duration = Duration::from_secs(20);
const SERVER: &str = "CHILD_SERVER";
const RISK: &str = "set appendonly yes";

async fn two_workers() {
    let url = env::var(SERVER).unwrap();
    for _ in 0..2 {
        let worker = Worker::builder(&url).only_named_tasks().task_type::<Double>();
        worker.build().unwrap().run_until(async {}).await.unwrap();
    }
    println!("both workers have ended");
}

#[tokio::test]
#[ignore = "run by its parent"]
async fn two_workers_without_a_log() {
    two_workers().await;
}

#[tokio::test]
#[ignore = "run by its parent"]
async fn two_workers_with_a_log() {
    let print = |event: optimus_testkit::LogEvent| println!("log: {}", event.message());
    set_global_default(EachEvent::new(print).of("optimus").at(Level::WARN)).unwrap();
    two_workers().await;
}

/// Returns the lines of a process about the risk.
async fn lines_about_the_risk(test: &str) -> Vec<String> {
    let server = RedisServer::start();
    let process = Bench::on_memory().await.child(test);
    let mut process = process.env(SERVER, server.url()).start();
    let status = process.wait(PATIENCE).await;
    let lines = process.lines();
    let has = |part: &str| lines.iter().any(|line| line.contains(part));
    assert!(status.success() && has("both workers have ended"), "{lines:#?}");
    assert!(has("appendonly no"), "the banner has the settings: {lines:#?}");
    lines.into_iter().filter(|line| line.contains(RISK)).collect()
}

#[tokio::test]
async fn a_log_has_the_risk_once_and_the_banner_does_not_repeat_it() {
    let lines = lines_about_the_risk("store_risks::two_workers_with_a_log").await;
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].starts_with("log: "), "{lines:#?}");
}

#[tokio::test]
async fn without_a_log_the_first_banner_has_the_risk() {
    let lines = lines_about_the_risk("store_risks::two_workers_without_a_log").await;
    assert_eq!(lines.len(), 1, "{lines:#?}");
}
