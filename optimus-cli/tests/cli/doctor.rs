//! `doctor` and `queue show` name what stops a queue: pauses, limits, quiet processes, dead steps.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use optimus::{Due, Gate, LaneFailure, StatsUnit, TaskState};
use optimus_core::{RosterName, broker::Ended};
use optimus_testkit::eventually;

use crate::{
    deep::{SOON, Ward},
    kit::raw,
    shards::Holder,
    stage::{Stage, busy, send},
};

/// Returns what `doctor` warns of, of these checks.
pub(crate) fn warned(stage: &Stage, late: &str, checks: &[&str]) -> Vec<String> {
    let rows = stage.optimus(&["doctor", "--late", late, "--json"]).json();
    let is_meant = |row: &&serde_json::Value| {
        row["level"] == "warning" && checks.iter().any(|check| row["check"] == *check)
    };
    let text = |row: &serde_json::Value| row["text"].as_str().unwrap().to_owned();
    rows.iter().filter(is_meant).map(text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_queue_is_shown_with_who_why_and_since_when() {
    let stage = Stage::new().await;
    stage.waiting("x").await;
    stage.optimus(&["queue", "pause", "mail", "--reason", "a deploy"]).ended(0);
    let soon = send("x".into()).due(Due::In(Duration::from_millis(1)));
    let id = stage.client.submit(soon).await.unwrap().id().clone();
    let inspector = stage.client.inspector();
    let due = inspector.get(&id).await.unwrap().unwrap().at.unwrap();
    eventually("it is due", SOON, async || inspector.now().await.unwrap() > due).await;
    let found = warned(&stage, "5m", &["paused"]).remove(0);
    assert!(found.starts_with("queue mail is paused by ann (a deploy) until it is"), "{found}");
    assert!(found.contains(" ago), and keeps 2 tasks waiting: `optimus queue resume"), "{found}");
    let shown = stage.optimus(&["queue", "show", "mail"]).ended(0).out;
    assert!(!shown.contains("paused paused") && shown.contains("by ann (a deploy)"), "{shown}");
    let listed = stage.optimus(&["limit", "list", "mail", "--json"]).ended(0).json();
    assert_eq!(listed[0]["waiting"], 2, "{listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_deaths_of_the_last_minutes_are_a_warning() {
    let stage = Stage::new().await;
    stage.ended(["fail: connect to smtp-7: timed out"; 10]).await;
    let deaths = async || {
        let stats = stage.client.inspector().stats("mail", StatsUnit::Minute, 10).await.unwrap();
        stats.total().deaths
    };
    eventually("they are counted", SOON, async || deaths().await == 10).await;
    assert!(warned(&stage, "5m", &["dying"]).is_empty(), "ten are not many");
    stage.ended(["fail: connect to smtp-7: timed out", "sent"]).await;
    eventually("it is counted", SOON, async || deaths().await == 11).await;
    let found = warned(&stage, "5m", &["dying"]).remove(0);
    let said = "queue mail: 11 tasks died in the last 10 min, while 1 succeeded; `optimus dead \
                fingerprints mail` has the causes";
    assert_eq!(found, said);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pause_of_a_queue_also_tells_how_many_of_its_tasks_wait_for_something_else() {
    let stage = Stage::new().await;
    stage.client.pause("mail").await.unwrap();
    assert!(warned(&stage, "5m", &["paused"]).is_empty(), "no task waits for it yet");
    for _ in 0..3 {
        stage.client.submit(send("x".to_owned()).lane("a")).await.unwrap();
    }
    let found = warned(&stage, "5m", &["paused"]).remove(0);
    let said = "and keeps 1 task waiting, while 2 other tasks of the queue wait for limits, lanes \
                or other tasks: `optimus queue resume";
    assert!(found.contains(said), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_task_name_with_blocked_tasks_is_a_warning() {
    let stage = Stage::new().await;
    let name = stage.client.gate("mail", Gate::Task("send".into()));
    name.pause("eve", "a bug").await.unwrap();
    let id = stage.waiting("x").await;
    assert!(warned(&stage, "5m", &["paused"]).is_empty(), "no task waits for it yet");
    let worker = stage.worker().run_until(eventually("it is blocked", SOON, async || {
        stage.state(&id).await == TaskState::Blocked
    }));
    worker.await.unwrap();
    let found = warned(&stage, "5m", &["paused"]).remove(0);
    assert!(found.starts_with("task send of queue mail is paused by eve (a bug)"), "{found}");
    assert!(found.contains("keeps 1 task waiting: `optimus limit resume mail task:"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_lets_nothing_start_for_long_and_old_blocked_tasks_are_warnings() {
    let stage = Stage::new().await;
    let line = ["limit", "set", "mail", "queue", "--rate", "1/h", "--reason", "bank asked"];
    stage.optimus(&line).ended(0);
    stage.ended(["first"]).await;
    stage.waiting("second").await;
    let found = warned(&stage, "5m", &["limit"]).remove(0);
    let set = "the limit of 1/h of the queue, set by ann (bank asked) ";
    assert!(found.contains(set) && found.contains(" ago, lets no task start for 5"), "{found}");
    assert!(found.contains("and keeps 1 task waiting"), "{found}");
    assert!(warned(&stage, "2h", &["limit"]).is_empty());
    let listed = stage.optimus(&["limit", "list", "mail"]).ended(0).out;
    assert!(listed.contains("the next starts in 59 min"), "{listed}");

    stage.client.gate("mail", Gate::Queue).remove().await.unwrap();
    for _ in 0..2 {
        stage.client.submit(send("x".to_owned()).lane("a")).await.unwrap();
    }
    let found = warned(&stage, "1ms", &["blocked"]).remove(0);
    assert!(found.starts_with("queue mail: 1 blocked task, and the first one has"), "{found}");
    assert!(warned(&stage, "5m", &["blocked"]).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_lane_hides_no_task_that_waits_for_long_in_another_lane() {
    let stage = Stage::new().await;
    let lane = stage.client.gate("mail", Gate::Lane("tenant-99".into()));
    lane.pause("eve", "a bug").await.unwrap();
    let in_lane = |how: &str, lane: &str| send(how.to_owned()).max_retry(3).lane(lane);
    let holder = stage.client.submit(in_lane("retry", "shop")).await.unwrap().id().clone();
    stage.client.submit(in_lane("x", "shop")).await.unwrap();
    let paused = stage.client.submit(in_lane("x", "tenant-99")).await.unwrap().id().clone();
    stage.client.submit(in_lane("x", "tenant-99")).await.unwrap();
    let wait = async || {
        stage.state(&holder).await == TaskState::Retry
            && stage.state(&paused).await == TaskState::Blocked
    };
    stage.worker().run_until(eventually("both wait", SOON, wait)).await.unwrap();
    assert_eq!(warned(&stage, "1ms", &["paused"]).len(), 1);
    let found = warned(&stage, "1ms", &["blocked"]).remove(0);
    assert!(found.starts_with("queue mail: 1 blocked task, and the first one"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_that_a_dead_task_keeps_is_a_warning_at_once() {
    let stage = Stage::new().await;
    let in_lane = |how: &str| {
        let call = send(how.to_owned()).max_retry(0).lane("orders");
        call.on_lane_failure(LaneFailure::Block)
    };
    let dead = stage.client.submit(in_lane("fatal")).await.unwrap().id().clone();
    let waits = stage.client.submit(in_lane("sent to ann")).await.unwrap().id().clone();
    let is_dead = async || stage.state(&dead).await == TaskState::Dead;
    stage.worker().run_until(eventually("it is dead", SOON, is_dead)).await.unwrap();
    let found = warned(&stage, "5m", &["lane"]).remove(0);
    let text = format!("queue mail: task {dead} is dead and keeps the lane");
    assert!(found.starts_with(&text), "{found}");
    let why = stage.optimus(&["task", "explain", &waits.to_string()]).ended(0);
    assert!(why.out.contains(&format!("task {dead} is dead and keeps the lane")), "{why:?}");
    let listed = stage.optimus(&["lane", "list", "mail"]).ended(0).out;
    assert!(listed.contains(&format!("{} (dead)", dead.uuid())), "{listed}");
    let listed = stage.optimus(&["lane", "list", "mail", "--json"]).ended(0).json();
    assert_eq!(listed[0]["dead"], serde_json::json!([dead]), "{listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_whose_only_process_is_quiet_is_not_served() {
    let stage = Arc::new(Stage::new().await);
    let (_, running) = busy(&stage).await;
    let processes = async || stage.inspector().processes(None, 9).await.unwrap().rows;
    eventually("the process is listed", SOON, async || !processes().await.is_empty()).await;
    let process = processes().await.remove(0).id;
    stage.optimus(&["process", "quiet", process.as_str()]).ended(0);
    let is_quiet = async || !warned(&stage, "5m", &["quiet"]).is_empty();
    eventually("doctor says that it is quiet", SOON, is_quiet).await;
    let found = warned(&stage, "5m", &["quiet"]).remove(0);
    assert!(found.starts_with(&format!("queue mail: worker {process} is quiet")), "{found}");
    assert!(!stage.optimus(&["doctor"]).out.contains("served, not paused"));
    let listed = stage.optimus(&["process", "list", "--json"]).ended(0).json();
    assert_eq!(listed[0]["asked"], "quiet", "{listed:?}");
    let shown = stage.optimus(&["queue", "show", "mail"]).ended(0).out;
    assert!(shown.contains("1 worker with 0 of 4 slots"), "{shown}");
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_wait_for_a_dead_step_are_a_warning() {
    let stage = Stage::new().await;
    let [dead] = stage.ended(["fail: unlucky"]).await;
    let steps = optimus::group([send("a".to_owned()), send("b".to_owned())]).after(&dead);
    let group = stage.client.submit_group(steps).await.unwrap();
    let last = send("c".to_owned()).after(&group);
    let last = stage.client.submit(last).await.unwrap().id().clone();
    let found = warned(&stage, "5m", &["unmet"]).remove(0);
    let text = format!("queue mail: 3 tasks waiting for other tasks, and {dead} is dead: ");
    assert!(found.starts_with(&text), "{found}");
    let way_out = format!("`optimus flow cancel {}` ends what waits for it", group.id());
    assert!(found.ends_with(&way_out), "{found}");
    let shown = stage.optimus(&["flow", "show", &last.to_string()]).ended(0).out;
    assert!(shown.contains(&dead.to_string()), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_waits_for_one_of_which_nothing_is_stored_is_a_warning() {
    let stage = Stage::new().await;
    let never = optimus::TaskId::new(optimus::QueueName::new("mail").unwrap());
    let waits = send("a".to_owned()).after(&never);
    let waits = stage.client.submit(waits).await.unwrap().id().clone();
    let is_told = async || !warned(&stage, "1ms", &["unmet"]).is_empty();
    eventually("it is told after so long", SOON, is_told).await;
    let found = warned(&stage, "1ms", &["unmet"]).remove(0);
    assert!(found.contains(&format!("nothing is stored of {never}")), "{found}");
    assert!(found.ends_with(&format!("`optimus flow cancel {waits}` ends what waits for it")));
    assert!(warned(&stage, "5m", &["unmet"]).is_empty(), "it may come soon");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_steps_that_wait_for_a_dead_one_are_named_at_once() {
    let stage = Stage::new().await;
    let [dead] = stage.ended(["fail: unlucky"]).await;
    let after = async |text: &str, step: &optimus::TaskId| {
        stage.client.submit(send(text.to_owned()).after(step)).await.unwrap().id().clone()
    };
    let second = after("b", &dead).await;
    let third = after("c", &second).await;
    let found = warned(&stage, "5m", &["unmet"]).remove(0);
    let way_out = format!("`optimus flow cancel {second} {third}` ends what waits for it");
    assert!(found.ends_with(&way_out), "{found}");
    stage.optimus(&["flow", "cancel", "--yes", &second.to_string(), &third.to_string()]).ended(0);
    assert!(!stage.optimus(&["doctor"]).out.contains("waiting for other tasks"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_of_a_newer_release_and_one_that_is_not_listed_are_warnings() {
    let ward = Ward::open().await;
    ward.client.submit(send("x".to_owned())).await.unwrap();
    let url = ward.server.url();
    raw(&url, &["HSET", "{optimus:mail:0}:meta", "needs", "999"]);
    let found = ward.optimus(&["doctor", "--quiet"]).ended(8).out;
    assert!(found.contains("queue mail: newer programs use the queue"), "{found}");
    raw(&url, &["HDEL", "{optimus:mail:0}:meta", "needs"]);
    raw(&url, &["SREM", "optimus:queues", "mail"]);
    let found = ward.optimus(&["doctor", "--deep"]).ended(8).out;
    assert!(found.contains("queue mail has keys and is not in the list of queues"), "{found}");
    assert!(!found.contains("are sound"), "{found}");
    raw(&url, &["SADD", "optimus:queues", "mail"]);
    assert!(ward.optimus(&["doctor", "--deep"]).out.contains("are sound"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overdue_schedule_of_a_queue_without_a_worker_is_a_warning() {
    let stage = Stage::new().await;
    let tick = optimus::Schedule::every("tick", std::time::Duration::from_secs(1));
    stage.client.schedules().put(tick.call(send("x".to_owned()))).await.unwrap();
    let is_late = async || !warned(&stage, "5m", &["overdue"]).is_empty();
    eventually("it is overdue by more than 10 s", SOON * 2, is_late).await;
    let found = warned(&stage, "5m", &["overdue"]).remove(0);
    assert!(found.starts_with("schedule tick of queue mail is 1"), "{found}");
    assert!(found.ends_with(" s overdue: no worker serves the queue"), "{found}");
    let listed = stage.optimus(&["schedule", "list"]).ended(0).out;
    let by = listed.split_once("overdue by ").map(|(_, by)| by.trim_end()).unwrap_or_default();
    assert!(by.ends_with(" s: no worker serves the queue"), "{listed}");
    let shown = stage.optimus(&["schedule", "show", "tick"]).ended(0).out;
    assert!(shown.contains("overdue by ") && shown.contains("no worker serves"), "{shown}");
    let row = stage.optimus(&["schedule", "list", "--json"]).ended(0).json().remove(0);
    assert_eq!(row["overdue_why"], "no worker serves the queue");
    assert!(row["overdue_ms"].as_u64().is_some_and(|ms| ms > 10_000), "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_paused_or_slow_of_shards_and_sources_is_named() {
    let stage = Stage::new().await;
    let broker = stage.client.broker();
    let (orders, rows) =
        (RosterName::shards("orders").unwrap(), RosterName::sources("rows").unwrap());
    for roster in [&orders, &rows] {
        Holder::of(&stage, roster.clone()).await;
    }
    broker.suspend(&orders, None, "ann", "the disk is full").await.unwrap();
    let ended = Ended { ok: 10, failed: 90, scan_at_ms: 0 };
    broker.survey(&rows, ended, None, &BTreeMap::new()).await.unwrap();
    let text = stage.optimus(&["doctor"]).out;
    let paused = "function orders is paused by ann (the disk is full) until it is resumed: \
                  `optimus shard resume orders` ends it";
    assert!(text.contains(paused), "{text}");
    let slow = warned(&stage, "5m", &["sources"]).remove(0);
    assert!(slow.starts_with("source rows reads only a few rows a minute, because 90 %"), "{slow}");
    let failing = serde_json::json!({ "failed": 3, "error": "no such column:\nfailures" });
    let figures = BTreeMap::from([(1, failing.to_string())]);
    broker.survey(&rows, ended, None, &figures).await.unwrap();
    let failing = warned(&stage, "5m", &["sources"]).remove(0);
    let said = "source rows: the last page of 1 slice failed, so rows may get no tasks: no such";
    assert!(
        failing.starts_with(said) && failing.contains("`optimus source show rows`"),
        "{failing}"
    );
    broker.suspend(&rows, None, "ann", "").await.unwrap();
    let text = stage.optimus(&["doctor"]).out;
    let paused = "source rows is paused by ann until it is resumed: `optimus source resume rows`";
    assert!(text.contains(paused), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pauses_of_single_shards_are_named_with_what_ends_them() {
    let stage = Stage::new().await;
    Holder::of_orders(&stage).await;
    stage.optimus(&["shard", "pause", "orders", "1", "--reason", "repair"]).ended(0);
    let text = stage.optimus(&["doctor"]).out;
    let paused = "shard 1 of orders is paused by ann (repair) until it is resumed: \
                  `optimus shard resume orders 1` ends it";
    assert!(text.contains(paused) && !text.contains("shard 0 of"), "{text}");
    stage.optimus(&["shard", "count", "orders", "8", "--yes"]).ended(0);
    for index in ["0", "1", "2", "3", "4", "5", "6"] {
        stage.optimus(&["shard", "pause", "orders", index]).ended(0);
    }
    let text = stage.optimus(&["doctor"]).out;
    assert!(text.contains("shard 4 of orders is") && !text.contains("shard 5 of"), "{text}");
    let more = "2 more paused shards of orders: `optimus shard resume orders` ends all pauses";
    assert!(text.contains(more), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_each_worker_gives_back_because_it_does_not_know_it_is_a_warning() {
    let stage = Arc::new(Stage::new().await);
    let (_, running) = busy(&stage).await;
    let call = || optimus::NamedCall::new("mail", "refund", "{}").unwrap();
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(stage.client.submit(call()).await.unwrap().id().clone());
    }
    let later = optimus::Due::In(std::time::Duration::from_secs(3_600));
    let other = optimus::NamedCall::new("mail", "not_tried_yet", "{}").unwrap().due(later);
    stage.client.submit(other).await.unwrap();
    let are_back = async || {
        let rows = stage.inspector().list("mail", TaskState::Delayed, None, 9).await.unwrap().rows;
        rows.iter().filter(|row| row.misfits > 0).count() == ids.len()
    };
    eventually("both are given back", SOON, are_back).await;
    let found = warned(&stage, "5m", &["unknown"]).remove(0);
    assert!(found.starts_with("queue mail: no worker knows refund (2 seen): is a"), "{found}");
    assert!(found.contains(" is over, which is an hour unless they set another one; "), "{found}");
    let shown = stage.optimus(&["queue", "show", "mail"]).ended(0).out;
    assert!(shown.contains("refund (2 seen)") && !shown.contains("not_tried_yet"), "{shown}");
    let shown = stage.optimus(&["queue", "show", "mail", "--json"]).ended(0).json().remove(0);
    assert_eq!(shown["unknown"], serde_json::json!({ "refund": 2 }), "{shown}");
    running.abort();
}
