//! Which processes are there, by their leases, and what is shown while Redis is away.

use std::time::Duration;

use optimus::{Client, QueueName, TaskState, Worker, WorkerId};
use optimus_console::Console;
use optimus_core::broker::{Attendance, Broker};
use optimus_testkit::{RedisServer, eventually};
use serde_json::{Value, json};

use crate::stage::{SOON, Served, Stage, call, send_mail};

/// What a process does that runs six tasks.
const BUSY: &str = r#"{"slots":8,"busy":6,"running":[{"task":"encode",
    "id":"video/019aa6f0-3c51-7d43-9e0f-3a4b5c6d7e8f","attempt":1,"since_ms":1700000000000}]}"#;

/// What it does while a handler that goes on after its timeout blocks its runtime.
const STUCK: &str = r#"{"slots":8,"busy":1,"blocked_ms":9000,"running":[{"task":"encode",
    "late_ms":70,
    "id":"video/019aa6f0-3c51-7d43-9e0f-3a4b5c6d7e8f","attempt":1,"since_ms":1700000000000}]}"#;

/// Says that a process serves queue `video`, with a lease of this time.
async fn attends(stage: &Stage, lease: Duration) {
    does(stage, lease, BUSY).await;
}

async fn does(stage: &Stage, lease: Duration, doing: &str) {
    let about = r#"{"host":"vm","pid":7,"started_ms":1,"concurrency":8,"queues":["video"]}"#;
    let broker = stage.client.broker();
    let (id, queue) = (WorkerId::from_stored("vm-7-aaaaaaaa"), QueueName::new("video").unwrap());
    broker.register(&queue, &id, lease, about).await.unwrap();
    let attendance = Attendance { id: &id, gone_after: 10 * SOON, description: about, doing };
    broker.attend(&Broker::fleet(), attendance).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_whose_last_lease_is_over_comes_before_one_that_has_failed_earlier() {
    let stage = Stage::new().await;
    stage.ended(["fatal", "fatal", "fatal"]).await;
    stage.submit(call("x").queue("video")).await;
    attends(&stage, 10 * SOON).await;
    let served = stage.open();
    let seen = served.browser.look("overview").await;
    assert_eq!((&seen["slots"]["busy"], &seen["processes"]), (&json!(6), &json!(1)));
    let attention = &seen["attention"];
    assert_eq!((&attention[0]["queue"], &attention[1]), (&json!("mail"), &Value::Null));
    attends(&stage, Duration::from_millis(100)).await;
    eventually("the lease is over", SOON, async || {
        served.browser.look("processes").await["rows"][0]["lost"] == true
    })
    .await;
    let seen = stage.open().browser.look("overview").await;
    let slots = &seen["slots"];
    assert_eq!(
        (&slots["busy"], &slots["allowed"], &seen["processes"]),
        (&json!(0), &json!(0), &json!(0))
    );
    let attention = &seen["attention"];
    assert_eq!(
        (&attention[0]["queue"], &attention[0]["unserved"]),
        (&json!("video"), &json!(true))
    );
    assert_eq!(
        (&attention[1]["queue"], &attention[1]["unserved"]),
        (&json!("mail"), &json!(false))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_names_processes_that_their_handlers_keep_from_work() {
    let stage = Stage::new().await;
    attends(&stage, 10 * SOON).await;
    let stuck = async |of: &Served| of.browser.look("overview").await["stuck"].clone();
    assert_eq!(stuck(&stage.open()).await, json!([]), "it is only busy");
    does(&stage, 10 * SOON, STUCK).await;
    let row = json!({ "id": "vm-7-aaaaaaaa", "host": "vm", "pid": 7, "blocked_ms": 9_000,
        "late": 1, "late_ms": 70 });
    assert_eq!(stuck(&stage.open()).await, json!([row]));
    let guarded = stage.guarded();
    let tina = guarded.bearer("tina").look("overview").await;
    assert_eq!(tina["stuck"], json!([]), "it serves none of her queues");
    does(&stage, Duration::from_millis(100), STUCK).await;
    let served = stage.open();
    eventually("the lease is over", SOON, async || {
        served.browser.look("processes").await["rows"][0]["lost"] == true
    })
    .await;
    assert_eq!(stuck(&served).await, json!([]), "what is lost blocks nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_lost_process_ran_is_not_shown_as_running() {
    let stage = Stage::new().await;
    attends(&stage, 10 * SOON).await;
    let served = stage.open();
    let running = async || served.browser.look("running").await["rows"].clone();
    assert_eq!(running().await[0]["task"], "encode");
    attends(&stage, Duration::from_millis(100)).await;
    eventually("the lease is over", SOON, async || {
        served.browser.look("processes").await["rows"][0]["lost"] == true
    })
    .await;
    assert_eq!(running().await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_causes_of_deaths_are_shown_also_while_redis_is_away() {
    let mut redis = RedisServer::start();
    let client = Client::connect(&redis.url()).await.unwrap();
    let served = Served::of(Console::new(client.clone()));
    let overview = async || served.browser.look("overview").await;
    let dies = async |how: &str| {
        let id = client.submit(call(how).max_retry(0)).await.unwrap().id().clone();
        let worker = Worker::builder(&redis.url()).only_named_tasks().task(send_mail);
        let is_dead = async || {
            let found = client.inspector().get(&id).await.unwrap();
            found.is_some_and(|task| task.state == TaskState::Dead)
        };
        let ended = eventually("it is dead", SOON, is_dead);
        worker.build().unwrap().run_until(ended).await.unwrap();
    };
    dies("fatal").await;
    assert_eq!(overview().await["failures"].as_array().unwrap().len(), 1);
    dies("fail: no route").await;
    let is_read = async || overview().await["counts"]["dead"] == 2;
    eventually("the second one is read", SOON, is_read).await;
    redis.kill();
    let is_down = async || overview().await["redis"]["up"] == false;
    eventually("the console notices it", 2 * SOON, is_down).await;
    let seen = overview().await;
    assert!(!seen["failures"].as_array().unwrap().is_empty(), "{seen}");
    let age_ms = seen["now_ms"].as_u64().unwrap() - seen["sampled_ms"].as_u64().unwrap();
    assert!(age_ms >= 4_000, "the numbers are of the last read that has succeeded: {seen}");
    let queues = served.browser.get("/api/v1/queues").await.is(200);
    assert!(queues.header("age").parse::<u64>().unwrap() >= 4, "{queues:?}");
}
