//! `doctor` counts how long tasks wait from when they last began to wait.

use optimus::{TaskId, TaskState};
use optimus_testkit::eventually;

use crate::{
    doctor::warned,
    stage::{SOON, Stage, send},
};

/// An id that was made in 2025, as that of a task which was submitted long ago.
const OLD: &str = "mail/019aa6f0-3c51-7d43-9e0f-3a4b5c6d7e8f";

/// Submits a call under the old id, and lets it die.
async fn dead(stage: &Stage, call: optimus::Call<impl optimus::Task>) -> TaskId {
    let id: TaskId = OLD.parse().unwrap();
    stage.client.submit(call.id(id.clone())).await.unwrap();
    let is_dead = async || stage.state(&id).await == TaskState::Dead;
    stage.worker().run_until(eventually("it is dead", SOON, is_dead)).await.unwrap();
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ready_task_that_was_requeued_waits_since_then() {
    let stage = Stage::new().await;
    let id = dead(&stage, send("fatal".to_owned())).await;
    stage.optimus(&["task", "retry", OLD]).ended(0);
    assert_eq!(stage.state(&id).await, TaskState::Ready);
    assert!(warned(&stage, "1h", &["late"]).is_empty(), "it waits since a moment ago");
    eventually("it is late", SOON, async || !warned(&stage, "1ms", &["late"]).is_empty()).await;
    let found = warned(&stage, "1ms", &["late"]).remove(0);
    let said = "queue mail: the first ready task has waited for up to ";
    assert!(found.starts_with(said), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ready_task_with_a_priority_that_was_requeued_waits_since_then() {
    let stage = Stage::new().await;
    dead(&stage, send("fatal".to_owned()).priority(5)).await;
    stage.optimus(&["task", "retry", OLD]).ended(0);
    assert!(warned(&stage, "1h", &["late"]).is_empty(), "it waits since a moment ago");
    eventually("it is late", SOON, async || !warned(&stage, "1ms", &["late"]).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_task_that_was_requeued_waits_since_then() {
    let stage = Stage::new().await;
    let id = dead(&stage, send("fatal".to_owned()).lane("a")).await;
    stage.client.submit(send("x".to_owned()).lane("a")).await.unwrap();
    stage.optimus(&["task", "retry", OLD]).ended(0);
    assert_eq!(stage.state(&id).await, TaskState::Blocked);
    assert!(warned(&stage, "1h", &["blocked"]).is_empty(), "it waits since a moment ago");
    let is_late = async || !warned(&stage, "1ms", &["blocked"]).is_empty();
    eventually("it waits for long", SOON, is_late).await;
    let found = warned(&stage, "1ms", &["blocked"]).remove(0);
    let said = "queue mail: 1 blocked task, and the first one has waited for up to ";
    assert!(found.starts_with(said), "{found}");
}
