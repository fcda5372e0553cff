//! Commands that the program advises work when they are pasted into a shell.

use std::{path::Path, process::Command};

use optimus::{Gate, NamedCall, TaskState};
use optimus_testkit::eventually;

use crate::{
    kit::{Ran, run},
    stage::{SOON, Stage, send},
};

/// Runs all commands in backticks as a shell reads them, and returns them.
fn paste(stage: &Stage, text: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_BIN_EXE_optimus")).parent().unwrap().display().to_string();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap());
    let quoted = text.split('`').skip(1).step_by(2);
    let advised: Vec<_> = quoted.filter(|part| part.starts_with("optimus ")).collect();
    for line in &advised {
        let mut shell = Command::new("sh");
        shell.env("OPTIMUS_URL", stage.url()).env("OPTIMUS_NAMESPACE", &stage.namespace);
        let ran: Ran = run(shell.env("PATH", &path).args(["-c", line]), "");
        assert!(matches!(ran.code, 0 | 8), "{line}: {ran:?}");
    }
    advised.into_iter().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_doctor_advises_can_be_pasted_also_for_strange_names() {
    let stage = Stage::new().await;
    let queue = "-inf";
    let lane = "it's $(7)";
    for _ in 0..2 {
        let call = NamedCall::new(queue, "send", "{}").unwrap().lane(lane);
        stage.client.submit(call).await.unwrap();
    }
    stage.client.gate(queue, Gate::Lane(lane.to_owned())).pause("eve", "a bug").await.unwrap();
    stage.client.pause(queue).await.unwrap();
    let schedule = optimus::Schedule::cron("-digest", "0 8 * * *").call(send("digest".to_owned()));
    stage.client.schedules().put(schedule).await.unwrap();
    stage.client.schedules().pause("-digest", "eve").await.unwrap();
    let found = stage.optimus(&["doctor", "--late", "1ms"]).ended(8).out;
    let advised = paste(&stage, &found);
    for expected in [
        "optimus queue resume -- -inf",
        "optimus schedule resume -- -digest",
        r"optimus limit resume -- -inf 'lane:it'\''s $(7)'",
    ] {
        assert!(advised.iter().any(|line| line == expected), "{expected}: {found}");
    }
    let left = stage.optimus(&["doctor", "--late", "1ms"]).out;
    assert!(!left.contains("is paused"), "the commands have ended the pauses: {left}");
    stage.optimus(&["task", "cancel", "--state", "ready", "--queue", queue, "--yes"]).ended(0);
    stage.optimus(&["doctor", "--deep", "--queue", queue]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_explanation_advises_requeues_the_task() {
    let stage = Stage::new().await;
    let [dead] = stage.ended(["fatal"]).await;
    let waits = send("x".to_owned()).after(&dead);
    let waits = stage.client.submit(waits).await.unwrap().id().to_string();
    let found = stage.optimus(&["task", "explain", &waits]).ended(0).out;
    assert!(found.contains(&format!("`optimus task retry {dead}` runs it again")), "{found}");
    let found = stage.optimus(&["task", "explain", &dead.to_string()]).ended(0).out;
    assert_eq!(paste(&stage, &found), [format!("optimus task retry {dead}")]);
    assert_eq!(stage.state(&dead).await, optimus::TaskState::Ready);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_were_requeued_need_no_requeue_until_one_fails_again() {
    let stage = Stage::new().await;
    let members = optimus::group(["fatal", "fatal"].map(|how| send(how.to_owned())));
    let group = stage.client.submit_group(members).await.unwrap();
    let after = stage.client.submit(send("c".to_owned()).after(&group)).await.unwrap();
    let both_lost = async || group.progress().await.unwrap().lost == 2;
    stage.worker().run_until(eventually("both are dead", SOON, both_lost)).await.unwrap();
    let (group, after) = (group.id().to_string(), after.id().to_string());
    let shown = stage.optimus(&["group", "show", &group]).ended(0).out;
    assert!(shown.contains("; 2 were dead or cancelled: requeue those that still are"), "{shown}");
    let found = stage.optimus(&["doctor"]).ended(8).out;
    assert!(found.contains("waits for members that have ended without success"), "{found}");

    stage.optimus(&["dead", "retry", "--yes"]).ended(0);
    let members = stage.inspector().list("mail", TaskState::Ready, None, 10).await.unwrap();
    let member = members.rows[0].id.to_string();
    for line in [["group", "show", &group], ["task", "explain", &group]]
        .into_iter()
        .chain([["task", "explain", &after], ["task", "explain", &member]])
    {
        let shown = stage.optimus(&line).ended(0).out;
        let expected = "2 that were dead or cancelled are requeued, and have not ended yet";
        assert!(shown.contains(expected) && !shown.contains("requeue those"), "{line:?}: {shown}");
    }
    let found = stage.optimus(&["doctor"]).out;
    assert!(!found.contains("ended without success"), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_retry_is_advised_for_a_task_whose_arguments_can_not_be_read() {
    let stage = Stage::new().await;
    let call = NamedCall::new("mail", "send", r#"{"how": 5}"#).unwrap();
    let id = stage.client.submit(call).await.unwrap().id().clone();
    let is_dead = async || stage.state(&id).await == optimus::TaskState::Dead;
    stage.worker().run_until(eventually("it is dead", SOON, is_dead)).await.unwrap();
    let found = stage.optimus(&["task", "explain", &id.to_string()]).ended(0).out;
    let expected = "; a retry fails again unless a worker reads what is stored\n";
    assert!(found.contains(expected), "{found}");
    assert!(!found.contains("requeue it to run it again"), "{found}");
    assert_eq!(paste(&stage, &found), [format!("optimus task show {id}")]);
}
