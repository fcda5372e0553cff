//! What pages show.

use std::sync::Arc;

use optimus::{Client, Due, Gate, Limit, PrerequisiteFailure};
use optimus_console::{Console, ConsoleListener};
use optimus_testkit::{RedisServer, eventually};
use serde_json::{Value, json};

use crate::{
    client::Browser,
    stage::{SOON, Stage, busy, call},
};

fn rows(page: &Value) -> &Vec<Value> {
    page["rows"].as_array().expect("a page has rows")
}

fn path_of(id: &impl ToString) -> String {
    format!("tasks/{}", id.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_counts_the_tasks_of_all_queues_in_each_state() {
    let stage = Stage::new().await;
    stage.fill().await;
    stage.client.submit(call("other").queue("other")).await.unwrap();
    let served = stage.open();
    let seen = served.browser.look("overview").await;
    let expected = json!({ "ready": 3, "delayed": 1, "blocked": 1, "retry": 1, "working": 0,
        "dead": 1, "cancelled": 1 });
    assert_eq!(seen["counts"], expected);
    assert_eq!((&seen["queue_count"], &seen["left_out"]), (&json!(2), &json!(0)));
    assert_eq!(seen["namespace"], stage.namespace);
    assert_eq!(seen["redis"]["up"], true);
    assert!(seen["redis"]["version"].as_str().is_some_and(|version| version.contains('.')));
    let failure = &seen["failures"][0];
    assert_eq!(failure["outline"], "connect to smtp-#: timed out");
    assert_eq!((&failure["dead"], &failure["task"]), (&json!(1), &json!("send_mail")));
    // No process serves them.
    let named = |row: &Value| row["queue"].as_str().map(str::to_owned);
    let attention: Vec<_> = seen["attention"].as_array().unwrap().iter().map(named).collect();
    assert_eq!(attention.len(), 2, "{attention:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_sorted_and_paged() {
    let stage = Stage::new().await;
    for (queue, tasks) in [("a", 1), ("b", 3), ("c", 2)] {
        for _ in 0..tasks {
            stage.client.submit(call("x").queue(queue)).await.unwrap();
        }
    }
    let served = stage.open();
    let names = |page: &Value| -> Vec<String> {
        rows(page).iter().map(|row| row["queue"].as_str().unwrap().to_owned()).collect()
    };
    let first = served.browser.look("queues?limit=2").await;
    assert_eq!((names(&first), &first["total"]), (vec!["a".into(), "b".into()], &json!(3)));
    let next = first["next"].as_str().unwrap();
    let second = served.browser.look(&format!("queues?limit=2&after={next}")).await;
    assert_eq!((names(&second), &second["next"]), (vec!["c".to_owned()], &Value::Null));
    assert_eq!(names(&served.browser.look("queues?sort=ready").await), ["b", "c", "a"]);
    assert_eq!(names(&served.browser.look("queues?sort=oldest").await), ["a", "b", "c"]);
    assert_eq!(names(&served.browser.look("queues?text=b").await), ["b"]);
    served.browser.get("/api/v1/queues?sort=color").await.fails(400, "invalid");
    served.browser.get("/api/v1/queues?after=x").await.fails(400, "invalid");
    served.browser.get("/api/v1/queues?limit=0").await.fails(400, "invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_redis_refuses_to_read_is_named_and_hides_no_other() {
    let redis = RedisServer::start();
    let client = Client::connect(&redis.url()).await.unwrap();
    for queue in ["a", "broken", "c"] {
        client.submit(call("x").queue(queue)).await.unwrap();
    }
    let mut admin = redis.admin().await;
    let mut set = redis::cmd("SET");
    let set = set.arg("{optimus:broken:0}:ready").arg("x");
    set.query_async::<()>(&mut admin).await.unwrap();
    let listener = ConsoleListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let browser = Browser::new(listener.address().unwrap());
    let serving = tokio::spawn(Console::new(client).serve(listener).unwrap());
    let page = browser.look("queues").await;
    let is_readable = |row: &Value| row["problem"].is_null();
    let seen: Vec<_> = rows(&page).iter().map(|row| (&row["queue"], is_readable(row))).collect();
    assert_eq!(seen, [(&json!("a"), true), (&json!("broken"), false), (&json!("c"), true)]);
    let first = &browser.look("overview").await["attention"][0];
    assert_eq!(first["queue"], "broken", "it needs attention before all others");
    assert!(first["problem"].as_str().is_some_and(|why| why.contains("WRONGTYPE")), "{first}");
    browser.get("/api/v1/queues/broken").await.fails(503, "unavailable");
    assert_eq!(browser.look("queues/c").await["counts"]["ready"], 1);
    assert_eq!(browser.look("stats").await["queues"], 2);
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_shows_its_workers_its_pause_and_what_it_waits_for() {
    let stage = Arc::new(Stage::new().await);
    stage.fill().await;
    let (_, running) = busy(&stage).await;
    let gate = stage.client.gate("mail", optimus::Gate::Queue);
    gate.pause("bob", "a deploy").await.unwrap();
    let served = stage.open();
    let seen = served.browser.look("queues/mail").await;
    assert_eq!(seen["paused"]["by"], "bob");
    assert_eq!(seen["paused"]["why"], "a deploy");
    assert_eq!(seen["counts"]["working"], 1);
    assert!(seen["totals"]["success"].as_u64() >= Some(1), "{seen}");
    assert!(seen["workers"][0]["running"].as_u64() >= Some(1), "{seen}");
    let explain = seen["explain"].to_string();
    assert!(explain.contains("paused by bob"), "{explain}");
    served.browser.get("/api/v1/queues/nothing").await.fails(404, "not_found");
    served.browser.get("/api/v1/queues/a%2Fb").await.fails(400, "invalid");
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_listed_by_state_with_what_each_state_knows() {
    let stage = Stage::new().await;
    let filled = stage.fill().await;
    let served = stage.open();
    for (state, id) in [
        ("ready", &filled.ready),
        ("delayed", &filled.delayed),
        ("blocked", &filled.blocked),
        ("retry", &filled.retry),
        ("dead", &filled.dead),
        ("cancelled", &filled.cancelled),
        ("success", &filled.success),
    ] {
        let page = served.browser.look(&format!("queues/mail/tasks?state={state}")).await;
        let row = rows(&page).iter().find(|row| row["id"] == id.to_string());
        let row = row.unwrap_or_else(|| panic!("{state}: {page}"));
        assert_eq!((&row["task"], &row["state"]), (&json!("send_mail"), &json!(state)));
        assert_eq!(page["total"].as_u64().unwrap(), rows(&page).len() as u64, "{state}");
    }
    let page = served.browser.look("queues/mail/tasks?state=dead").await;
    let error = &rows(&page)[0]["error"];
    assert_eq!(error["message"], "connect to smtp-7: timed out");
    assert_eq!(error["causes"], json!(["caused by: no route"]));
    assert_eq!((&error["reason"], &error["attempt"]), (&json!("failed"), &json!(1)));
    let worker = &rows(&page)[0]["worker"];
    assert!(worker.is_string() && *worker == error["worker"], "it died on a worker: {page}");
    served.browser.get("/api/v1/queues/mail/tasks?state=failed").await.fails(400, "invalid");
    served.browser.get("/api/v1/queues/mail/tasks?after=zzz").await.fails(400, "invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_look_through_a_bounded_number_of_tasks_and_go_on() {
    let stage = Stage::new().await;
    let wanted = |n: u32| call("x").header("number", &*n.to_string());
    let calls: Vec<_> = (0..3_000).map(wanted).collect();
    stage.client.submit_all(calls).await.unwrap();
    let served = stage.open();
    let first = served.browser.look("queues/mail/tasks?header=number=2990").await;
    let scanned = first["scanned"].as_u64().unwrap();
    assert!(rows(&first).is_empty() && (129..=256).contains(&scanned), "{first}");
    let (mut page, mut requests) = (first, 1);
    while rows(&page).is_empty() {
        let next = page["next"].as_str().unwrap();
        let path = format!("queues/mail/tasks?header=number=2990&after={next}");
        (page, requests) = (served.browser.look(&path).await, requests + 1);
    }
    assert_eq!(rows(&page)[0]["headers"]["number"], "2990", "{page}");
    assert!((12..=20).contains(&requests), "{requests}");
    let by_text = served.browser.look("queues/mail/tasks?text=SEND&limit=10").await;
    assert!((10..=137).contains(&rows(&by_text).len()));
    let none = served.browser.look("queues/mail/tasks?task=other").await;
    assert!(rows(&none).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_has_ended_says_what_to_do_before_a_retry() {
    let stage = Stage::new().await;
    let first = stage.submit(call("later").due(Due::In(SOON * 100))).await;
    let second = call("x").after(&first).on_prerequisite_failure(PrerequisiteFailure::Cancel);
    let second = stage.submit(second).await;
    stage.client.cancel(&first).await.unwrap();
    eventually("the second ends, too", SOON, async || stage.state(&second).await.is_terminal())
        .await;
    let served = stage.open();
    let seen = served.browser.look(&format!("tasks/{second}")).await;
    let told = "1. requeue the task that it waited for, and then this task";
    assert_eq!(seen["explain"], json!([told]), "{seen}");
    let seen = served.browser.look(&format!("tasks/{first}")).await;
    assert_eq!(seen["explain"], json!([]), "its state says all: {seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_shows_all_that_is_stored_of_it() {
    let stage = Arc::new(Stage::new().await);
    let filled = stage.fill().await;
    let served = stage.open();
    let dead = served.browser.look(&path_of(&filled.dead)).await;
    assert_eq!((&dead["state"], &dead["failures"]), (&json!("dead"), &json!(1)));
    assert_eq!(dead["errors"][0]["causes"], json!(["caused by: no route"]));
    assert_eq!(dead["explain"], json!([]));
    let kinds = |task: &Value| -> Vec<String> {
        let moments = task["timeline"].as_array().unwrap().iter();
        moments.map(|moment| moment["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(kinds(&dead), ["submitted", "failed", "ended"]);
    let ready = served.browser.look(&path_of(&filled.ready)).await;
    assert_eq!((&ready["biz_id"], &ready["priority"]), (&json!("o-17"), &json!(5)));
    assert_eq!(ready["headers"], json!({ "tenant": "acme" }));
    assert!(ready["explain"].to_string().contains("no worker"), "{ready}");
    let blocked = served.browser.look(&path_of(&filled.blocked)).await;
    assert_eq!(blocked["lane"], "user-7");
    let done = served.browser.look(&path_of(&filled.success)).await;
    assert_eq!((&done["task"], &done["summary"]["attempt"]), (&json!("send_mail"), &json!(1)));
    assert_eq!(done["result"]["text"], "null");
    let gone = "01890a5d-ac96-774b-bcce-b302099a8057";
    served.browser.get(&format!("/api/v1/tasks/mail/{gone}")).await.fails(404, "not_found");
    served.browser.get("/api/v1/tasks/mail/x").await.fails(400, "invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_is_shown_with_its_process_and_progress() {
    let stage = Arc::new(Stage::new().await);
    let (id, running) = busy(&stage).await;
    let served = stage.open();
    eventually("the process has said what it runs", SOON, async || {
        let page = served.browser.look("running").await;
        page["rows"][0]["progress"]["part"] == 0.42
    })
    .await;
    let page = served.browser.look("running?queue=mail").await;
    assert_eq!(page["rows"][0]["id"], id.to_string());
    assert_eq!(page["rows"][0]["pid"], std::process::id());
    assert!(rows(&served.browser.look("running?queue=other").await).is_empty());
    let processes = served.browser.look("processes").await;
    assert_eq!((&processes["total"], &processes["rows"][0]["busy"]), (&json!(1), &json!(1)));
    assert_eq!(processes["rows"][0]["running"][0]["progress"]["text"], "copied 42");
    let task = served.browser.look(&path_of(&id)).await;
    assert_eq!(task["progress"]["part"], 0.42);
    assert!(task["running_since_ms"].as_u64() > Some(0));
    let row = served.browser.look("queues/mail/tasks?state=working").await;
    assert_eq!(row["rows"][0]["progress"]["part"], 0.42);
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_have_a_row_for_each_minute_and_the_history_a_row_for_each_end() {
    let stage = Stage::new().await;
    let filled = stage.fill().await;
    let served = stage.open();
    for path in ["queues/mail/stats", "stats"] {
        let seen = served.browser.look(&format!("{path}?unit=minute&last=10")).await;
        assert_eq!(rows(&seen).len(), 10, "{path}");
        let of =
            |name: &str| -> u64 { rows(&seen).iter().map(|row| row[name].as_u64().unwrap()).sum() };
        assert_eq!((of("success"), of("dead"), of("cancelled")), (1, 1, 1), "{path}");
        assert_eq!(seen["by_task"][0]["task"], "send_mail");
    }
    served.browser.get("/api/v1/stats?unit=year").await.fails(400, "invalid");
    let history = served.browser.look("queues/mail/history?state=success").await;
    assert_eq!(history["rows"][0]["id"], filled.success.to_string());
    served.browser.get("/api/v1/queues/mail/history?day=monday").await.fails(400, "invalid");
    served.browser.get("/api/v1/queues/mail/history?state=ready").await.fails(400, "invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn causes_of_deaths_are_grouped_over_all_queues() {
    let stage = Stage::new().await;
    stage.ended(["fail: connect to smtp-1: x", "fail: connect to smtp-2: x", "fatal"]).await;
    let served = stage.open();
    let seen = served.browser.look("failures").await;
    let outlines: Vec<_> = rows(&seen).iter().map(|row| (&row["outline"], &row["dead"])).collect();
    assert_eq!(outlines[0], (&json!("connect to smtp-#: x"), &json!(2)));
    assert_eq!(outlines[1], (&json!("the address does not exist"), &json!(1)));
    assert_eq!((&seen["queues"], &seen["left_out"]), (&json!(1), &json!(0)));
    let print = rows(&seen)[0]["fingerprint"].as_str().unwrap();
    let path = format!("queues/mail/tasks?state=dead&fingerprint={print}");
    assert_eq!(rows(&served.browser.look(&path).await).len(), 2);
    let one = served.browser.look(&format!("failures?fingerprint={print}")).await;
    assert_eq!((rows(&one).len(), &one["rows_left_out"]), (1, &json!(0)));
    let first = served.browser.look("failures?limit=1").await;
    assert_eq!((rows(&first).len(), &first["rows_left_out"]), (1, &json!(1)));
}

/// Removes all keys of a namespace.
async fn empty(stage: &Stage) {
    let client = redis::Client::open(stage.url()).unwrap();
    let mut admin = client.get_multiplexed_async_connection().await.unwrap();
    let keys = redis::cmd("KEYS").arg(format!("*{}*", stage.namespace)).to_owned();
    let keys: Vec<String> = keys.query_async(&mut admin).await.unwrap();
    redis::cmd("DEL").arg(keys).query_async::<()>(&mut admin).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_used_again_after_it_was_emptied_shows_its_new_causes() {
    let stage = Stage::new().await;
    let served = stage.open();
    for error in ["no route", "disk full"] {
        stage.ended([&*format!("fail: {error}")]).await;
        let shows_it = async || {
            let page = served.browser.look("failures?queue=mail").await;
            rows(&page).first().is_some_and(|row| row["outline"] == json!(error))
        };
        eventually(&format!("{error} is shown"), SOON, shows_it).await;
        empty(&stage).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_limits_schedules_and_the_server_are_shown() {
    let stage = Stage::new().await;
    stage.fill().await;
    stage.furnish().await;
    let served = stage.open();
    let lanes = served.browser.look("lanes?queue=mail").await;
    assert_eq!(lanes["rows"][0]["name"], "user-7");
    let limits = served.browser.look("limits").await;
    let names: Vec<_> = rows(&limits).iter().map(|row| row["name"].clone()).collect();
    assert!(names.contains(&json!("limit:stripe")) && names.contains(&json!("lane:user-7")));
    let schedules = served.browser.look("schedules").await;
    assert_eq!(schedules["rows"][0]["name"], "digest");
    for path in ["groups", "groups?queue=mail", "shards", "sources", "dispensers?name=a,b"] {
        served.browser.look(path).await;
    }
    let features = served.browser.look("overview").await["features"].clone();
    let expected = json!({ "lanes": true, "limits": true, "schedules": true, "shards": false,
        "sources": false, "dispensers": false, "groups": false });
    assert_eq!(features, expected);
    let redis = served.browser.look("redis").await;
    assert!(redis["facts"].to_string().contains("maxmemory-policy"), "{redis}");
    assert!(!redis["checks"].as_array().unwrap().is_empty());
    served.browser.get("/api/v1/dispensers?name=a%2Fb").await.fails(400, "invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_limits_ends_with_the_queue_that_fills_it() {
    let stage = Stage::new().await;
    for queue in ["a", "b", "c"] {
        stage.client.submit(call("x").queue(queue)).await.unwrap();
        for number in 0..30 {
            let gate = stage.client.gate(queue, Gate::Named(format!("limit-{number}")));
            gate.set(Limit::new().max_working(8)).await.unwrap();
        }
    }
    let served = stage.open();
    let first = served.browser.look("limits").await;
    assert_eq!((rows(&first).len(), &first["next"]), (60, &json!("b")));
    let second = served.browser.look("limits?after=b").await;
    assert_eq!((rows(&second).len(), &second["next"]), (30, &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_can_not_be_read_is_a_row_beside_the_limits_of_the_others() {
    let redis = RedisServer::start();
    let client = Client::connect(&redis.url()).await.unwrap();
    for queue in ["a", "b", "c"] {
        client.submit(call("x").queue(queue)).await.unwrap();
        client.gate(queue, Gate::Queue).set(Limit::new().max_working(8)).await.unwrap();
    }
    let mut admin = redis.admin().await;
    let key = "{optimus:b:0}:limits";
    redis::cmd("DEL").arg(key).query_async::<()>(&mut admin).await.unwrap();
    redis::cmd("SET").arg(key).arg("x").query_async::<()>(&mut admin).await.unwrap();
    let listener = ConsoleListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let browser = Browser::new(listener.address().unwrap());
    let serving = tokio::spawn(Console::new(client).serve(listener).unwrap());
    let page = browser.look("limits").await;
    let found = rows(&page).iter().map(|row| (row["queue"].as_str(), row["name"].as_str()));
    let expected = [(Some("a"), Some("queue")), (Some("b"), Some("")), (Some("c"), Some("queue"))];
    assert_eq!(found.collect::<Vec<_>>(), expected, "{page}");
    let state = rows(&page)[1]["state"].as_str().unwrap();
    assert!(state.contains("queue b can't be read") && state.contains("WRONGTYPE"), "{state}");
    browser.get("/api/v1/limits?queue=b").await.fails(503, "unavailable");
    serving.abort();
}
