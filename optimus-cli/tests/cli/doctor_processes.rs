//! `doctor` names processes that were lost, and workers that start nothing, in one line each.

use std::time::Duration;

use optimus::WorkerId;
use optimus_core::{
    QueueName,
    broker::{Attendance, Broker},
};
use serde_json::{Value, json};

use crate::stage::{Stage, send};

const MINUTE: Duration = Duration::from_secs(60);

/// Lets a process that serves these queues say what it does.
async fn attend(stage: &Stage, id: &str, started_ms: i64, queues: &[&str], doing: &Value) {
    let about = json!({ "host": "vm-1", "pid": 17, "version": "0.1.0", "started_ms": started_ms,
        "queues": queues, "concurrency": 4 });
    let (id, description, doing) =
        (&WorkerId::from_stored(id), &about.to_string(), &doing.to_string());
    let attendance = Attendance { id, gone_after: MINUTE, description, doing };
    stage.client.broker().attend(&Broker::fleet(), attendance).await.unwrap();
}

/// Gives a process leases, without which it is lost.
async fn serve(stage: &Stage, id: &str, queues: &[&str]) {
    let about = json!({ "host": "vm-1", "pid": 17, "queues": queues, "concurrency": 4 });
    for queue in queues.iter().map(|queue| QueueName::new(queue).unwrap()) {
        let (broker, worker) = (stage.client.broker(), WorkerId::from_stored(id));
        broker.register(&queue, &worker, MINUTE, &about.to_string()).await.unwrap();
    }
}

/// Returns the level and the text of the one thing that `doctor` says of a check.
fn said(stage: &Stage, check: &str) -> (String, String) {
    let rows = stage.optimus(&["doctor", "--json"]).json();
    let found: Vec<&Value> = rows.iter().filter(|row| row["check"] == check).collect();
    assert_eq!(found.len(), 1, "one line: {rows:?}");
    let text = |name: &str| found[0][name].as_str().unwrap().to_owned();
    (text("level"), text("text"))
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_processes_are_one_line_with_what_the_last_one_ran() {
    let stage = Stage::new().await;
    let task = |number: u32| {
        json!({ "id": format!("mail/{number}"), "task": "send", "attempt": 1,
        "since_ms": 1 })
    };
    let running: Vec<Value> = (1..6).map(task).collect();
    let doing = json!({ "slots": 8, "busy": 7, "running": running });
    attend(&stage, "vm-1-17-0a0b0c0d", 1, &["mail"], &doing).await;
    serve(&stage, "vm-1-18-0a0b0c0d", &["mail", "pay"]).await;
    attend(&stage, "vm-1-18-0a0b0c0d", 1, &["mail", "pay"], &json!({ "slots": 4 })).await;
    let (level, text) = said(&stage, "lost");
    assert_eq!(level, "warning", "no process has started since then: {text}");
    let begin = "1 process was lost lately (it has died, or does not reach Redis): \
                 vm-1-17-0a0b0c0d (vm-1, pid 17), which was heard from ";
    let ran = "and ran mail/1 (send), mail/2 (send), mail/3 (send), and 4 more; `optimus process \
               show vm-1-17-0a0b0c0d` shows more";
    assert!(text.starts_with(begin) && text.contains(ran), "{text}");

    let later = stage.inspector().now().await.unwrap().timestamp_millis() + 60_000;
    serve(&stage, "vm-1-19-0a0b0c0d", &["mail"]).await;
    attend(&stage, "vm-1-19-0a0b0c0d", later, &["mail"], &json!({ "slots": 4 })).await;
    let (level, text) = said(&stage, "lost");
    assert_eq!(level, "note", "{text}");
    assert!(text.contains("more, and another one has started since then; "), "{text}");

    attend(&stage, "vm-1-20-0a0b0c0d", 1, &["mail"], &json!({ "slots": 4 })).await;
    let (level, text) = said(&stage, "lost");
    assert_eq!(level, "warning", "two within minutes have a reason: {text}");
    let last = "the last one of them: vm-1-20-0a0b0c0d (vm-1, pid 17), which was heard from ";
    assert!(text.starts_with("2 processes were lost") && text.contains(last), "{text}");
    assert!(
        text.contains(" and ran no task that it had told of, and others have started since then; "),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_of_several_queues_that_starts_nothing_is_one_line() {
    let stage = Stage::new().await;
    let (id, queues) = ("vm-1-17-0a0b0c0d", ["mail", "pay", "ship", "stock"]);
    for queue in queues {
        stage.client.submit(send("x".to_owned()).queue(queue)).await.unwrap();
    }
    serve(&stage, id, &queues).await;
    attend(&stage, id, 1, &queues, &json!({ "slots": 4, "busy": 1, "blocked_ms": 12_900 })).await;
    let (level, text) = said(&stage, "blocked");
    let begin = format!(
        "queues mail, pay, ship, stock: handlers have blocked all threads of worker {id} for 12 s"
    );
    assert!(level == "warning" && text.starts_with(&begin), "{text}");
    attend(&stage, id, 1, &queues, &json!({ "slots": 0 })).await;
    let (_, text) = said(&stage, "quiet");
    let begin = format!("queues mail, pay, ship, stock: worker {id} is quiet");
    assert!(text.starts_with(&begin), "{text}");
}
