//! Acts are written down before they are done, and what became of them after it.

use optimus::{AuditAct, TaskState};
use serde_json::{Value, json};

use crate::stage::{Stage, call};

#[tokio::test(flavor = "multi_thread")]
async fn an_act_is_written_down_with_who_what_why_and_its_outcome() {
    let stage = Stage::new().await;
    let filled = stage.fill().await;
    let served = stage.guarded();
    let olga = served.bearer("olga");
    olga.act("queues/mail/pause", &json!({ "reason": "a deploy" })).await.is(204);
    let ids = json!({ "act": "retry", "ids": [filled.dead.to_string(), filled.ready.to_string()] });
    olga.act("tasks/act", &ids).await.is(200);
    let page = olga.look("audit").await;
    let rows = page["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{page}");
    let (retry, pause) = (&rows[0], &rows[1]);
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    assert_eq!((text(pause, "who"), text(pause, "act")), ("olga".into(), "queue.pause".into()));
    assert_eq!((text(pause, "target"), text(pause, "reason")), ("mail".into(), "a deploy".into()));
    assert!(text(pause, "outcome").starts_with("paused"), "{pause}");
    assert_eq!(text(retry, "target"), format!("{} {}", filled.dead, filled.ready));
    assert!(text(retry, "outcome").starts_with("1 of 2 done"), "{retry}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_act_that_fails_is_written_down_too() {
    let stage = Stage::new().await;
    stage.client.submit(call("x")).await.unwrap();
    let served = stage.open();
    let absent = json!({ "queue": "mail", "name": "x", "act": "run_now" });
    served.browser.act("things/lanes/act", &absent).await.fails(400, "invalid");
    let page = served.browser.look("audit").await;
    let outcome = page["rows"][0]["outcome"].as_str().unwrap();
    assert!(outcome.starts_with("failed: only schedules"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_act_whose_outcome_nobody_told_has_none_and_pages_lose_nothing() {
    let stage = Stage::new().await;
    let act = |number: usize| AuditAct { act: format!("a{number}"), ..AuditAct::default() };
    for number in 0..25 {
        let note = stage.client.audit(act(number)).await.unwrap();
        if number.is_multiple_of(2) {
            note.outcome("done").await.unwrap();
        }
    }
    let served = stage.open();
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = served.browser.look(&format!("audit?limit=4&after={after}")).await;
        for row in page["rows"].as_array().unwrap() {
            let number: usize = row["act"].as_str().unwrap()[1..].parse().unwrap();
            assert_eq!(
                row["outcome"],
                if number.is_multiple_of(2) { json!("done") } else { json!(null) }
            );
            seen.push(number);
        }
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut after),
            None => break,
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..25).collect::<Vec<_>>());
    served.browser.get("/api/v1/audit?after=x").await.fails(400, "invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_done_that_can_not_be_written_down() {
    let mut redis = optimus_testkit::RedisServer::start();
    let client = optimus::Client::connect(&redis.url()).await.unwrap();
    let id = client.submit(call("x")).await.unwrap().id().clone();
    // The key of the acts has another type, so no act can be added.
    let mut admin = redis.admin().await;
    let key = "{optimus:@audit:0}:audit";
    redis::cmd("SET").arg(key).arg("x").query_async::<()>(&mut admin).await.unwrap();
    let console = optimus_console::Console::new(client.clone());
    let listener = optimus_console::ConsoleListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let browser = crate::client::Browser::new(listener.address().unwrap());
    let serving = tokio::spawn(console.serve(listener).unwrap());
    let ids = json!({ "act": "cancel", "ids": [id.to_string()] });
    browser.act("tasks/act", &ids).await.fails(503, "unavailable");
    let found = client.inspector().get(&id).await.unwrap().unwrap();
    assert_eq!(found.state, TaskState::Ready);
    serving.abort();
    redis.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_act_on_many_tasks_names_each_of_them() {
    let stage = Stage::new().await;
    let queue = "q".repeat(128);
    let calls: Vec<_> = (0..100).map(|_| call("x").queue(&queue)).collect();
    let handles = stage.client.submit_all(calls).await.unwrap();
    let ids: Vec<String> = handles.iter().map(|handle| handle.id().to_string()).collect();
    let served = stage.open();
    let act = json!({ "act": "delete", "ids": ids });
    served.browser.act("tasks/act", &act).await.is(200);
    let page = served.browser.look("audit").await;
    assert_eq!(page["rows"][0]["target"], ids.join(" "));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_redis_takes_acts_and_their_lines() {
    let mut redis = optimus_testkit::RedisServer::start();
    let client = optimus::Client::connect(&redis.url()).await.unwrap();
    let id = client.submit(call("x")).await.unwrap().id().clone();
    let console = optimus_console::Console::new(client.clone());
    let listener = optimus_console::ConsoleListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let browser = crate::client::Browser::new(listener.address().unwrap());
    let serving = tokio::spawn(console.serve(listener).unwrap());
    let mut admin = redis.admin().await;
    let mut set = redis::cmd("CONFIG");
    set.arg("SET").arg("maxmemory").arg("1").query_async::<()>(&mut admin).await.unwrap();
    assert!(client.submit(call("y")).await.is_err(), "the store is full");
    browser.act("queues/mail/pause", &json!({ "reason": "it is full" })).await.is(204);
    let filter = json!({ "act": "delete", "filter": { "queue": "mail", "state": "ready" } });
    browser.act("operations", &filter).await.is(200);
    let ids = json!({ "act": "delete", "ids": [id.to_string()] });
    browser.act("tasks/act", &ids).await.is(200);
    assert!(client.inspector().get(&id).await.unwrap().is_none());
    let page = browser.look("audit").await;
    let acts = page["rows"].as_array().unwrap().iter().map(|row| row["act"].as_str().unwrap());
    assert_eq!(acts.collect::<Vec<_>>(), ["task.delete", "operation.count", "queue.pause"]);
    assert!(page["rows"].as_array().unwrap().iter().all(|row| row["outcome"].is_string()));
    serving.abort();
    redis.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn acts_are_written_down_in_the_store_of_a_process_too() {
    let client = optimus::Client::connect("memory://console-audit").await.unwrap();
    let act =
        AuditAct { who: "ann".to_owned(), act: "queue.pause".to_owned(), ..AuditAct::default() };
    client.audit(act.clone()).await.unwrap().outcome("paused").await.unwrap();
    let page = client.inspector().audit(None, 10).await.unwrap();
    assert_eq!((page.rows.len(), &page.rows[0].act), (1, &act));
    assert_eq!(page.rows[0].outcome.as_deref(), Some("paused"));
}
