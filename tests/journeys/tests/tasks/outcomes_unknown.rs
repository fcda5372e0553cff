//! The log events of attempts whose report Redis refuses, or does not answer.

use std::time::Duration;

use crate::common::{
    Bench, Gate, Running, Wait,
    log::{Log, PATIENCE},
};
use optimus_core::{Task, TaskId, WorkerId};
use optimus_testkit::{LogEvent, eventually};
use optimus_worker::WorkerBuilder;
use tracing::{Level, subscriber::set_default};

/// Starts a worker with a task, and waits until its handler has begun. It waits for the gate.
async fn begun(bench: &Bench, worker: WorkerBuilder) -> (Running, Gate, TaskId) {
    let gate = Gate::new();
    let worker = bench.start(worker.task_type::<Wait>().data(gate.clone()));
    let handle = bench.client.submit(Wait {}.call()).await.unwrap();
    gate.began.wait_for(1).await;
    (worker, gate, handle.id().clone())
}

/// Returns the only worker.
async fn holder(bench: &Bench) -> WorkerId {
    bench.client.inspector().workers("default").await.unwrap().remove(0).id
}

/// Checks that the event has the fields that each attempt has, and no other.
fn check(line: &LogEvent, outcome: &str, id: &TaskId) {
    assert_eq!((line.level, line.get("outcome")), (Level::WARN, outcome));
    assert_eq!((line.get("task"), line.get("id")), (Wait::NAME, &*id.to_string()));
    assert_eq!((line.get("queue"), line.get("attempt")), ("default", "1"));
    for time in ["run_ms", "wait_ms"] {
        assert!(line.get(time).parse::<u64>().is_ok(), "{line:?}");
    }
    assert_eq!(["reason", "error", "next_in_ms"].map(|name| line.get(name)), [""; 3]);
}

#[tokio::test]
async fn an_attempt_whose_report_is_refused_is_logged_as_stale() {
    let log = Log::at(Level::INFO);
    let _default = set_default(log.subscriber());
    let bench = Bench::on_redis().await;
    let (worker, gate, id) = begun(&bench, bench.worker()).await;
    // Redis forgets that the worker has the task, as after a failover that lost the claim.
    let working = bench.key("default", &format!("working:{}", holder(&bench).await));
    bench.raw().await.run(&format!("HDEL {working} {}", id.stored())).await;
    gate.open.hit();
    let line = log.first(Wait::NAME).await;
    check(&line, "stale", &id);
    assert_eq!(line.message(), "the lease is over; the outcome here does not count");
    worker.stop().await;
    assert_eq!(log.of(Wait::NAME).len(), 1);
    let summary = log.lines("optimus::summary").remove(0);
    assert_eq!(["stale", "success"].map(|count| summary.get(count)), ["1", "0"]);
}

#[tokio::test]
async fn an_attempt_whose_lease_is_over_before_its_end_is_logged_as_stale() {
    let log = Log::at(Level::INFO);
    let _default = set_default(log.subscriber());
    let bench = Bench::on_redis().await;
    let (worker, _gate, id) = begun(&bench, bench.worker()).await;
    // A worker that Redis does not know stops its attempts: the handler is asked to stop.
    let holder = holder(&bench).await;
    let keys = ["workers".to_owned(), format!("working:{holder}"), format!("worker:{holder}")];
    let keys = keys.map(|key| bench.key("default", &key)).join(" ");
    bench.raw().await.run(&format!("DEL {keys}")).await;
    check(&log.first(Wait::NAME).await, "stale", &id);
    worker.stop().await;
    assert_eq!(log.of(Wait::NAME).len(), 1);
}

#[tokio::test]
async fn an_attempt_whose_report_is_not_answered_is_logged_at_the_end_of_the_worker() {
    let log = Log::at(Level::INFO);
    let _default = set_default(log.subscriber());
    let bench = Bench::on_redis().await;
    // Redis refuses the report, and the worker holds it until it ends.
    bench.raw().await.run(&format!("SET {} odd", bench.key("default", "success"))).await;
    let worker = bench.worker().shutdown_grace(Duration::from_millis(100));
    let (worker, gate, id) = begun(&bench, worker).await;
    gate.open.hit();
    let is_refused = async || {
        let lines = log.lines.lock().unwrap();
        lines.iter().any(|line| line.message().contains("Redis refuses reports"))
    };
    eventually("the report is refused", PATIENCE, is_refused).await;
    assert!(log.of(Wait::NAME).is_empty(), "the outcome is not known yet");
    worker.stop().await;
    let line = log.first(Wait::NAME).await;
    check(&line, "unanswered", &id);
    assert!(line.message().ends_with("otherwise the task runs again"), "{line:?}");
    let lines = log.lines("optimus::summary");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!((lines[0].get("unanswered"), lines[0].get("running")), ("1", "0"));
}
