//! Changes of many tasks.

use std::time::Duration;

use optimus::{OperationAct, OperationFilter, QueueName, TaskState, WorkerId};
use optimus_testkit::eventually;
use serde_json::json;

use crate::{
    events::Events,
    stage::{SOON, Stage, call},
};

#[tokio::test(flavor = "multi_thread")]
async fn many_tasks_are_counted_first_and_changed_once_that_is_confirmed() {
    let stage = Stage::new().await;
    let calls: Vec<_> = (0..300).map(|_| call("x")).collect();
    stage.client.submit_all(calls).await.unwrap();
    let served = stage.guarded();
    let ann = served.bearer("ann");
    let mut events = Events::open(&ann, "").await;
    events.until("event: overview").await;
    let order = json!({ "act": "cancel", "filter": { "queue": "mail", "state": "ready" } });
    let counted = ann.act("operations", &order).await.is(200).json();
    assert_eq!((&counted["state"], &counted["matched"]), (&json!("counted"), &json!(300)));
    assert_eq!(counted["by_task"], json!([{ "task": "send_mail", "count": 300 }]));
    assert_eq!(counted["samples"].as_array().unwrap().len(), 20);
    assert_eq!(stage.client.inspector().counts("mail").await.unwrap().ready, 300);
    let path = format!("operations/{}", counted["id"].as_str().unwrap());
    let wrong = ann.act(&format!("{path}/confirm"), &json!({ "expect": 299 })).await;
    wrong.fails(409, "refused");
    let confirm = json!({ "expect": 300, "reason": "a wrong deploy" });
    let running = ann.act(&format!("{path}/confirm"), &confirm).await.is(200).json();
    assert!(["running", "done"].contains(&running["state"].as_str().unwrap()), "{running}");
    eventually("it is done", SOON, async || ann.look(&path).await["state"] == "done").await;
    let done = ann.look(&path).await;
    assert_eq!((&done["done"], &done["left"]), (&json!(300), &json!(0)), "{done}");
    assert_eq!(stage.client.inspector().counts("mail").await.unwrap().cancelled, 300);
    assert_eq!(ann.look("operations").await["rows"][0]["id"], done["id"]);
    events.until("event: operation").await;
    events.until("\"state\":\"done\"").await;
    let audit = ann.look("audit").await["rows"].clone();
    assert_eq!(audit[0]["act"], "operation.confirm");
    assert_eq!(audit[0]["outcome"], "confirmed for 300 tasks");
    assert!(audit[1]["outcome"].as_str().unwrap().starts_with("failed: "), "{audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_needs_the_role_and_the_queues_of_its_tasks() {
    let stage = Stage::new().await;
    for queue in ["mail", "tenant-a"] {
        stage.client.submit(call("x").queue(queue)).await.unwrap();
    }
    let served = stage.guarded();
    let [vera, olga, tina] = ["vera", "olga", "tina"].map(|name| served.bearer(name));
    let order = |act: &str, queue: &str| {
        let filter = json!({ "queue": queue, "state": "ready" });
        json!({ "act": act, "filter": filter })
    };
    vera.act("operations", &order("cancel", "mail")).await.fails(403, "forbidden");
    olga.act("operations", &order("delete", "mail")).await.fails(403, "forbidden");
    tina.act("operations", &order("cancel", "mail")).await.fails(403, "forbidden");
    let all = json!({ "act": "cancel", "filter": {} });
    tina.act("operations", &all).await.fails(403, "forbidden");
    let own = tina.act("operations", &order("delete", "tenant-a")).await.is(200).json();
    let foreign = olga.act("operations", &order("cancel", "mail")).await.is(200).json();
    let path = |operation: &serde_json::Value, verb: &str| {
        format!("operations/{}{verb}", operation["id"].as_str().unwrap())
    };
    let confirm = json!({ "expect": 1 });
    olga.act(&path(&own, "/confirm"), &confirm).await.fails(403, "forbidden");
    vera.act(&path(&foreign, "/cancel"), &json!({})).await.fails(403, "forbidden");
    tina.act(&path(&foreign, "/confirm"), &confirm).await.fails(404, "not_found");
    tina.get(&format!("/api/v1/{}", path(&foreign, ""))).await.fails(404, "not_found");
    assert!(!tina.look("operations").await.to_string().contains(foreign["id"].as_str().unwrap()));
    olga.act(&path(&foreign, "/cancel"), &json!({ "reason": "no" })).await.is(200);
    olga.act(&path(&foreign, "/confirm"), &confirm).await.fails(409, "refused");
    for id in ["x", "..%2f", "%00", &"a".repeat(100)] {
        olga.get(&format!("/api/v1/operations/{id}")).await.fails(404, "not_found");
    }
    let success = json!({ "act": "requeue", "filter": { "queue": "mail", "state": "ready" } });
    olga.act("operations", &success).await.fails(400, "invalid");
    for field in ["queue", "state", "task", "fingerprint", "cause", "header", "text"] {
        let empty = json!({ "act": "delete", "filter": { field: "" } });
        let ann = served.bearer("ann");
        let answer = ann.act("operations", &empty).await;
        answer.fails(400, "invalid");
        assert!(answer.json().to_string().contains("is empty; leave it out"), "{answer:?}");
    }
    assert_eq!(stage.client.inspector().counts("mail").await.unwrap().ready, 1);
}

/// Counts the ready tasks of queue mail, as the command line does.
async fn counted_elsewhere(stage: &Stage, act: OperationAct, of: TaskState) -> String {
    let filter = OperationFilter::of(of).queue("mail").unwrap();
    stage.client.operations().count(act, filter, "bob").await.unwrap().id
}

#[tokio::test(flavor = "multi_thread")]
async fn another_person_confirms_what_somebody_has_counted_elsewhere() {
    let stage = Stage::new().await;
    let calls: Vec<_> = (0..3).map(|_| call("x")).collect();
    stage.client.submit_all(calls).await.unwrap();
    let served = stage.guarded();
    let [vera, olga, ann] = ["vera", "olga", "ann"].map(|name| served.bearer(name));
    let id = counted_elsewhere(&stage, OperationAct::Cancel, TaskState::Ready).await;
    let row = vera.look("operations").await["rows"][0].clone();
    assert_eq!((&row["id"], &row["who"]), (&json!(id), &json!("bob")));
    assert_eq!((&row["state"], &row["matched"]), (&json!("counted"), &json!(3)));
    let (created, until) = (row["created_ms"].as_u64(), row["confirm_until_ms"].as_u64());
    let until = until.unwrap() - created.unwrap();
    assert!((86_400_000..86_500_000).contains(&until), "it can be confirmed for a day: {row}");
    let path = format!("operations/{id}/confirm");
    let confirm = json!({ "expect": 3, "reason": "OPS-7" });
    vera.act(&path, &confirm).await.fails(403, "forbidden");
    olga.act(&path, &json!({ "expect": 4 })).await.fails(409, "refused");
    assert_eq!(stage.client.inspector().counts("mail").await.unwrap().ready, 3);
    olga.act(&path, &confirm).await.is(200);
    eventually("all are cancelled", SOON, async || {
        stage.client.inspector().counts("mail").await.unwrap().cancelled == 3
    })
    .await;
    let acts = ann.look("audit").await["rows"].clone();
    let expected = json!(["olga", "operation.confirm", "OPS-7"]);
    assert_eq!(json!([acts[0]["who"], acts[0]["act"], acts[0]["reason"]]), expected, "{acts}");
    let row = ann.look("operations").await["rows"][0].clone();
    assert_eq!((&row["who"], &row["reason"]), (&json!("bob"), &json!("OPS-7")));
    assert_eq!(row["confirm_until_ms"], json!(null));
    // What deletes needs the role that deletes.
    let id = counted_elsewhere(&stage, OperationAct::Delete, TaskState::Cancelled).await;
    let path = format!("operations/{id}/confirm");
    olga.act(&path, &confirm).await.fails(403, "forbidden");
    ann.act(&path, &confirm).await.is(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_of_many_tasks_is_undone_and_the_audit_has_its_filter() {
    let stage = Stage::new().await;
    let secret = "hunter2hunter2";
    let calls: Vec<_> = (0..30).map(|_| call("x").header("x-auth-token", secret)).collect();
    stage.client.submit_all(calls).await.unwrap();
    let served = stage.guarded();
    let [vera, olga] = ["vera", "olga"].map(|name| served.bearer(name));
    let filter = json!({ "queue": "mail", "state": "ready", "task": "send_mail",
        "header": "x-auth-token" });
    let order = json!({ "act": "cancel", "filter": filter, "reason": "a wrong deploy" });
    let counted = olga.act("operations", &order).await.is(200).json();
    let path = format!("operations/{}", counted["id"].as_str().unwrap());
    assert_eq!(counted["can_undo"], false);
    olga.act(&format!("{path}/undo"), &json!({})).await.fails(409, "refused");
    olga.act(&format!("{path}/confirm"), &json!({ "expect": 30 })).await.is(200);
    eventually("it is done", SOON, async || olga.look(&path).await["state"] == "done").await;
    assert_eq!(olga.look(&path).await["can_undo"], true);
    assert_eq!(olga.look(&path).await["reason"], "a wrong deploy", "as it was counted");
    vera.act(&format!("{path}/undo"), &json!({})).await.fails(403, "forbidden");
    let undo = olga.act(&format!("{path}/undo"), &json!({ "reason": "wrong" })).await.is(200);
    let undo = undo.json();
    assert_eq!((&undo["act"], &undo["matched"]), (&json!("requeue"), &json!(30)));
    let since = undo["filter"]["since_ms"].as_u64();
    assert!(since >= counted["created_ms"].as_u64(), "{undo}");
    assert_eq!(stage.client.inspector().counts("mail").await.unwrap().cancelled, 30);
    let confirm = format!("operations/{}/confirm", undo["id"].as_str().unwrap());
    olga.act(&confirm, &json!({ "expect": 30 })).await.is(200);
    let undone = &olga.look("operations").await["rows"][0];
    assert_eq!((&undone["id"], &undone["reason"]), (&undo["id"], &json!("wrong")));
    eventually("they are ready again", SOON, async || {
        stage.client.inspector().counts("mail").await.unwrap().ready == 30
    })
    .await;
    let audit = served.bearer("ann").look("audit").await["rows"].clone();
    let acts: Vec<_> = audit.as_array().unwrap().iter().map(|row| row["act"].clone()).collect();
    let verbs = ["confirm", "undo", "confirm", "count"].map(|verb| format!("operation.{verb}"));
    assert_eq!(acts, verbs);
    for text in [&audit[1]["target"], &audit[2]["target"], &audit[3]["outcome"]] {
        let text = text.as_str().unwrap();
        let has = |part: &str| text.contains(part);
        assert!(has(r#""task":"send_mail""#) && has("x-auth-token"), "{text}");
    }
    let confirmed = audit[0]["target"].as_str().unwrap();
    assert!(confirmed.contains(&format!(r#""since_ms":{}"#, since.unwrap())), "{confirmed}");
}

/// Lets the worker of a task end without a report as often as the task survives that.
async fn lose_one(stage: &Stage) {
    let (broker, queue) = (stage.client.broker(), QueueName::new("mail").unwrap());
    let id = stage.submit(call("x").max_losses(1)).await;
    let lease = Duration::from_millis(200);
    let [ghost, other] = ["ghost", "other"].map(|name| WorkerId::generate(name, 1));
    broker.register(&queue, &ghost, lease, "{}").await.unwrap();
    broker.claim_alone(&queue, &ghost, 1).await.unwrap();
    eventually("the task dies of the loss", SOON, async || {
        broker.register(&queue, &other, lease, "{}").await.unwrap();
        broker.reap(&queue, &other, lease, 10).await.unwrap();
        stage.state(&id).await == TaskState::Dead
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_were_lost_are_told_from_those_that_have_failed() {
    let stage = Stage::new().await;
    stage.ended(["fatal", "fatal"]).await;
    lose_one(&stage).await;
    let served = stage.open();
    let matched = async |cause: &str| {
        let filter = json!({ "queue": "mail", "state": "dead", "cause": cause });
        let order = json!({ "act": "retry", "filter": filter });
        let counted = served.browser.act("operations", &order).await.is(200).json();
        assert_eq!(counted["filter"]["cause"], cause, "{counted}");
        counted["matched"].clone()
    };
    assert_eq!([matched("lost").await, matched("failed").await], [json!(1), json!(2)]);
    let wrong = json!({ "act": "retry", "filter": { "queue": "mail", "cause": "vanished" } });
    served.browser.act("operations", &wrong).await.fails(400, "invalid");
}
