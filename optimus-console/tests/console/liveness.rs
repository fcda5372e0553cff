//! Which processes are there, by their leases.

use std::time::Duration;

use optimus::{QueueName, WorkerId};
use optimus_core::broker::{Attendance, Broker};
use optimus_testkit::eventually;
use serde_json::{Value, json};

use crate::stage::{SOON, Stage, call};

/// Says that a process serves queue `video` and runs six tasks, with a lease of this time.
async fn attends(stage: &Stage, lease: Duration) {
    let about = r#"{"host":"vm","pid":7,"started_ms":1,"concurrency":8,"queues":["video"]}"#;
    let broker = stage.client.broker();
    let (id, queue) = (WorkerId::from_stored("vm-7-aaaaaaaa"), QueueName::new("video").unwrap());
    broker.register(&queue, &id, lease, about).await.unwrap();
    let doing = r#"{"slots":8,"busy":6,"running":[]}"#;
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
