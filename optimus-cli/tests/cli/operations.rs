//! Operations on many tasks: killed, interrupted, followed, cancelled and undone.

use std::{
    process::{Child, Command, Output, Stdio},
    sync::Arc,
    time::Duration,
};

use optimus::{Due, Operation, OperationAct, OperationFilter, OperationState, TaskState};
use optimus_testkit::eventually;

use crate::stage::{Stage, busy_with, send};

const SOON: Duration = Duration::from_secs(60);
const TASKS: u64 = 4_000;

/// Begins to clear a queue with many tasks, and returns once some are deleted.
async fn begun(stage: &Stage) -> (Child, Operation) {
    let calls = (0..TASKS).map(|number| send(format!("task {number}")));
    stage.client.submit_all(calls).await.unwrap();
    let line = ["queue", "clear", "mail", "--yes", "--reason", "<b>\u{1b}[31mold"];
    let mut command = stage.command(&line);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    let found = async || latest(stage).await.is_some_and(|operation| operation.done > 0);
    eventually("some are deleted", SOON, found).await;
    (child, latest(stage).await.unwrap())
}

async fn latest(stage: &Stage) -> Option<Operation> {
    stage.client.operations().list(1).await.unwrap().pop()
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_killed_is_followed_by_another_and_all_is_counted() {
    let stage = Stage::new().await;
    let (mut child, operation) = begun(&stage).await;
    child.kill().unwrap();
    child.wait().unwrap();
    let left = latest(&stage).await.unwrap();
    assert!(left.state == OperationState::Running && left.left() > 0, "{left:?}");
    let listed = stage.optimus(&["op", "list"]).ended(0).out;
    assert!(listed.contains("running  delete") && listed.contains("4,000"), "{listed}");
    assert!(listed.contains("<b>\\u{1b}[31mold"), "it has the reason: {listed}");
    let warned = stage.optimus(&["doctor", "--quiet", "--late", "1ms"]).ended(8).out;
    let warning = format!("operation {} (delete", operation.id);
    let way_on = format!("`optimus op follow {}", operation.id);
    assert!(warned.contains(&warning) && warned.contains(&way_on), "{warned}");
    assert!(!stage.optimus(&["doctor", "--late", "1h"]).out.contains(&warning));
    let followed = stage.optimus(&["op", "follow", &operation.id]).ended(0);
    assert_eq!(followed.out, "4,000 deleted\n");
    let said = "waiting for another process, which has not gone on for a second; unless it does, \
                its lease ends in ";
    assert!(followed.err.contains(said), "{followed:?}");
    let shown = stage.optimus(&["op", "show", &operation.id]).ended(0).out;
    assert!(shown.contains("done, 4000 of 4000 changed"), "{shown}");
    assert!(shown.contains("<b>\\u{1b}[31mold") && !shown.contains('\u{1b}'), "{shown}");
    let again = stage.optimus(&["op", "follow", &operation.id]).ended(0);
    assert_eq!(again.out, "4,000 deleted\n", "it is over");
    assert!(stage.optimus(&["op", "undo", &operation.id]).ended(4).err.contains("can't be undone"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_that_was_killed_is_followed_to_its_end_and_then_has_to_be_confirmed() {
    let stage = Stage::new().await;
    let calls = (0..TASKS).map(|number| send(format!("task {number}")));
    stage.client.submit_all(calls).await.unwrap();
    let (operations, filter) = (stage.client.operations(), OperationFilter::of(TaskState::Ready));
    let counting =
        tokio::spawn(async move { operations.count(OperationAct::Delete, filter, "ann").await });
    eventually("it is counted", SOON, async || latest(&stage).await.is_some()).await;
    counting.abort();
    let left = latest(&stage).await.unwrap();
    assert_eq!(left.state, OperationState::Counting);
    let refused = stage.optimus(&["op", "follow", &left.id]).ended(4);
    assert!(refused.err.contains("`optimus op confirm`") && refused.out.is_empty(), "{refused:?}");
    let counted = latest(&stage).await.unwrap();
    assert_eq!((counted.state, counted.matched), (OperationState::Counted, TASKS));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_command_leaves_the_operation_and_says_how_it_goes_on() {
    let stage = Stage::new().await;
    let (child, operation) = begun(&stage).await;
    let id = operation.id.as_str();
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("not reached") && said.contains(&format!("op follow {id}")), "{said}");
    let cancelled = stage.optimus(&["op", "cancel", id]).ended(0).out;
    assert!(cancelled.contains("is cancelled"), "{cancelled}");
    stage.optimus(&["op", "cancel", id]).ended(0);
    let followed = stage.optimus(&["op", "follow", id]).ended(5).out;
    assert!(followed.contains("not reached"), "{followed}");
    let rows = stage.optimus(&["op", "list", "--json"]).ended(0).json();
    assert_eq!((&rows[0]["state"], &rows[0]["matched"]), (&"cancelled".into(), &TASKS.into()));
    let ready = stage.inspector().counts("mail").await.unwrap().ready;
    assert_eq!(rows[0]["done"].as_u64().unwrap() + ready, TASKS);
    for line in [["op", "cancel", "nobody"], ["op", "follow", "nobody"], ["op", "show", "}"]] {
        stage.optimus(&line).ended(3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operation_has_cancelled_goes_back() {
    let stage = Stage::new().await;
    let one = stage.waiting("one").await;
    stage.optimus(&["task", "cancel", &one.to_string()]).ended(0);
    let others = [stage.waiting("a").await, stage.waiting("b").await];
    let line = ["task", "cancel", "--state", "ready", "--queue", "mail", "--task", "send"];
    assert!(stage.optimus(&line).ended(9).err.contains("Cancel 2 tasks?"));
    let cancelled = stage.optimus(&[&line[..], &["--yes", "--json"]].concat()).ended(0).json();
    let id = cancelled[0]["operation"].as_str().unwrap();
    assert_eq!(cancelled[0]["done"], 2);
    assert!(stage.optimus(&["op", "undo", id]).ended(9).err.contains("Requeue 2 tasks"));
    let undone = stage.optimus(&["op", "undo", id, "--yes", "--expect", "2"]).ended(0);
    assert_eq!(undone.out, "2 requeued\n");
    let rows = stage.optimus(&["op", "list", "--json"]).ended(0).json();
    assert_eq!(rows[0]["reason"], format!("undo of {id}"));
    let since = rows[0]["filter"]["since_ms"].as_u64().expect("an undo has a time");
    assert!(since <= rows[0]["created_ms"].as_u64().unwrap(), "{rows:?}");
    let audit = stage.optimus(&["audit", "list"]).ended(0).out;
    let shown = stage.optimus(&["op", "show", rows[0]["id"].as_str().unwrap()]).ended(0).out;
    for text in [audit, shown, stage.optimus(&["op", "list"]).ended(0).out] {
        let tasks = "cancelled of mail, task send, ended since 20";
        assert!(text.contains(tasks), "{text}");
    }
    for id in &others {
        assert_eq!(stage.state(id).await, TaskState::Ready);
    }
    assert_eq!(stage.state(&one).await, TaskState::Cancelled, "another has cancelled it");
    let cancelled = stage.optimus(&[&line[..], &["--yes"]].concat()).ended(0).err;
    assert!(cancelled.contains("`optimus op undo ") && cancelled.contains("brings them back"));
    let id = latest(&stage).await.unwrap().id;
    stage.optimus(&["task", "delete", &others[0].to_string(), "--yes"]).ended(0);
    let undone = stage.optimus(&["op", "undo", &id, "--yes"]).ended(5);
    assert!(undone.err.contains("1 of the 2 tasks that it has cancelled"), "{undone:?}");
    stage.optimus(&["task", "cancel", "--task", "send"]).ended(2);
    let refused = stage.optimus(&["task", "cancel"]).ended(2).err;
    assert!(refused.contains("ids") && refused.contains("--state ready"), "{refused}");
    stage.optimus(&["task", "cancel", "--queue", "mail"]).ended(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_process_has_counted_is_confirmed_later_or_dropped() {
    let stage = Stage::new().await;
    let ids = [stage.waiting("a").await, stage.waiting("b").await];
    let operations = stage.client.operations();
    let filter = || OperationFilter::of(TaskState::Ready).queue("mail").unwrap();
    let count = async || operations.count(OperationAct::Cancel, filter(), "ann").await.unwrap().id;
    let (id, dropped) = (&*count().await, &*count().await);
    let late = stage.waiting("c").await;
    let rows = stage.optimus(&["op", "list", "--json"]).ended(0).json();
    assert_eq!((&rows[1]["id"], &rows[1]["state"]), (&id.into(), &"counted".into()));
    assert!(rows[1]["confirm_until_ms"].as_u64() > rows[1]["updated_ms"].as_u64(), "{rows:?}");
    let shown = stage.optimus(&["op", "show", id]).ended(0).out;
    assert!(shown.contains("confirm until") && shown.contains("2 match"), "{shown}");
    let what =
        "cancel ready of mail, task send, error \"a\\\"\", header tenant=acme, older than 5 min";
    let filter = filter().task("send").text("a\"").header("tenant", Some("acme".to_owned()));
    let filter = filter.older(Duration::from_secs(300));
    let full = operations.count(OperationAct::Cancel, filter, "ann").await.unwrap().id;
    let shown = stage.optimus(&["op", "show", &full]).ended(0).out;
    assert!(shown.contains(what), "{shown}");
    let (_, tasks) = what.split_once(' ').unwrap();
    assert!(stage.optimus(&["op", "list"]).ended(0).out.contains(tasks));
    stage.optimus(&["op", "cancel", &full]).ended(0);
    assert!(stage.optimus(&["op", "follow", id]).ended(4).err.contains("op confirm"));
    assert!(stage.optimus(&["op", "confirm", id]).ended(9).err.contains("Confirm it for 2 tasks?"));
    stage.optimus(&["op", "confirm", id, "--expect", "3", "--yes"]).ended(4);
    assert_eq!(stage.state(&ids[0]).await, TaskState::Ready, "nothing was done");
    let done = stage.optimus(&["op", "confirm", id, "--expect", "2", "--yes"]).ended(0);
    assert_eq!(done.out, "2 cancelled\n");
    for id in &ids {
        assert_eq!(stage.state(id).await, TaskState::Cancelled);
    }
    assert_eq!(stage.state(&late).await, TaskState::Ready, "it came later");
    assert!(stage.optimus(&["op", "confirm", id, "--yes"]).ended(4).err.contains("is done"));
    stage.optimus(&["op", "cancel", dropped]).ended(0);
    let refused = stage.optimus(&["op", "confirm", dropped, "--yes"]).ended(4);
    assert!(refused.err.contains("is cancelled"), "{}", refused.err);
    stage.optimus(&["op", "confirm", "nobody", "--yes"]).ended(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_longer_as_it_was_counted_is_left_and_said() {
    let stage = Stage::new().await;
    let ids = [stage.waiting("a").await, stage.waiting("b").await].map(|id| id.to_string());
    let operations = stage.client.operations();
    let count = async |act| {
        let filter = OperationFilter::of(TaskState::Ready).queue("mail").unwrap();
        operations.count(act, filter, "ann").await.unwrap().id
    };
    let [cancel, delete, dropped] = [
        count(OperationAct::Cancel).await,
        count(OperationAct::Delete).await,
        count(OperationAct::Cancel).await,
    ];
    stage.optimus(&["task", "cancel", &ids[0]]).ended(0);
    let done = stage.optimus(&["op", "confirm", &cancel, "--yes"]).ended(5);
    assert_eq!(done.out, "1 cancelled · 1 gone\n");
    let done = stage.optimus(&["op", "confirm", &delete, "--yes"]).ended(3);
    assert_eq!(done.out, "0 deleted · 2 gone\n");
    stage.optimus(&["op", "cancel", &dropped]).ended(0);
    let refused = stage.optimus(&["op", "undo", &dropped, "--yes"]).ended(4).err;
    assert!(refused.contains("it has cancelled no task"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_act_changes_all_tasks_in_a_state() {
    let stage = Stage::new().await;
    let delayed = async || {
        let later = send("later".to_owned()).due(Due::In(SOON * 100));
        stage.client.submit(later).await.unwrap().id().clone()
    };
    let ids = [delayed().await, delayed().await];
    let all = ["--queue", "mail", "--task", "send", "--yes", "--expect", "2"];
    for (act, before, said, after) in [
        ("run-now", "delayed", "2 due now\n", Some(TaskState::Delayed)),
        ("cancel", "delayed", "2 cancelled\n", Some(TaskState::Cancelled)),
        ("retry", "cancelled", "2 requeued\n", Some(TaskState::Ready)),
        ("delete", "ready", "2 deleted\n", None),
    ] {
        let line = [&["task", act, "--state", before], &all[..]].concat();
        assert_eq!(stage.optimus(&line).ended(0).out, said);
        for id in &ids {
            assert_eq!(stage.state(id).await, after.unwrap_or(TaskState::Forgotten), "{act}");
        }
        let refused = stage.optimus(&["task", act, "--task", "send"]).ended(2).err;
        assert!(refused.contains("a filter needs --state"), "{refused}");
        assert!(
            stage.optimus(&["task", act]).ended(2).err.contains(&format!("task {act} --state"))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_says_that_tasks_which_were_asked_to_stop_still_run() {
    let stage = Arc::new(Stage::new().await);
    let folder = tempfile::tempdir().unwrap();
    let (id, _worker) = busy_with(&stage, &format!("block: {}", folder.path().display())).await;
    let line = ["task", "cancel", "--queue", "mail", "--state", "working", "--yes", "--json"];
    let done = stage.optimus(&line).ended(0).json();
    assert_eq!(stage.state(&id).await, TaskState::Working);
    let undone = stage.optimus(&["op", "undo", done[0]["operation"].as_str().unwrap(), "--yes"]);
    let said = "not cancelled now: 1 of the 1 task that it has cancelled or asked to stop. Such a \
                task still runs";
    assert!(undone.err.contains(said), "{undone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_restores_due_times_also_of_a_task_that_was_cancelled_by_its_id() {
    let stage = Stage::new().await;
    let later = async || {
        let later = send("later".to_owned()).due(Due::In(SOON * 100));
        stage.client.submit(later).await.unwrap()
    };
    let first = later().await;
    let line = ["task", "cancel", "--queue", "mail", "--state", "delayed", "--yes", "--json"];
    let done = stage.optimus(&line).ended(0).json();
    let second = later().await;
    stage.optimus(&["task", "cancel", &second.id().to_string()]).ended(0);
    let undo = ["op", "undo", done[0]["operation"].as_str().unwrap(), "--yes"];
    assert_eq!(stage.optimus(&undo).ended(0).out, "2 requeued\n");
    for task in [&first, &second] {
        assert_eq!(task.status().await.unwrap(), TaskState::Delayed, "it waits for its time again");
    }
    // A retry of a task by its id runs it at once.
    let id = second.id().to_string();
    stage.optimus(&["task", "cancel", &id]).ended(0);
    stage.optimus(&["task", "retry", &id]).ended(0);
    assert_eq!(second.status().await.unwrap(), TaskState::Ready);
}
