//! Who carries an operation on: the console, also after an error of Redis, and another one.

use std::time::Duration;

use optimus::{Client, Due, OperationAct, OperationFilter, TaskState};
use optimus_console::Console;
use optimus_testkit::{RedisServer, eventually};
use serde_json::json;

use crate::stage::{SOON, Served, Stage, call};

const LATER: Due = Due::In(Duration::from_secs(3_600));

#[tokio::test(flavor = "multi_thread")]
async fn a_console_goes_on_with_an_operation_after_a_restart_of_redis() {
    const TASKS: u64 = 2_000;
    let mut redis = RedisServer::builder().appendonly_always().start();
    let client = Client::connect(&redis.url()).await.unwrap();
    let calls: Vec<_> = (0..TASKS).map(|_| call("later").due(LATER)).collect();
    client.submit_all(calls).await.unwrap();
    let served = Served::of(Console::new(client.clone()));
    let order = json!({ "act": "cancel", "filter": { "queue": "mail", "state": "delayed" } });
    let counted = served.browser.act("operations", &order).await.is(200).json();
    let id = counted["id"].as_str().unwrap().to_owned();
    let path = format!("operations/{id}");
    eventually("they are counted", SOON, async || {
        served.browser.look(&path).await["state"] == "counted"
    })
    .await;
    let confirm = json!({ "expect": TASKS });
    served.browser.act(&format!("{path}/confirm"), &confirm).await.is(200);
    // Redis is away for a moment.
    let done = async || match client.operations().get(&id).await {
        Ok(found) => found.map_or(0, |operation| operation.done),
        Err(_) => 0,
    };
    eventually("it is under way", SOON, async || done().await > 0).await;
    redis.restart();
    assert!(done().await < TASKS, "Redis has ended while it was under way");
    eventually("the console goes on", 2 * SOON, async || done().await == TASKS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_that_starts_goes_on_with_what_another_program_has_left() {
    let stage = Stage::new().await;
    let calls: Vec<_> = (0..300).map(|_| call("later").due(LATER)).collect();
    stage.client.submit_all(calls).await.unwrap();
    let operations = stage.client.operations();
    let filter = OperationFilter::of(TaskState::Delayed).queue("mail").unwrap();
    let counted = operations.count(OperationAct::Cancel, filter, "ann").await.unwrap();
    operations.confirm(&counted.id, 300, "").await.unwrap();
    // Nobody looks at it.
    let _served = stage.open();
    let done = async || operations.get(&counted.id).await.unwrap().unwrap().done;
    eventually("the console goes on", SOON, async || done().await == 300).await;
}
