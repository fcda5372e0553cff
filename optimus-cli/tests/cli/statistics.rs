//! What ended, why tasks died, and which process runs what.

use std::time::Duration;

use optimus::{TaskStats, WorkerId};
use optimus_core::{
    QueueName,
    broker::{Attendance, Broker},
};

use crate::stage::Stage;

pub(crate) const PROCESS: &str = "vm-1-17-0a0b0c0d";
const MINUTE: Duration = Duration::from_secs(60);

/// Lets a process attend, and returns what it is asked for.
pub(crate) async fn attend(stage: &Stage, doing: &str) -> String {
    let id = &PROCESS.parse().unwrap();
    let description = r#"{"name":"mailer","host":"vm-1","pid":17,"version":"0.1.0",
        "started_ms":1700000000000,"queues":["mail","default"],"concurrency":4}"#;
    let attendance = Attendance { id, gone_after: MINUTE, description, doing };
    stage.client.broker().attend(&Broker::fleet(), attendance).await.unwrap().1
}

/// Gives the process leases, without which it is lost.
async fn serve(stage: &Stage, lease: Duration) {
    let (broker, worker) = (stage.client.broker(), WorkerId::from_stored(PROCESS));
    for queue in ["mail", "default"].map(|queue| QueueName::new(queue).unwrap()) {
        broker.register(&queue, &worker, lease, "{}").await.unwrap();
    }
}

/// What a process does that runs one task and may run two.
pub(crate) const DOING: &str = r#"{"slots":2,"busy":1,"rss_bytes":21000000,"cpu":0.413,
    "running":[{"id":
    "mail/019aa6f0-3c51-7d43-9e0f-3a4b5c6d7e8f","task":"send","attempt":2,"since_ms":1700000000000,
    "progress":{"part":0.42,"text":"copied 42"}}]}"#;

/// Counts 1,204 attempts that ran for 3 ms, two of which failed.
async fn count(stage: &Stage) {
    let (broker, queue) = (stage.client.broker(), QueueName::new("mail").unwrap());
    let worker = WorkerId::from_stored(PROCESS);
    let mut stats = TaskStats::default();
    (stats.successes, stats.retries, stats.deaths) = (1_202, 1, 1);
    for _ in 0..1_204 {
        stats.record(Some(Duration::from_millis(3)), Some(Duration::from_millis(40)));
    }
    broker.register(&queue, &worker, MINUTE, "{}").await.unwrap();
    broker.tally(&queue, &worker, 1, [("send", &stats)]).await.unwrap();
    broker.leave(&queue, &worker).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_have_a_row_for_each_task_or_time() {
    let stage = Stage::new().await;
    count(&stage).await;
    stage.optimus(&["stats", "mail"]).matches("stats");
    stage.optimus(&["stats", "mail", "--last", "30d", "--by", "time"]).matches("stats_by_time");
    stage.client.pause("elsewhere").await.unwrap();
    stage.optimus(&["stats", "elsewhere"]).matches("stats_empty");
    let rows = stage.optimus(&["stats", "mail", "--last", "24h", "--json"]).ended(0).json();
    assert_eq!((rows.len(), rows[0]["task"].as_str()), (1, Some("send")));
    assert_eq!((&rows[0]["deaths"], &rows[0]["run"]["count"]), (&1.into(), &1_204.into()));
    let p50_us = rows[0]["run"]["p50_us"].as_u64().unwrap();
    assert!((3_000..6_000).contains(&p50_us), "all have run for 3 ms, not for {p50_us} µs");
    assert_eq!(rows[0]["run"]["mean_us"], 3_000);
    stage.optimus(&["stats", "mail", "--last", "181d"]).ended(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_tasks_of_one_cause_are_one_row_and_retried_by_their_fingerprint() {
    let stage = Stage::new().await;
    let tasks = stage.fill().await;
    stage.ended(["fail: connect to smtp-12: timed out"]).await;
    stage.optimus(&["dead", "fingerprints"]).matches("dead_fingerprints");
    let rows = stage.optimus(&["dead", "fingerprints", "mail", "--json"]).ended(0).json();
    assert_eq!((&rows[0]["dead"], &rows[0]["queue"]), (&2.into(), &"mail".into()));
    let print = rows[0]["fingerprint"].as_str().unwrap();
    let line = ["dead", "list", "--fingerprint", print, "--json"];
    let found = stage.optimus(&line).ended(0).json();
    assert!(found.len() == 2 && found.iter().any(|row| row["id"] == tasks.dead.to_string()));
    let line = ["dead", "retry", "--fingerprint", print, "--expect", "2", "--yes"];
    assert_eq!(stage.optimus(&line).ended(0).out, "2 requeued\n");
    let left = stage.optimus(&["dead", "list", "--json"]).ended(0).json();
    assert!(left.len() == 1 && left[0]["id"] == tasks.fatal.to_string(), "{left:?}");
    stage.optimus(&["dead", "list", "--fingerprint", "short"]).ended(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_is_shown_and_asked_for_something() {
    let stage = Stage::new().await;
    stage.optimus(&["process", "list"]).matches("process_list_empty");
    assert_eq!(attend(&stage, DOING).await, "");
    let lost = stage.optimus(&["process", "list"]).ended(0).out;
    assert!(lost.contains("lost"), "it has no lease: {lost}");
    let asked = stage.optimus(&["process", "resume", PROCESS]).ended(0);
    assert!(asked.err.contains("it obeys only if it comes back"), "{asked:?}");
    assert_eq!(attend(&stage, DOING).await, "resume");
    serve(&stage, MINUTE).await;
    stage.optimus(&["process", "list"]).matches("process_list");
    stage.optimus(&["process", "show", PROCESS]).matches("process_show");
    let rows = stage.optimus(&["process", "list", "--json"]).ended(0).json();
    assert_eq!((&rows[0]["host"], &rows[0]["running"][0]["attempt"]), (&"vm-1".into(), &2.into()));
    for (line, wish) in [
        (&["quiet", PROCESS][..], "quiet"),
        (&["slots", PROCESS, "3"], "slots 3"),
        (&["resume", PROCESS], "resume"),
        (&["stop", PROCESS, "--yes"], "stop"),
    ] {
        stage.optimus(&[&["process"], line].concat()).ended(0);
        assert_eq!(attend(&stage, DOING).await, wish);
    }
    stage.optimus(&["process", "quiet", PROCESS]).matches("process_quiet");
    stage.optimus(&["process", "stop", PROCESS]).ended(9);
    stage.optimus(&["process", "slots", PROCESS, "0"]).ended(2);
    for verb in ["show", "quiet", "stop"] {
        stage.optimus(&["process", verb, "vm-2-17-0a0b0c0d", "--yes"]).ended(3);
    }
    stage.optimus(&["process", "quiet", "nonsense"]).ended(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_handlers_block_it_is_shown_by_its_queue_and_by_doctor() {
    let stage = Stage::new().await;
    stage.fill().await;
    serve(&stage, MINUTE).await;
    attend(&stage, r#"{"slots":2,"busy":1,"blocked_ms":12900}"#).await;
    let rest = "blocked all threads of";
    for (line, code, expected) in [
        (&["process", "list"][..], 0, "blocked"),
        (&["process", "show", PROCESS], 0, "its handlers have blocked all threads"),
        (&["queue", "show", "mail"], 0, rest),
        (&["doctor", "--quiet"], 8, rest),
    ] {
        let seen = stage.optimus(line).ended(code);
        assert!(seen.out.contains(expected), "{line:?}: {seen:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_goes_on_after_its_timeout_is_shown_by_its_process_and_by_doctor() {
    let stage = Stage::new().await;
    let id = stage.waiting("x").await;
    serve(&stage, MINUTE).await;
    let running =
        format!(r#"{{"id":"{id}","task":"send","attempt":1,"since_ms":1,"late_ms":135000}}"#);
    attend(&stage, &format!(r#"{{"slots":2,"busy":1,"running":[{running}]}}"#)).await;
    let shown = stage.optimus(&["process", "show", PROCESS]).ended(0).out;
    assert!(shown.contains("2 min 15 s after its timeout"), "{shown}");
    let found = stage.optimus(&["doctor", "--quiet"]).ended(8).out;
    assert!(found.contains(&format!("{id} (send) for 2 min 15 s")), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_lists_what_ended_on_a_day() {
    let stage = Stage::new().await;
    stage.client.pause("mail").await.unwrap();
    stage.optimus(&["history", "show", "mail"]).matches("history_show_none");
    stage.client.resume("mail").await.unwrap();
    stage.optimus(&["history", "stop", "mail"]).ended(3);
    let line = ["history", "keep", "mail", "--days", "30", "--size", "2MB", "--task", "send"];
    stage.optimus(&line).matches("history_keep");
    stage.optimus(&["history", "show", "mail"]).matches("history_show");
    stage.optimus(&["history", "list", "mail"]).matches("history_list_empty");
    stage.ended(["fail: connect to smtp-12: timed out", "fatal", "sent to ann"]).await;
    let rows = stage.optimus(&["history", "list", "mail", "--json"]).ended(0).json();
    let states: Vec<_> = rows.iter().filter_map(|row| row["state"].as_str()).collect();
    assert_eq!(states, ["dead", "dead", "success"]);
    assert!(rows.iter().all(|row| row["worker"].is_string() && row["took_ms"].is_number()));
    let failed = ["history", "list", "mail", "--state", "dead", "--task", "send"];
    stage.optimus(&[&failed[..], &["--limit", "1"]].concat()).ended(0);
    stage.optimus(&["history", "list", "mail", "--state", "success"]).matches("history_list");
    let none = ["history", "list", "mail", "--day", "yesterday"];
    stage.optimus(&none).matches("history_list_empty");
    let shown = stage.optimus(&["history", "show", "mail", "--json"]).ended(0).json();
    assert_eq!(shown[0]["history"]["days"].as_array().map(Vec::len), Some(1), "{shown:?}");
    for wrong in [
        &["list", "mail", "--state", "retry"][..],
        &["list", "mail", "--day", "someday"],
        &["list", "mail", "--after", "nonsense"],
        &["keep", "mail", "--days", "400"],
        &["keep", "mail", "--size", "5kB"],
        &["keep", "mail", "--task", "a,b"],
    ] {
        stage.optimus(&[&["history"], wrong].concat()).ended(2);
    }
    stage.optimus(&["history", "stop", "mail"]).ended(0);
    stage.optimus(&["history", "remove", "mail"]).ended(9);
    stage.optimus(&["history", "remove", "mail", "--yes"]).ended(0);
    stage.optimus(&["history", "remove", "mail", "--yes"]).ended(3);
}
