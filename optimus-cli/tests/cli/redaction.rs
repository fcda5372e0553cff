//! `--redact` replaces what looks like a secret, wherever it is printed.

use optimus::{Gate, Schedule, TaskId, TaskState};
use optimus_testkit::eventually;

use crate::{
    kit::{Ran, run},
    stage::{SOON, Stage, send},
};

/// No output with `--redact` has this.
const SECRET: &str = "hunter2";

/// Puts secrets into arguments, headers, errors, logs, reasons and filters. Returns a task that is
/// dead, one that has said something, and one that waits.
async fn fill(stage: &Stage) -> [TaskId; 3] {
    let header = |how: &str| {
        let call = send(how.to_owned()).header("x-api-key", "hunter2 of ann");
        call.header("tenant", "acme")
    };
    // Lists keep 200 characters of an error, which end within the URL.
    let long = format!("fail: {} redis://ann:hunter2@db", "no route ".repeat(20));
    let texts = ["fail: password=hunter2 is wrong", "log: token: hunter2", &long];
    let [dead, talks, _] = stage.ended(texts).await;
    let waits = header(r#"{"api_key":"hunter2","card":{"no":["hunter2"]}}"#);
    let waits = stage.client.submit(waits).await.unwrap().id().clone();
    let blocked = || header("x").lane("user-7");
    stage.client.submit(blocked()).await.unwrap();
    let lane = stage.client.gate("mail", Gate::Lane("user-7".to_owned()));
    lane.pause("bob", "their password=hunter2 is wrong").await.unwrap();
    let digest = Schedule::cron("digest", "0 8 * * *").call(send("token=hunter2".to_owned()));
    stage.client.schedules().put(digest).await.unwrap();
    let words = ["task", "cancel", "--state", "ready", "--header", "x-api-key=hunter2", "--yes"];
    stage.optimus(&[&words[..], &["--error", "password=hunter2"]].concat()).ended(0);
    [dead, talks, waits]
}

fn commands([dead, talks, waits]: &[TaskId; 3]) -> Vec<String> {
    let lines = format!(
        "task list mail|task list mail --state ready|task show {dead}|task show {talks}
        task show {waits}|task show {waits} --full|task explain {dead}|task explain {waits}
        dead list|dead export|dead fingerprints|dead retry|op list|lane list mail|limit list
        queue list|queue show mail|schedule list|schedule show digest|worker list|process list
        stats|history list mail|audit list|doctor|group list mail|flow show {waits}|search x"
    );
    lines.split(['|', '\n']).map(|line| line.trim().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_redacted_in_all_that_is_printed_if_that_is_asked_for() {
    let stage = Stage::new().await;
    stage.optimus(&["history", "keep", "mail"]).ended(0);
    let tasks = fill(&stage).await;
    let [mut shown, mut redacted] = [0, 0];
    for line in commands(&tasks) {
        for form in [&[][..], &["--json"]] {
            let words: Vec<&str> = line.split(' ').chain(form.iter().copied()).collect();
            let text = |ran: Ran| format!("{}{}", ran.out, ran.err);
            shown += usize::from(text(stage.optimus(&words)).contains(SECRET));
            let asked = text(stage.optimus(&[&words[..], &["--redact"]].concat()));
            assert!(!asked.contains(SECRET), "{words:?}: {asked}");
            let by_variable = text(run(stage.command(&words).env("OPTIMUS_REDACT", "1"), ""));
            assert!(!by_variable.contains(SECRET), "{words:?}: {by_variable}");
            redacted += usize::from(asked.contains("[redacted]"));
        }
    }
    assert!(shown > 20 && redacted >= shown, "{shown} {redacted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_secret_stays_and_nothing_is_redacted_unless_it_is_asked_for() {
    let stage = Stage::new().await;
    let tasks = fill(&stage).await;
    let waits = tasks[2].to_string();
    let show = |options: &[&str]| {
        let line = [&["task", "show", &waits, "--json"], options].concat();
        stage.optimus(&line).ended(0).json().remove(0)
    };
    let redacted = show(&["--redact"]);
    let headers = serde_json::json!({ "tenant": "acme", "x-api-key": "[redacted]" });
    assert_eq!(redacted["headers"], headers);
    let arguments = redacted["arguments"].as_str().unwrap();
    serde_json::from_str::<serde_json::Value>(arguments).expect("it is still JSON");
    assert!(arguments.contains("api_key") && arguments.contains("[redacted]"), "{arguments}");
    assert_eq!(show(&[])["headers"]["x-api-key"], "hunter2 of ann");
    let mut off = stage.command(&["task", "show", &waits]);
    assert!(run(off.env("OPTIMUS_REDACT", "0"), "").ended(0).out.contains(SECRET));
    stage.optimus(&["queue", "pause", "mail", "--redact"]).ended(0);
    let plain = stage.optimus(&["limit", "list", "--json"]).ended(0).json();
    let redacted = stage.optimus(&["limit", "list", "--json", "--redact"]).ended(0).json();
    assert_eq!(plain.len(), redacted.len());
    let paused = plain.iter().position(|row| row["gate"] == "queue").unwrap();
    assert_eq!(plain[paused], redacted[paused], "it has no secret");
    let told = stage.optimus(&["audit", "list", "--json"]).ended(0).out;
    assert!(told.contains("limit.pause") || told.contains("queue.pause"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_that_were_cut_within_a_secret_are_redacted_also_before_other_texts() {
    let stage = Stage::new().await;
    // 200 characters are kept, which end within the password.
    let long = format!("{} redis://ann:{}@db", "no route ".repeat(15), SECRET.repeat(20));
    let (dies, shuts) = (format!("fail: {long}"), format!("shut: {long}"));
    stage.ended([&*dies, &dies]).await;
    let shutting = stage.client.submit(send(shuts).max_retry(3)).await.unwrap().id().clone();
    let has_shut = async || stage.state(&shutting).await == TaskState::Retry;
    let ran = stage.worker().run_until(eventually("it has paused its queue", SOON, has_shut));
    ran.await.unwrap();
    let mut leaks = Vec::new();
    for line in ["dead retry", "limit list", "queue list", "queue show mail", "doctor", "op list"] {
        let words: Vec<&str> = line.split(' ').chain(["--redact"]).collect();
        let Ran { out, err, .. } = stage.optimus(&words);
        leaks.extend(format!("{out}{err}").contains(SECRET).then_some(line));
    }
    assert_eq!(leaks, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outline_shows_no_part_of_a_secret_around_its_numbers() {
    let stage = Stage::new().await;
    stage.ended(["fail: no route to redis://ann:swordfish-4-you@db"]).await;
    for form in [&["--redact"][..], &["--redact", "--json"]] {
        let ran = stage.optimus(&[&["dead", "fingerprints"], form].concat());
        assert!(ran.out.contains("no route"), "{}", ran.out);
        assert!(!ran.out.contains("swordfish") && !ran.out.contains("-you"), "{}", ran.out);
    }
}
