//! The logs of the examples: as lines, as JSON, and as docs/PRODUCTION.md shows them.

use std::time::Duration;

use optimus_testkit::{Proc, ProcBuilder, RedisServer};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);

/// Returns what the example `logs` prints.
async fn log(args: &[&str]) -> Vec<String> {
    let mut logs = args.iter().fold(Proc::built("logs"), ProcBuilder::arg).start();
    let status = logs.wait(SOON).await;
    assert!(status.success(), "{status}: {:#?}", logs.lines());
    logs.lines()
}

/// Returns the line without the parts that differ from run to run: times, ids and numbers.
fn form(line: &str) -> String {
    let bare = |word: &str| match word.split_once('=') {
        Some((key, _)) if ["id", "next_in_ms", "worker"].contains(&key) => format!("{key}=…"),
        _ => word.to_owned(),
    };
    let words = line.split_whitespace().skip(1).map(bare);
    let line = words.collect::<Vec<_>>().join(" ");
    let mut form = String::new();
    for character in line.chars() {
        match character {
            '0'..='9' if form.ends_with('0') => {}
            '0'..='9' => form.push('0'),
            other => form.push(other),
        }
    }
    form
}

/// Returns the lines of the log that follow this command in a document.
fn documented(command: &str) -> Vec<String> {
    let document = include_str!("../../docs/PRODUCTION.md");
    let lines = document.lines().skip_while(|line| *line != format!("$ {command}")).skip(1);
    lines.take_while(|line| !line.starts_with("```")).map(form).collect()
}

#[tokio::test]
async fn the_documented_log_is_that_of_the_example() {
    for filter in ["warn", "info"] {
        let lines = log(&[filter]).await;
        // The message of a panic is printed, but it is not a log event.
        let events = lines.iter().filter(|line| line.contains("Z "));
        let mut events: Vec<_> = events.map(|line| form(line)).collect();
        let mut document = documented(&format!("cargo run -q --example logs {filter}"));
        // A worker and its handlers log on separate threads, in no fixed order.
        events.sort();
        document.sort();
        assert_eq!(events, document, "{lines:#?}");
    }
}

#[tokio::test]
async fn a_log_as_json_has_an_object_a_line_with_the_fields_of_each_attempt() {
    let lines = log(&["--json"]).await;
    let events: Vec<Value> =
        lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let dead = events.iter().find(|event| event["outcome"] == "dead").expect("one task dies");
    let texts = ["level", "target", "task", "queue", "reason", "error"].map(|field| &dead[field]);
    assert_eq!(
        texts,
        ["ERROR", "optimus::task", "charge", "default", "failed", "the card was stolen"]
    );
    assert!(["attempt", "run_ms", "wait_ms"].iter().all(|field| dead[field].is_u64()), "{dead}");
    let own = events.iter().find(|event| event["message"] == "charged").expect("a handler's own");
    let span = &own["spans"][0];
    assert_eq!((&span["task"], &span["attempt"]), (&"charge".into(), &1.into()));
}

#[tokio::test]
async fn the_worker_logs_lines_or_json() {
    let redis = RedisServer::start();
    for (args, is_json) in [(&[][..], false), (&["--json"][..], true)] {
        let worker = Proc::built("worker").env("OPTIMUS_URL", redis.url());
        let mut worker = args.iter().fold(worker, ProcBuilder::arg).start();
        worker.wait_for_line("the worker has started", SOON).await;
        worker.sigterm();
        assert!(worker.wait(SOON).await.success());
        worker.wait_for_line("the station is closed", SOON).await;
        let lines = worker.lines();
        let objects = lines.iter().filter(|line| serde_json::from_str::<Value>(line).is_ok());
        assert_eq!(objects.count(), if is_json { lines.len() } else { 0 }, "{lines:#?}");
    }
}
