//! `optimus task submit`: tasks by their names.

use std::time::Duration;

use optimus::TaskState;
use optimus_testkit::eventually;

use crate::{
    kit::run,
    stage::{Stage, send},
};

const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_wait_for_a_result_are_whole_json_that_says_so() {
    let stage = Stage::new().await;
    let flow = send("a".to_owned()).then(send);
    let id = stage.client.submit_flow(flow).await.unwrap().id().to_string();
    let expected = r#"{"how":"(the result of the step before)"}"#;
    let row = stage.optimus(&["task", "show", &id, "--json"]).ended(0).json().remove(0);
    let (arguments, waits) = (&row["arguments"], &row["waits_for_result"]);
    assert_eq!((arguments, waits), (&expected.into(), &true.into()), "{row}");
    let shown = stage.optimus(&["task", "show", &id]).ended(0).out;
    assert!(shown.contains(expected), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_a_worker_knows_is_submitted_and_its_id_printed() {
    let stage = Stage::new().await;
    let worker = stage.worker();
    let ran = worker.run_until(async {
        eventually("the worker is known", SOON, async || {
            !stage.inspector().workers("mail").await.unwrap().is_empty()
        })
        .await;
        let line = ["task", "submit", "mail", "send", "--args", r#"{"how": "sent"}"#];
        let id = stage.optimus(&line).ended(0).out.trim().parse().unwrap();
        eventually("it succeeds", SOON, async || stage.state(&id).await == TaskState::Success)
            .await;
        let unknown = stage.optimus(&["task", "submit", "mail", "sned"]).ended(9);
        assert!(unknown.err.contains("knows a task sned; they know send"), "{unknown:?}");
        assert!(unknown.err.contains("--yes"), "{unknown:?}");
    });
    ran.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_and_options_are_stored_as_they_were_given() {
    let stage = Stage::new().await;
    let arguments = "{ \"how\": \"ü \\u0000\", \"big\": 12345678901234567890123, \"f\": 1.10 }\n";
    let mut command = stage.command(&[
        "task",
        "submit",
        "mail",
        "send",
        "--args",
        "-",
        "--in",
        "5m",
        "--biz-id",
        "o-17",
        "--header",
        "tenant=acme",
        "--header",
        "q=a=b",
        "--max-retry",
        "9",
        "--timeout",
        "90s",
        "--yes",
        "--json",
    ]);
    let ran = run(&mut command, arguments).ended(0).json();
    assert_eq!((&ran[0]["task"], &ran[0]["duplicate"]), (&"send".into(), &false.into()));
    let id = ran[0]["id"].as_str().unwrap().parse().unwrap();
    let details = stage.inspector().get(&id).await.unwrap().unwrap();
    let record = details.record.unwrap().unwrap();
    assert_eq!(record.payload, arguments.as_bytes());
    assert_eq!(details.state, TaskState::Delayed);
    let shown = stage.optimus(&["task", "show", &id.to_string()]).ended(0).out;
    for part in ["tenant", "acme", "a=b", "o-17"] {
        assert!(shown.contains(part), "{shown}");
    }
    let again = stage.optimus(&["task", "submit", "mail", "send", "--biz-id", "o-17", "--yes"]);
    let again = again.ended(0);
    assert_eq!(again.out.trim(), id.to_string());
    assert!(again.err.contains("nothing was submitted"), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_a_call_is_refused_and_nobody_is_asked_for_it() {
    let stage = Stage::new().await;
    for (arguments, why) in [
        ("[7]", "must be a JSON object"),
        ("{'how': 7}", "not JSON"),
        ("{} {}", "not JSON"),
        ("-7", "must be a JSON object"),
    ] {
        let ran = stage.optimus(&["task", "submit", "mail", "send", "--yes", "--args", arguments]);
        let ran = ran.ended(2);
        assert!(ran.err.contains(why), "{ran:?}");
    }
    for wrong in [
        &["--header", "tenant"][..],
        &["--in", "5m", "--at", "2026-10-03T09:00:00Z"],
        &["--at", "tomorrow"],
        &["--timeout", "0s"],
    ] {
        let line = [&["task", "submit", "mail", "send", "--yes"][..], wrong].concat();
        stage.optimus(&line).ended(2);
    }
    let asked = stage.optimus(&["task", "submit", "mail", "send"]).ended(9);
    assert!(asked.err.contains("No worker serves queue mail"), "{asked:?}");
    assert_eq!(stage.inspector().counts("mail").await.unwrap().ready, 0);
}
