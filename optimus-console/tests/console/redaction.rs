//! Secrets do not leave the server.

use serde_json::json;

use crate::stage::{Stage, call, send_mail};

#[tokio::test(flavor = "multi_thread")]
async fn secrets_in_arguments_results_errors_logs_and_headers_are_replaced() {
    let stage = Stage::new().await;
    let secret = "hunter2hunter2";
    let deep = json!([{ "api_key": secret }]);
    let extra = json!({ "user": "ann", "deep": deep, "n": 18_446_744_073_709_551_615_u64 });
    let failing = format!("fail: login failed: password={secret}\nAuthorization: Bearer {secret}");
    let logging = format!("log: token={secret}");
    let [failed, logged] = stage.ended([&*failing, &*logging]).await;
    let rich = send_mail("ok".to_owned(), extra).header("x-auth-token", secret);
    let done = stage.client.submit(rich).await.unwrap().id().clone();
    stage.ended(["ok"]).await;
    let served = stage.open();
    let mut seen = String::new();
    for id in [&failed, &logged, &done] {
        seen.push_str(&served.browser.get(&format!("/api/v1/tasks/{id}")).await.is(200).body);
    }
    for path in ["overview", "failures", "queues/mail/tasks?state=dead", "queues/mail/history"] {
        seen.push_str(&served.browser.get(&format!("/api/v1/{path}")).await.is(200).body);
    }
    assert!(!seen.contains(secret), "{seen}");
    assert!(seen.contains("password=[redacted]") && seen.contains("Bearer [redacted]"), "{seen}");
    assert!(seen.contains("18446744073709551615"), "numbers stay what they are: {seen}");
    // Nobody finds out what is hidden by a search for it.
    let guess = format!("queues/mail/tasks?state=dead&text={secret}");
    assert_eq!(served.browser.look(&guess).await["rows"], json!([]));
    for part in [json!({ "text": secret }), json!({ "header": format!("x-auth-token={secret}") })] {
        let mut filter = json!({ "queue": "mail", "state": "dead" });
        filter.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
        let counted = json!({ "act": "requeue", "filter": filter });
        served.browser.act("operations", &counted).await.fails(403, "forbidden");
    }
}

/// Returns a text whose first so many bytes end within the password of a URL.
fn cut_within(bytes: usize, secret: &str) -> String {
    let before = "postgres://ann:hunt";
    format!("{}{before}{secret}@db/x", ".".repeat(bytes - before.len()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_is_cut_within_a_password_shows_no_part_of_it() {
    let stage = Stage::new().await;
    let failing = format!("fail: {}", cut_within(200, "er2"));
    let logging = format!("log: {}", cut_within(500, "er2"));
    let long = format!("fail: {}", cut_within(8_192, "er2"));
    let shutting = format!("shut: {}", cut_within(200, "er2"));
    let [failed, logged, longer] = stage.ended([&*failing, &*logging, &*long]).await;
    stage.ended([&*shutting]).await;
    let waits = stage.submit(call("sent")).await;
    let counted = json!({ "act": "delete", "filter": { "queue": "mail", "state": "dead" } });
    let served = stage.open();
    served.browser.act("operations", &counted).await.is(200);
    let mut seen = String::new();
    for path in [
        &*format!("tasks/{failed}"),
        &*format!("tasks/{logged}"),
        &*format!("tasks/{longer}"),
        &*format!("tasks/{waits}"),
        "overview",
        "failures",
        "operations",
        "queues",
        "queues/mail",
        "queues/mail/history",
        "queues/mail/tasks?state=dead",
        "limits?queue=mail",
        "search?q=postgres",
    ] {
        let answer = served.browser.get(&format!("/api/v1/{path}")).await.is(200).body;
        assert!(!answer.contains("hunt"), "{path}: {answer}");
        seen.push_str(&answer);
    }
    assert!(seen.matches("postgres://ann:[redacted]").count() > 9, "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_of_a_pause_is_redacted_in_what_keeps_tasks_waiting() {
    let stage = Stage::new().await;
    stage.submit(call("waits")).await;
    let secret = "hunter2hunter2";
    let why = format!("password={secret}");
    stage.client.gate("mail", optimus::Gate::Queue).pause("bob", &why).await.unwrap();
    let page = stage.open().browser.look("queues/mail").await;
    assert!(!page.to_string().contains(secret), "{page}");
    let explain = page["explain"].to_string();
    assert!(explain.contains("password=[redacted]"), "{explain}");
}
