//! The one log event of each attempt's end. It shows the outcome, in separate fields.

use std::{
    future::pending,
    thread,
    time::{Duration, Instant},
};

use crate::common::{
    Bench, Double, Gate, Wait,
    log::{Log, PATIENCE},
};
use optimus_core::{BoxError, Cancel, Context, Fatal, OnLost, Retry, Snooze, Task, WorkerId};
use optimus_testkit::{LogEvent, eventually};
use serde::{Deserialize, Serialize};
use tracing::{Dispatch, Level, dispatcher, subscriber::set_default};

#[derive(Debug, thiserror::Error)]
#[error("the bank does not answer")]
struct Away(#[source] std::io::Error);

/// Ends in the way that its argument states.
#[derive(Serialize, Deserialize)]
struct End {
    how: String,
}

impl Task for End {
    const NAME: &'static str = "end";
    type Output = String;

    async fn run(self, ctx: Context) -> Result<String, BoxError> {
        let minute = Duration::from_secs(60);
        match self.how.as_str() {
            "ok" => Ok("fine".into()),
            "large" => Ok("x".repeat(2_000)),
            "snooze" => Err(Snooze::new(minute).because("429").into()),
            "retry" => Err(Retry::after(minute).because("the line is busy").into()),
            "cancel" => Err(Cancel.into()),
            "fatal" => Err(Fatal::new("410 gone").into()),
            "late" => {
                let told = ctx.clone();
                ctx.run_blocking(move || until_told(&told)).await;
                Ok("too late".into())
            }
            "late error" => {
                let told = ctx.clone();
                ctx.run_blocking(move || until_told(&told)).await;
                Err("asked to stop".into())
            }
            "panic" => panic!("oh no"),
            "chain" => Err(Away(std::io::Error::other("connection refused")).into()),
            other => Err(other.to_owned().into()),
        }
    }
}

/// Returns what the log at `level` contains about a task that ends in this way and has this many
/// retries.
async fn line(level: Level, how: &str, retries: u32) -> LogEvent {
    let log = Log::at(level);
    let _default = set_default(log.subscriber());
    let bench = Bench::on_memory().await;
    let worker = bench.start(bench.worker().result_limit(1_000).task_type::<End>());
    let timeout = if how.starts_with("late") { Duration::from_millis(200) } else { PATIENCE };
    let call = End { how: how.into() }.call().max_retry(retries).timeout(timeout);
    let handle = bench.client.submit(call).await.unwrap();
    let line = log.first("end").await;
    worker.stop().await;
    let lines = log.of("end");
    assert_eq!(lines.len(), 1, "each end has one line: {lines:?}");
    assert_eq!(line.get("id"), handle.id().to_string());
    assert_eq!((line.get("queue"), line.get("attempt")), ("default", "1"));
    assert!(!line.get("run_ms").is_empty() && !line.get("wait_ms").is_empty(), "{line:?}");
    line
}

#[tokio::test]
async fn a_success_is_logged_at_debug() {
    let line = line(Level::DEBUG, "ok", 0).await;
    assert_eq!((line.level, line.get("outcome")), (Level::DEBUG, "success"));
    assert_eq!((line.get("reason"), line.get("error")), ("", ""));
}

#[tokio::test]
async fn a_worker_that_logs_each_success_does_so_at_info() {
    let log = Log::at(Level::INFO);
    let _default = set_default(log.subscriber());
    let bench = Bench::on_memory().await;
    let worker = bench.start(bench.worker().log_each().task_type::<Double>());
    bench.client.submit(Double { number: 1 }.call()).await.unwrap();
    let line = log.first(Double::NAME).await;
    assert_eq!((line.level, line.get("outcome")), (Level::INFO, "success"));
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_that_ends_logs_a_summary_of_the_last_part_of_a_minute_for_all_queues() {
    let log = Log::at(Level::INFO);
    let _default = set_default(log.subscriber());
    let bench = Bench::on_memory().await;
    let worker = bench.worker().queues(["default", "other"]).result_limit(1_000);
    let worker = bench.start(worker.task_type::<End>().task_type::<Double>());
    for number in 0..3 {
        let queue = if number == 0 { "other" } else { "default" };
        let call = Double { number }.call().queue(queue);
        bench.client.submit(call).await.unwrap().result_within(PATIENCE).await.unwrap();
    }
    for (ended, how) in ["boom", "fatal", "snooze", "cancel"].into_iter().enumerate() {
        let call = End { how: how.into() }.call().max_retry(1);
        bench.client.submit(call).await.unwrap();
        let all = async || log.of("end").len() > ended;
        eventually("the summary is logged", PATIENCE, all).await;
    }
    worker.stop().await;
    let lines = log.lines("optimus::summary");
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line = &lines[0];
    let counts = ["success", "retry", "dead", "snoozed", "cancelled", "given_back", "stale"];
    assert_eq!(counts.map(|count| line.get(count)), ["3", "1", "1", "1", "1", "0", "0"]);
    assert_eq!(["unanswered", "lost"].map(|count| line.get(count)), ["0", "0"]);
    assert_eq!((line.level, line.get("running")), (Level::INFO, "0"));
    let text = "3 succeeded, 1 will be retried, 1 died, 1 snoozed, 1 cancelled; 0 running";
    assert!(line.message().ends_with(text), "{line:?}");
}

#[tokio::test]
async fn a_worker_on_which_nothing_ended_and_nothing_runs_logs_no_summary() {
    let log = Log::at(Level::INFO);
    let _default = set_default(log.subscriber());
    let bench = Bench::on_memory().await;
    bench.start(bench.worker().task_type::<Double>()).stop().await;
    assert_eq!(log.lines("optimus::summary").len(), 0);
}

#[tokio::test]
async fn a_submit_is_logged_at_debug_once_it_is_stored_and_a_duplicate_names_the_first_task() {
    let log = Log::at(Level::DEBUG);
    let _default = set_default(log.subscriber());
    let bench = Bench::on_memory().await;
    let call = |number| Double { number }.call().biz_id("one");
    let first = bench.client.submit(call(1)).await.unwrap();
    let again = bench.client.submit_all([call(2)]).await.unwrap();
    assert_eq!(first.id(), again[0].id());
    let lines = log.lines("optimus::submit");
    let texts: Vec<&str> = lines.iter().map(LogEvent::message).collect();
    assert_eq!(texts, ["submitted", "not submitted: this task has the same id or biz id"]);
    for line in &lines {
        assert_eq!((line.level, line.get("task")), (Level::DEBUG, Double::NAME));
        assert_eq!((line.get("id"), line.get("queue")), (&*first.id().to_string(), "default"));
    }
}

#[tokio::test]
async fn an_attempt_whose_runtime_ends_is_logged_as_given_back() {
    let log = Log::at(Level::INFO);
    let _default = set_default(log.subscriber());
    let bench = Bench::on_memory().await;
    // This task lives longer than the runtime.
    let subscriber = Dispatch::new(log.subscriber());
    let (gate, heard) = (Gate::new(), subscriber.clone());
    let worker = bench.worker().data(gate.clone()).task_type::<Wait>().build().unwrap();
    bench.client.submit(Wait {}.call()).await.unwrap();
    let running = thread::spawn(move || {
        let _default = dispatcher::set_default(&heard);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.spawn(worker.run_until(pending::<()>()));
        runtime.block_on(gate.began.wait_for(1));
    });
    let line = log.first(Wait::NAME).await;
    assert_eq!((line.level, line.get("outcome")), (Level::INFO, "given_back"));
    eventually("the runtime has ended", PATIENCE, async || running.is_finished()).await;
    drop(subscriber);
}

#[tokio::test]
async fn a_retry_is_a_warning_with_the_reason_and_the_wait() {
    for (how, reason, error) in [
        ("boom", "failed", "boom"),
        ("panic", "panicked", "oh no"),
        ("chain", "failed", "the bank does not answer: connection refused"),
    ] {
        let line = line(Level::WARN, how, 3).await;
        assert_eq!((line.level, line.get("outcome")), (Level::WARN, "retry"));
        assert_eq!(line.get("reason"), reason);
        // The place of a panic comes before its text.
        assert!(line.get("error").ends_with(error), "{line:?}");
        assert!(line.get("next_in_ms").parse::<u64>().is_ok(), "{line:?}");
    }
}

#[tokio::test]
async fn a_task_that_dies_is_an_error_with_the_reason() {
    for (how, reason, error) in [
        ("boom", "failed", "boom"),
        ("panic", "panicked", "oh no"),
        ("fatal", "failed", "410 gone"),
        ("large", "result_too_large", "above the limit of 1000"),
        ("late", "timed_out", "still running after"),
        ("late error", "timed_out", "still running after"),
    ] {
        let line = line(Level::ERROR, how, 0).await;
        assert_eq!((line.level, line.get("outcome")), (Level::ERROR, "dead"), "{how}");
        assert_eq!(line.get("reason"), reason, "{how}");
        assert!(line.get("error").contains(error), "{how}: {line:?}");
    }
}

#[tokio::test]
async fn what_a_handler_asks_for_is_no_failure() {
    for (how, level, outcome, next_in_ms, error) in [
        ("snooze", Level::INFO, "snoozed", "60000", "snooze for 60s: 429"),
        ("retry", Level::INFO, "retry", "60000", "retry in 60s: the line is busy"),
        ("cancel", Level::INFO, "cancelled", "", "cancelled by its handler"),
    ] {
        let line = line(level, how, 3).await;
        assert_eq!((line.level, line.get("outcome")), (level, outcome), "{how}");
        assert_eq!((line.get("next_in_ms"), line.get("error")), (next_in_ms, error), "{how}");
    }
}

#[tokio::test]
async fn a_handler_that_blocks_its_runtime_beyond_its_timeout_has_timed_out() {
    let log = Log::at(Level::WARN);
    let _default = set_default(log.subscriber());
    let bench = Bench::on_memory().await;
    let worker = bench.worker().task_type::<Stuck>().build().unwrap();
    let call = Stuck {}.call().max_retry(0).timeout(Duration::from_millis(200));
    let handle = bench.client.submit(call).await.unwrap();
    let heard = log.clone();
    let running = thread::spawn(move || {
        let _default = set_default(heard.subscriber());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(worker.run_until(async move { drop(heard.first("stuck").await) }))
    });
    let line = log.first("stuck").await;
    assert_eq!((line.level, line.get("outcome")), (Level::ERROR, "dead"));
    assert_eq!((line.get("reason"), line.get("attempt")), ("timed_out", "1"));
    assert!(handle.result_within(PATIENCE).await.unwrap_err().is_dead());
    eventually("the worker has ended", PATIENCE, async || running.is_finished()).await;
    running.join().unwrap().unwrap();
}

/// Keeps its thread until the attempt is asked to stop, as at its timeout.
fn until_told(ctx: &Context) {
    // This limit ends a test that fails.
    let until = Instant::now() + 2 * PATIENCE;
    while !ctx.is_cancelled() && Instant::now() < until {
        thread::yield_now();
    }
}

/// Keeps the only thread of its runtime.
#[derive(Serialize, Deserialize)]
struct Stuck {}

impl Task for Stuck {
    const NAME: &'static str = "stuck";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        until_told(&ctx);
        Ok(())
    }
}

#[tokio::test]
async fn a_task_that_dies_without_an_attempt_is_an_error_too() {
    let log = Log::at(Level::ERROR);
    let _default = set_default(log.subscriber());
    let bench = Bench::on_memory().await;
    let call = Double { number: 1 }.call().expires_in(Duration::from_millis(1));
    let handle = bench.client.submit(call).await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    let worker = bench.start(bench.worker().task_type::<Double>());
    let line = log.first(Double::NAME).await;
    assert_eq!((line.level, line.get("outcome")), (Level::ERROR, "dead"));
    assert_eq!((line.get("reason"), line.get("id")), ("expired", &*handle.id().to_string()));
    assert_eq!((line.get("run_ms"), line.get("error")), ("", "not started within 1ms"));
    worker.stop().await;
}

#[tokio::test]
async fn a_lost_attempt_is_logged_by_the_worker_that_takes_its_task_back() {
    for (on_lost, level, outcome) in
        [(OnLost::Dead, Level::ERROR, "dead"), (OnLost::Retry, Level::WARN, "retry")]
    {
        let log = Log::at(Level::INFO);
        let _default = set_default(log.subscriber());
        let bench = Bench::on_memory().await;
        let call = Double { number: 1 }.call().on_lost(on_lost);
        let handle = bench.client.submit(call).await.unwrap();
        let (broker, ghost) = (bench.client.broker(), WorkerId::generate("ghost", 1));
        let (queue, lease) = (handle.id().queue(), Duration::from_secs(1));
        broker.register(queue, &ghost, lease, "{}").await.unwrap();
        assert_eq!(broker.claim(queue, &ghost, 1, 1).await.unwrap().grants.len(), 1);
        let worker = bench.start(bench.worker().lease(lease).task_type::<Double>());
        let line = log.first(Double::NAME).await;
        assert_eq!((line.level, line.get("outcome")), (level, outcome));
        assert_eq!((line.get("reason"), line.get("attempt")), ("lost", "1"));
        assert_eq!(line.get("id"), handle.id().to_string());
        let error = format!("worker {ghost} was not heard from for a whole lease in attempt 1");
        assert_eq!(line.get("error"), error);
        let reaped = log.lines("optimus_worker::reaper").remove(0);
        assert_eq!(reaped.get("workers"), ghost.to_string(), "the ids are no list");
        worker.stop().await;
        let summary = log.lines("optimus::summary").remove(0);
        assert_eq!([outcome, "lost", "stale"].map(|count| summary.get(count)), ["1", "1", "0"]);
    }
}
