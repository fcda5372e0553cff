//! What the commands change, and what they ask before.

use optimus::{TaskId, TaskState};

use crate::{
    kit::{raw, run},
    stage::{Stage, send},
};

#[tokio::test(flavor = "multi_thread")]
async fn dead_tasks_are_counted_confirmed_and_requeued() {
    let stage = Stage::new().await;
    let [first, second, other] = stage.ended(["fail: a", "fail: a", "fail: b"]).await;
    // Nobody can be asked.
    let asked = stage.optimus(&["dead", "retry"]).ended(9);
    assert!(asked.err.contains("Retry 3 tasks?") && asked.err.contains("--yes"), "{asked:?}");
    assert!(asked.err.contains("3 send") && asked.err.contains(&first.to_string()), "{asked:?}");
    let refused = stage.optimus(&["dead", "retry", "--yes", "--expect", "2"]).ended(4);
    assert!(refused.err.contains("3 tasks found, and --expect says 2"), "{refused:?}");
    for id in [&first, &second, &other] {
        assert_eq!(stage.state(id).await, TaskState::Dead);
    }
    let done = stage.optimus(&["dead", "retry", "mail", "--error", "a", "--expect", "2", "-y"]);
    assert_eq!(done.ended(0).out, "2 requeued\n");
    assert_eq!(stage.state(&first).await, TaskState::Ready);
    assert_eq!(stage.state(&other).await, TaskState::Dead);
    let done = stage.optimus(&["dead", "delete", "--yes", "--json"]).ended(0).json();
    assert_eq!((done[0]["done"].as_u64(), done[0]["refused"].as_u64()), (Some(1), Some(0)));
    assert_eq!(stage.state(&other).await, TaskState::Forgotten);
    assert_eq!(stage.optimus(&["dead", "retry"]).ended(0).out, "0 requeued\n", "nothing to ask");
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_are_named_are_changed_one_by_one() {
    let stage = Stage::new().await;
    let tasks = stage.fill().await;
    let [dead, retry, delayed] =
        [&tasks.dead, &tasks.retry, &tasks.delayed].map(ToString::to_string);
    // The uuid alone is enough.
    let done = stage.optimus(&["task", "retry", &tasks.dead.uuid().to_string()]).ended(0);
    assert_eq!(
        (done.out.as_str(), stage.state(&tasks.dead).await),
        ("1 requeued\n", TaskState::Ready)
    );
    let again = stage.optimus(&["task", "retry", &dead, &tasks.fatal.to_string()]).ended(5);
    assert!(
        again.out.contains("1 requeued · 1 refused") && again.err.contains("is ready"),
        "{again:?}"
    );
    assert_eq!(stage.optimus(&["task", "retry", &dead]).ended(4).out, "0 requeued · 1 refused\n");
    let done = stage.optimus(&["task", "run-now", &retry, &delayed]).ended(0);
    assert_eq!(done.out, "2 due now\n");
    stage.optimus(&["task", "run-now", &tasks.blocked.to_string()]).ended(4);
    stage.optimus(&["task", "cancel", &delayed]).ended(0);
    assert_eq!(stage.state(&tasks.delayed).await, TaskState::Cancelled);
    stage.optimus(&["task", "cancel", &retry, &tasks.ready.to_string()]).ended(9);
    let ids = format!("{retry}\n\n{}\n", tasks.ready);
    let done = run(&mut stage.command(&["task", "cancel", "-", "--yes"]), &ids).ended(0);
    assert_eq!(done.out, "2 cancelled\n");
    stage.optimus(&["task", "delete", &dead]).ended(9);
    assert_eq!(stage.optimus(&["task", "delete", &dead, "--yes"]).ended(0).out, "1 deleted\n");
    assert_eq!(
        stage.optimus(&["task", "delete", &dead, "--yes"]).ended(3).out,
        "0 deleted · 1 gone\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_paused_with_a_reason_cleared_and_forgotten() {
    let stage = Stage::new().await;
    for number in 0..100 {
        stage.waiting(&format!("task {number}")).await;
    }
    let [dead] = stage.ended(["fail: x"]).await;
    let paused = stage.optimus(&["queue", "pause", "mail", "--reason", "a deploy"]).ended(0);
    assert_eq!(paused.out, "queue mail is paused\n");
    let shown = stage.optimus(&["queue", "show", "mail"]).ended(0).out;
    assert!(shown.contains("paused by ann (a deploy)"), "{shown}");
    assert!(stage.optimus(&["queue", "pause", "mial"]).ended(0).err.contains("misspelt"));
    for number in 0..100 {
        stage.waiting(&format!("task {number}")).await;
    }
    stage.optimus(&["queue", "forget", "mail"]).ended(4);
    stage.optimus(&["queue", "clear", "mail", "--state", "working", "--yes"]).ended(2);
    assert!(stage.optimus(&["queue", "clear", "mail"]).ended(9).err.contains("Delete 100 tasks"));
    let cleared = stage.optimus(&["queue", "clear", "mail", "--yes", "--expect", "100"]).ended(0);
    assert_eq!(cleared.out, "100 deleted\n");
    assert_eq!(stage.state(&dead).await, TaskState::Dead, "it does not wait");
    stage.optimus(&["queue", "resume", "mail"]).ended(0);
    stage.optimus(&["queue", "resume", "mial"]).ended(0);
    let forgotten = stage.optimus(&["queue", "forget", "mial"]).ended(0);
    assert_eq!(forgotten.out, "queue mial is forgotten\n");
    assert_eq!(stage.optimus(&["queue", "list", "--json"]).ended(0).json().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_is_named_also_without_a_user() {
    let stage = Stage::new().await;
    stage.furnish().await;
    let by = |given: &[&str]| {
        let line = [&["schedule", "pause", "digest"], given].concat();
        let mut command = stage.command(&line);
        for name in ["USER", "LOGNAME", "USERNAME"] {
            command.env_remove(name);
        }
        run(&mut command, "").ended(0);
        let rows = stage.optimus(&["schedule", "list", "--json"]).ended(0).json();
        stage.optimus(&["schedule", "resume", "digest"]).ended(0);
        rows[0]["pause"]["by"].as_str().unwrap().to_owned()
    };
    assert_eq!(by(&["--operator", "bob"]), "bob");
    let id = std::process::Command::new("id").arg("-un").output().unwrap();
    let user = String::from_utf8(id.stdout).unwrap();
    for blank in [&[][..], &["--operator", " "]] {
        assert_eq!(by(blank), user.trim(), "{blank:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_lanes_and_schedules_are_changed() {
    let stage = Stage::new().await;
    stage.furnish().await;
    let line = ["limit", "set", "mail", "limit:stripe", "--rate", "5/m", "--max-working", "2"];
    stage.optimus(&line).ended(0);
    let rows = stage.optimus(&["limit", "list", "mail", "--json"]).ended(0).json();
    let stripe = rows.iter().find(|row| row["gate"] == "limit:stripe").unwrap();
    assert_eq!((stripe["max_working"].as_u64(), stripe["is_set"].as_bool()), (Some(2), Some(true)));
    assert_eq!(stripe["set"]["by"], "ann");
    let again = ["--rate", "6/m", "--operator", "eve", "--reason", "bank asked"];
    stage.optimus(&[&line[..4], &again].concat()).ended(0);
    let listed = stage.optimus(&["limit", "list", "mail"]).ended(0).out;
    assert!(listed.contains("eve (bank asked) ") && !listed.contains("ann"), "{listed}");
    let removed = stage.optimus(&["limit", "remove", "mail", "limit:stripe"]).ended(0);
    assert!(removed.out.contains("limit stripe of queue mail is removed"), "{removed:?}");
    stage.optimus(&["limit", "set", "mail", "limit:stripe"]).ended(2);
    stage.optimus(&["limit", "set", "mail", "stripe", "--rate", "5/m"]).ended(2);
    let zero = stage.optimus(&["lane", "width", "mail", "user-7", "0"]).ended(2).err;
    assert!(zero.contains("`optimus lane pause mail user-7`"), "{zero}");
    stage.optimus(&["lane", "width", "mail", "user-7", "3"]).ended(0);
    let width = stage.optimus(&["lane", "width", "mail", "user-7"]).ended(0);
    assert_eq!(width.out, "the width of lane user-7 is 3\n");
    stage.optimus(&["lane", "resume", "mail", "user-7"]).ended(0);
    stage.client.submit(send("a".to_owned()).lane("user-7")).await.unwrap();
    let cancelled = stage.optimus(&["lane", "cancel", "mail", "user-7", "--yes"]).ended(0);
    assert_eq!(cancelled.out, "1 cancelled · 0 asked to stop\n");

    stage.optimus(&["schedule", "pause", "digest", "--reason", "a move"]).ended(0);
    let rows = stage.optimus(&["schedule", "list", "--json"]).ended(0).json();
    let pause = &rows[0]["pause"];
    assert_eq!((&pause["by"], &pause["why"]), (&"ann".into(), &"a move".into()));
    let listed = stage.optimus(&["schedule", "list"]).ended(0).out;
    assert!(listed.contains("paused by ann (a move)"), "{listed}");
    let shown = stage.optimus(&["schedule", "show", "digest"]).ended(0).out;
    assert!(shown.contains("by ann (a move)") && !shown.contains("next"), "{shown}");
    let noted = stage.optimus(&["doctor"]).out;
    assert!(noted.contains("schedule digest of queue mail is paused by ann (a move)"), "{noted}");
    stage.optimus(&["schedule", "resume", "digest"]).ended(0);
    let made = stage.optimus(&["schedule", "run-now", "digest", "--json"]).ended(0).json();
    let id = made[0]["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(stage.state(&id).await, TaskState::Delayed);
    assert!(stage.optimus(&["schedule", "history", "digest"]).ended(0).out.contains("by hand"));
    stage.optimus(&["schedule", "remove", "digest", "--yes"]).ended(0);
    stage.optimus(&["schedule", "show", "digest"]).ended(3);
    stage.optimus(&["dispenser", "release", "review", "carol", "--yes"]).ended(0);
    let shown = stage.optimus(&["dispenser", "show", "review", "--json"]).ended(0).json();
    assert_eq!((shown[0]["open"].as_u64(), shown[0]["assigned"].as_u64()), (Some(3), Some(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_shows_who_has_done_what_and_what_became_of_it() {
    let stage = Stage::new().await;
    assert_eq!(stage.optimus(&["audit", "list"]).ended(0).out, "Nobody has acted yet.\n");
    let [dead, other] = stage.ended(["fail: a", "fail: b"]).await.map(|id| id.to_string());
    let why = ["--operator", "bob", "--reason", "a deploy"];
    stage.optimus(&[&["queue", "pause", "mail"], &why[..]].concat()).ended(0);
    stage.optimus(&["limit", "set", "mail", "task:send", "--rate", "5/s"]).ended(0);
    stage.optimus(&["task", "retry", &dead]).ended(0);
    stage.optimus(&["task", "retry", &dead, &other]).ended(5);
    stage.optimus(&["schedule", "pause", "nope"]).ended(3);
    // Nothing was done, as nobody has agreed.
    stage.optimus(&["task", "delete", &dead]).ended(9);
    stage.optimus(&["audit", "list"]).matches("audit_list");
    stage.optimus(&["queue", "clear", "mail", "--yes"]).ended(0);
    stage.optimus(&["queue", "resume", "mail"]).ended(0);
    let first = stage.optimus(&["audit", "list", "--limit", "3"]).ended(0);
    let (_, after) = first.err.split_once("--after ").expect("there are more");
    let rest = stage.optimus(&["audit", "list", "--json", "--after", after.trim()]).ended(0);
    let acts: Vec<_> = rest.json().iter().map(|row| row["act"].clone()).collect();
    let earlier = ["task.retry", "task.retry", "limit.set", "queue.pause"];
    assert_eq!(acts, earlier, "after resume, confirm and schedule.pause");
    stage.optimus(&["audit", "list", "--after", "x"]).ended(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_acts_also_if_the_audit_is_damaged() {
    let stage = Stage::new().await;
    let key = format!("{{{}:@audit:0}}:audit", stage.namespace);
    raw(stage.url(), &["SET", &key, "no list"]);
    let paused = stage.optimus(&["queue", "pause", "mail"]).ended(0);
    assert_eq!(paused.out, "queue mail is paused\n");
    assert!(paused.err.contains("the audit does not show this act"), "{paused:?}");
    stage.optimus(&["audit", "list"]).ended(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_of_a_flow_says_which_steps_had_ended() {
    let stage = Stage::new().await;
    let [dead, success] = stage.ended(["fatal", "sent"]).await;
    let waits = stage.waiting("x").await;
    let cancel = |ids: &[&TaskId], code: i32| {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let mut line = vec!["flow", "cancel", "--yes"];
        line.extend(ids.iter().map(String::as_str));
        stage.optimus(&line).ended(code)
    };
    let ran = cancel(&[&dead, &success], 4);
    assert_eq!(ran.out, "2 steps: 0 cancelled · 2 ended before\n");
    assert!(ran.err.contains(&format!("{success} is success, so cancel is not possible")));
    assert_eq!(cancel(&[&dead, &waits], 0).out, "2 steps: 1 cancelled · 1 ended before\n");
    let ran = cancel(&[&waits], 4);
    assert!(ran.err.contains(&format!("{waits} is cancelled")), "{ran:?}");
    let audit = stage.optimus(&["audit", "list"]).ended(0).out;
    assert!(audit.contains("2 steps: 0 cancelled · 2 ended before"), "{audit}");
}
