//! What operators change.

use std::{sync::Arc, time::Duration};

use optimus::{Due, TaskState};
use optimus_testkit::eventually;
use serde_json::json;

use crate::stage::{SOON, Stage, busy, call};

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_paused_and_resumed_and_all_who_watch_see_it_at_once() {
    let stage = Stage::new().await;
    stage.client.submit(call("x")).await.unwrap();
    let served = stage.open();
    served.browser.look("overview").await;
    served.browser.act("queues/mail/pause", &json!({ "reason": "a deploy" })).await.is(204);
    let row = served.browser.look("queues").await["rows"][0].clone();
    assert_eq!(
        (&row["paused"]["by"], &row["paused"]["why"]),
        (&json!("tester"), &json!("a deploy"))
    );
    assert!(stage.client.inspector().counts("mail").await.unwrap().paused);
    served.browser.act("queues/mail/resume", &json!({})).await.is(204);
    assert_eq!(served.browser.look("queues").await["rows"][0]["paused"], json!(null));
    assert!(!stage.client.inspector().counts("mail").await.unwrap().paused);
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_retried_cancelled_hurried_and_deleted_each_with_an_answer() {
    let stage = Stage::new().await;
    let filled = stage.fill().await;
    let served = stage.open();
    let act = async |act: &str, ids: &[&optimus::TaskId]| {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let answer = served.browser.act("tasks/act", &json!({ "act": act, "ids": ids })).await;
        answer.is(200).json()["answers"].clone()
    };
    let answers = act("retry", &[&filled.dead, &filled.ready]).await;
    assert_eq!((&answers[0]["ok"], &answers[1]["ok"]), (&json!(true), &json!(false)));
    assert_eq!(answers[1]["id"], filled.ready.to_string());
    assert_eq!(stage.state(&filled.dead).await, TaskState::Ready);
    assert_eq!(act("cancel", &[&filled.ready]).await[0]["text"], "is cancelled");
    assert_eq!(stage.state(&filled.ready).await, TaskState::Cancelled);
    assert_eq!(act("run_now", &[&filled.retry]).await[0]["text"], "is due now");
    assert_eq!(act("delete", &[&filled.cancelled]).await[0]["text"], "is deleted");
    assert_eq!(stage.state(&filled.cancelled).await, TaskState::Forgotten);
    let none = json!({ "act": "retry", "ids": [] });
    served.browser.act("tasks/act", &none).await.fails(400, "invalid");
    let many = json!({ "act": "retry", "ids": vec![filled.dead.to_string(); 101] });
    served.browser.act("tasks/act", &many).await.fails(400, "invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_says_what_a_task_waits_for_again() {
    let stage = Stage::new().await;
    let first = stage.submit(call("x")).await;
    let waits = stage.submit(call("x").after(&first)).await;
    let free = stage.submit(call("x")).await;
    let later = stage.submit(call("x").due(Due::In(Duration::from_secs(7_200)))).await;
    let served = stage.open();
    let ids = [waits.to_string(), free.to_string(), later.to_string()];
    let act = async |act: &str| {
        let answer = served.browser.act("tasks/act", &json!({ "act": act, "ids": ids })).await;
        let answers = answer.is(200).json()["answers"].clone();
        [0, 1, 2].map(|at| answers[at]["text"].as_str().unwrap().to_owned())
    };
    act("cancel").await;
    let told = act("retry").await;
    // A retry of a task by its id runs it at once, also before it is due.
    let (waits_again, ready) = ("is requeued, and waits for other tasks", "is ready again");
    assert_eq!(told, [waits_again, ready, ready]);
    assert_eq!(stage.state(&waits).await, TaskState::Blocked);
    assert_eq!(stage.state(&free).await, TaskState::Ready);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_named_twice_is_answered_once() {
    let stage = Stage::new().await;
    let served = stage.open();
    let id = stage.submit(call("x")).await.to_string();
    let twice = json!({ "act": "delete", "ids": [id, id] });
    let answer = served.browser.act("tasks/act", &twice).await.is(200).json();
    assert_eq!(answer["answers"].as_array().unwrap().len(), 1, "{answer}");
    assert_eq!(answer["answers"][0]["ok"], true, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_and_requeue_are_one_act_for_named_tasks_and_for_many() {
    let stage = Stage::new().await;
    let served = stage.open();
    for word in ["retry", "requeue"] {
        let id = stage.submit(call("x")).await;
        stage.client.cancel(&id).await.unwrap();
        let named = json!({ "act": word, "ids": [id.to_string()] });
        let answer = served.browser.act("tasks/act", &named).await.is(200).json();
        assert_eq!(answer["answers"][0]["ok"], true, "{answer}");
        let many = json!({ "act": word, "filter": { "queue": "mail" } });
        let counted = served.browser.act("operations", &many).await.is(200).json();
        assert_eq!(counted["act"], "requeue");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_is_asked_to_be_quiet() {
    let stage = Arc::new(Stage::new().await);
    let (_, running) = busy(&stage).await;
    let served = stage.open();
    let first = async || served.browser.look("processes").await["rows"][0]["id"].clone();
    eventually("the process is listed", SOON, async || first().await.is_string()).await;
    let id = first().await.as_str().unwrap().to_owned();
    let path = format!("processes/{id}/act");
    let answer = served.browser.act(&path, &json!({ "act": "quiet" })).await.is(200).json();
    assert!(answer["text"].as_str().unwrap().contains("begins no more tasks"), "{answer}");
    eventually("the process is quiet", SOON, async || {
        served.browser.look("processes").await["rows"][0]["slots"] == 0
    })
    .await;
    served.browser.act(&path, &json!({ "act": "slots" })).await.fails(400, "invalid");
    let absent = "processes/gone-1-0a0b0c0d/act";
    served.browser.act(absent, &json!({ "act": "stop" })).await.fails(404, "not_found");
    served.browser.act("processes/x/act", &json!({ "act": "stop" })).await.fails(400, "invalid");
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_limits_and_schedules_are_paused_resumed_and_hurried() {
    let stage = Stage::new().await;
    stage.fill().await;
    stage.furnish().await;
    let served = stage.open();
    let act = async |kind: &str, body: serde_json::Value| {
        let answer = served.browser.act(&format!("things/{kind}/act"), &body).await;
        answer.is(200).json()["text"].as_str().unwrap().to_owned()
    };
    let lane = json!({ "queue": "mail", "name": "user-7", "act": "resume" });
    assert!(act("lanes", lane).await.starts_with("resumed"));
    let limit = json!({ "queue": "mail", "name": "limit:stripe", "act": "pause", "reason": "x" });
    assert!(act("limits", limit).await.starts_with("paused"));
    let paused = served.browser.look("limits?queue=mail").await.to_string();
    assert!(paused.contains("paused by tester (x)"), "{paused}");
    assert_eq!(act("schedules", json!({ "name": "digest", "act": "pause" })).await, "paused");
    let now = act("schedules", json!({ "name": "digest", "act": "run_now" })).await;
    assert!(now.starts_with("submitted mail/"), "{now}");
    let absent = json!({ "name": "gone", "act": "pause" });
    served.browser.act("things/schedules/act", &absent).await.fails(404, "not_found");
    for (kind, verb) in [("shards", "pause"), ("sources", "pause"), ("sources", "resume")] {
        let misspelt = json!({ "name": "gone", "act": verb });
        served.browser.act(&format!("things/{kind}/act"), &misspelt).await.fails(404, "not_found");
    }
    let wrong = json!({ "queue": "mail", "name": "user-7", "act": "run_now" });
    served.browser.act("things/lanes/act", &wrong).await.fails(400, "invalid");
    served.browser.act("things/cats/act", &absent).await.fails(400, "invalid");
}
