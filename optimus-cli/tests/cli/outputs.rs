//! What the commands print, compared with the files of `golden/`.

use std::{sync::Arc, time::Duration};

use optimus::{Client, Key, QueueName, WorkerId, group};
use optimus_testkit::eventually;

use crate::stage::{SOON, Stage, busy, send};

/// Runs commands and compares each output with the file of its name.
pub(crate) fn compare(stage: &Stage, commands: &[(&str, &[&str])]) {
    for (name, line) in commands {
        stage.optimus(line).matches(name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_and_queues_are_listed_and_shown() {
    let stage = Stage::new().await;
    let tasks = stage.fill().await;
    let id = |id: &optimus::TaskId| id.to_string();
    compare(
        &stage,
        &[
            ("queue_list", &["queue", "list"]),
            ("queue_show", &["queue", "show", "mail"]),
            ("task_list", &["task", "list", "mail"]),
            ("task_list_success", &["task", "list", "mail", "--state", "success"]),
            ("task_list_limit", &["task", "list", "mail", "--state", "dead", "--limit", "1"]),
            ("task_list_filter", &["task", "list", "mail", "--error", "smtp", "--cause", "failed"]),
            ("dead_list", &["dead", "list"]),
            ("task_show_dead", &["task", "show", &id(&tasks.dead)]),
            ("task_show_ready", &["task", "show", &id(&tasks.ready)]),
            ("task_show_success", &["task", "show", &id(&tasks.success)]),
            ("task_explain", &["task", "explain", &id(&tasks.blocked)]),
            ("lane_list", &["lane", "list", "mail"]),
            ("search_id", &["search", &tasks.retry.uuid().to_string()]),
            ("search_biz_id", &["search", "o-17", "--task", "send"]),
            ("search_nothing", &["search", "o-18"]),
        ],
    );
    stage.furnish().await;
    compare(&stage, &[("lane_list_paused", &["lane", "list", "mail"])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_found_by_their_headers_and_changed() {
    let stage = Stage::new().await;
    let tasks = stage.fill().await;
    let other = send("b".to_owned()).header("tenant", "other").header("region", "eu");
    stage.client.submit(other).await.unwrap();
    let found = |headers: &[&str]| {
        let mut line = vec!["task", "list", "mail", "--json"];
        for header in headers {
            line.extend(["--header", header]);
        }
        stage.optimus(&line).ended(0).json()
    };
    let acme = found(&["tenant=acme"]);
    assert!(acme.len() == 1 && acme[0]["id"] == tasks.ready.to_string(), "{acme:?}");
    let counts = [&["tenant"][..], &["tenant", "region=eu"], &["tenant=acme", "region"]];
    assert_eq!(counts.map(|headers| found(headers).len()), [2, 1, 0]);
    stage.optimus(&["task", "list", "mail", "--header", "=acme"]).ended(2);
    let clear = ["queue", "clear", "mail", "--header", "tenant=acme", "--expect", "1", "--yes"];
    stage.optimus(&clear).ended(0);
    assert_eq!((found(&["tenant=acme"]).len(), found(&["tenant"]).len()), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_task_is_shown_with_it() {
    let stage = Stage::new().await;
    let lines: Vec<String> = (0..130).map(|number| format!("copied file {number}")).collect();
    let [short, long] =
        stage.ended(["log: copied 42 files\nclosed", &format!("log: {}", lines.join("\n"))]).await;
    stage.optimus(&["task", "show", &short.to_string()]).matches("task_show_log");
    let shown = stage.optimus(&["task", "show", &long.to_string()]).ended(0).out;
    assert!(shown.contains("30 earlier lines not kept") && shown.contains("80 lines not shown"));
    assert!(
        !shown.contains(": copied file 109\n") && shown.contains(": copied file 110\n"),
        "{shown}"
    );
    let shown = stage.optimus(&["task", "show", &long.to_string(), "--full"]).ended(0).out;
    assert!(shown.contains("attempt 1: copied file 30\n") && shown.contains("file 129"), "{shown}");
    let shown = stage.optimus(&["task", "show", &short.to_string(), "--json"]).ended(0).json();
    let said = &shown[0]["log"];
    assert_eq!((&said["dropped"], &said["lines"][1]["text"]), (&0.into(), &"closed".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn json_has_a_line_for_each_row() {
    let stage = Stage::new().await;
    let tasks = stage.fill().await;
    let rows = stage.optimus(&["queue", "list", "--json"]).ended(0).json();
    assert_eq!((rows.len(), rows[0]["queue"].as_str()), (1, Some("mail")));
    let counts = ["ready", "blocked", "delayed", "retry", "dead", "cancelled"];
    assert_eq!(counts.map(|name| rows[0][name].as_u64().unwrap()), [2, 1, 1, 1, 2, 1]);
    let rows = stage.optimus(&["task", "list", "mail", "--json"]).ended(0).json();
    assert_eq!(rows.len(), 7);
    let dead = rows.iter().find(|row| row["id"] == tasks.dead.to_string()).unwrap();
    assert_eq!(dead["state"], "dead");
    assert_eq!(dead["error"]["message"], "connect to smtp-7: timed out\ncaused by: no route");
    let ready = rows.iter().find(|row| row["id"] == tasks.ready.to_string()).unwrap();
    assert_eq!(ready["headers"]["tenant"], "acme");
    let shown =
        stage.optimus(&["task", "show", &tasks.success.to_string(), "--json"]).ended(0).json();
    assert_eq!(shown[0]["result"], "sent to ann");
    let exported = stage.optimus(&["dead", "export"]).ended(0).json();
    assert_eq!(exported.len(), 2);
    let arguments = r#"{"how":"fail: connect to smtp-7: timed out\ncaused by: no route"}"#;
    assert_eq!(exported[1]["arguments"], arguments);
    assert_eq!(exported[1]["errors"][0]["reason"], "failed");
    let listed = stage.optimus(&["task", "list", "mail", "--all", "--json"]).ended(0).json();
    assert_eq!(listed.len(), 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_goes_on_where_the_one_before_has_ended() {
    let stage = Stage::new().await;
    let mut expected = Vec::new();
    for number in 0..5 {
        expected.push(stage.waiting(&format!("task {number}")).await.to_string());
    }
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let mut line = vec!["task", "list", "mail", "--state", "ready", "--limit", "2"];
        if !after.is_empty() {
            line.extend(["--after", &after]);
        }
        let ran = stage.optimus(&line).ended(0);
        let ids = ran.out.lines().skip(1).filter(|line| line.starts_with("mail/"));
        seen.extend(ids.map(|line| line.split(' ').next().unwrap().to_owned()));
        match ran.err.split("--after ").nth(1) {
            Some(next) => after = next.trim().to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_queues_is_listed_and_shown() {
    let stage = Stage::new().await;
    stage.furnish().await;
    let queue =
        stage.client.submit(send("x".to_owned()).after(Key::new("mail", "send", "none"))).await;
    let waits = queue.unwrap().id().to_string();
    let pair = group(["a", "b"].map(|how| send(how.to_owned())));
    let pair = stage.client.submit_flow(pair).await.unwrap().id().to_string();
    compare(
        &stage,
        &[
            ("limit_list", &["limit", "list"]),
            ("schedule_list", &["schedule", "list"]),
            ("schedule_show", &["schedule", "show", "digest"]),
            ("dispenser_list", &["dispenser", "list"]),
            ("dispenser_show", &["dispenser", "show", "review"]),
            ("dispenser_open", &["dispenser", "open", "review"]),
            ("dispenser_assigned", &["dispenser", "assigned", "review"]),
            ("dispenser_assignees", &["dispenser", "assignees", "review"]),
            ("group_list", &["group", "list", "mail"]),
            ("group_show", &["group", "show", &pair]),
            ("flow_show", &["flow", "show", &waits]),
            ("shard_list_empty", &["shard", "list"]),
            ("worker_list_empty", &["worker", "list"]),
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_shown_with_what_it_runs() {
    let stage = Arc::new(Stage::new().await);
    let (id, running) = busy(&stage).await;
    compare(
        &stage,
        &[
            ("worker_list", &["worker", "list"]),
            ("task_list_working", &["task", "list", "mail", "--state", "working"]),
        ],
    );
    let worker = stage.inspector().workers("mail").await.unwrap()[0].id.to_string();
    compare(&stage, &[("worker_show", &["worker", "show", &worker])]);
    let show = || stage.optimus(&["task", "show", &id.to_string()]).ended(0).out;
    eventually("its process tells how far it is", SOON, async || show().contains("progress")).await;
    let shown = show();
    assert!(shown.contains("15 % second 61") && shown.contains("runs for"), "{shown}");
    let shown = stage.optimus(&["task", "show", &id.to_string(), "--json"]).ended(0).json();
    assert_eq!(shown[0]["progress"]["text"], "second 61");
    assert!(shown[0]["running_since_ms"].is_number(), "{shown:?}");
    let asked = stage.optimus(&["task", "cancel", &id.to_string()]).ended(0);
    assert_eq!(asked.out, "0 cancelled · 1 asked to stop\n");
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_without_tasks_says_so() {
    let stage = Stage::new().await;
    let (_, none): (&Client, _) = (&stage.client, "nothing-is-here");
    let line = |line: &[&'static str]| [line, &["--namespace", none]].concat();
    stage.optimus(&line(&["queue", "list"])).matches("queue_list_empty");
    stage.optimus(&line(&["dead", "list"])).matches("dead_list_empty");
    assert_eq!(stage.optimus(&line(&["queue", "list", "--json"])).ended(0).out, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_not_served_by_a_worker_whose_lease_is_over() {
    let stage = Stage::new().await;
    let (broker, queue) = (stage.client.broker(), QueueName::new("mail").unwrap());
    let about = r#"{"name":"mailer","host":"vm-1","pid":17,"version":"0.1.0",
        "started_ms":1700000000000,"queues":["mail"],"concurrency":4}"#;
    for (worker, lease_ms) in [("mailer-1", 60_000), ("mailer-2", 1)] {
        let (worker, lease) = (WorkerId::from_stored(worker), Duration::from_millis(lease_ms));
        broker.register(&queue, &worker, lease, about).await.unwrap();
    }
    eventually("a lease is over", SOON, async || {
        let now = stage.inspector().now().await.unwrap();
        let workers = stage.inspector().workers("mail").await.unwrap();
        workers.iter().any(|worker| worker.lease_until <= now)
    })
    .await;
    let shown = stage.optimus(&["queue", "show", "mail"]).ended(0).out;
    assert!(shown.contains("1 worker with 4 slots"), "{shown}");
    let shown = stage.optimus(&["queue", "show", "mail", "--json"]).ended(0).json().remove(0);
    assert_eq!([&shown["workers"], &shown["slots"]], [1, 4], "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_waits_only_for_tasks_that_have_not_succeeded() {
    let stage = Stage::new().await;
    let [done] = stage.ended(["sent"]).await;
    let show = async |call| {
        let id = stage.client.submit(call).await.unwrap().id().to_string();
        let shown = stage.optimus(&["task", "show", &id]).ended(0).out;
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let next = || send("next".to_owned()).after(&done);
    let ready = show(next()).await;
    assert!(ready.contains(&format!(" after {done} ")), "{ready}");
    assert!(!ready.contains("waits for"), "{ready}");
    let blocked = show(next().after(Key::new("mail", "send", "none"))).await;
    assert!(blocked.contains("waits for mail/send with biz id \"none\""), "{blocked}");
    assert!(blocked.contains(&format!(" after {done} ")), "{blocked}");
}
