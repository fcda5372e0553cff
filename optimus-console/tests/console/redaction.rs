//! Secrets do not leave the server.

use optimus::{AuditAct, OperationAct, OperationFilter, TaskState};
use optimus_console::{Payloads, Role};
use serde_json::json;

use crate::stage::{Served, Stage, call, secrets, send_mail};

#[tokio::test(flavor = "multi_thread")]
async fn secrets_in_arguments_results_errors_logs_headers_and_biz_ids_are_replaced() {
    let stage = Stage::new().await;
    let secret = "hunter2hunter2";
    let deep = json!([{ "api_key": secret }]);
    let extra = json!({ "user": "ann", "deep": deep, "n": 18_446_744_073_709_551_615_u64 });
    let failing = format!("fail: login failed: password={secret}\nAuthorization: Bearer {secret}");
    let logging = format!("log: token={secret}");
    let [failed, logged] = stage.ended([&*failing, &*logging]).await;
    let rich = send_mail("ok".to_owned(), extra).header("x-auth-token", secret);
    let rich = rich.biz_id(format!("token={secret}"));
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

#[tokio::test(flavor = "multi_thread")]
async fn nobody_guesses_a_secret_in_the_value_of_a_header_by_the_count_of_an_operation() {
    let stage = Stage::new().await;
    let secret = "redis://ann:hunter2@db";
    stage.submit(call("x").header("store", secret)).await;
    let served = stage.guarded();
    let olga = served.bearer("olga");
    let shown = olga.look("queues/mail/tasks").await["rows"][0]["headers"]["store"].clone();
    assert_eq!(shown, json!("redis://ann:[redacted]@db"));
    for guess in [secret, "redis://ann:hunter3@db"] {
        let header = format!("store={guess}");
        let filter = json!({ "queue": "mail", "state": "ready", "header": header });
        let counted = json!({ "act": "cancel", "filter": filter });
        olga.act("operations", &counted).await.fails(403, "forbidden");
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

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_what_an_operator_has_typed_is_shown_only_to_those_who_see_all() {
    let stage = Stage::new().await;
    stage.fill().await;
    stage.furnish().await;
    let secret = "hunter2hunter2";
    let why = format!("curl -H 'Authorization: Bearer {secret}' works again");
    let filter = OperationFilter::of(TaskState::Dead).queue("mail").unwrap();
    let filter =
        filter.text(format!("password={secret}")).header("x-auth-token", Some(secret.to_owned()));
    let operations = stage.client.operations();
    operations.count(OperationAct::Requeue, filter, "bob").await.unwrap();
    let console = stage.console().auth(optimus_console::Auth::Token(secrets()));
    let served = Served::of(console.payloads(Role::Admin, Payloads::Full));
    let [olga, ann] = ["olga", "ann"].map(|name| served.bearer(name));
    let order = json!({ "act": "requeue", "filter": { "queue": "mail", "state": "dead" } });
    let counted = olga.act("operations", &order).await.is(200).json();
    let confirm = json!({ "expect": counted["matched"], "reason": why });
    let path = format!("operations/{}/confirm", counted["id"].as_str().unwrap());
    olga.act(&path, &confirm).await.is(200);
    for (kind, name) in [("schedules", "digest"), ("lanes", "user-7"), ("limits", "limit:stripe")] {
        let pause = json!({ "queue": "mail", "name": name, "act": "pause", "reason": why });
        olga.act(&format!("things/{kind}/act"), &pause).await.is(200);
    }
    let note = AuditAct { act: "deploy".to_owned(), ..AuditAct::default() };
    let note = stage.client.audit(note).await.unwrap();
    note.outcome(&format!("redis://:{secret}@db/0 is moved")).await.unwrap();
    for path in ["audit", "operations", "schedules", "lanes?queue=mail", "limits?queue=mail"] {
        let [shown, whole] = [&olga, &ann].map(async |browser| browser.look(path).await);
        let (shown, whole) = (shown.await.to_string(), whole.await.to_string());
        assert!(!shown.contains(secret), "{path}: {shown}");
        assert!(shown.contains("[redacted]"), "{path}: {shown}");
        assert!(whole.contains(secret), "{path}: {whole}");
    }
}
