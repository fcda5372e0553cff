//! Secrets do not leave the server.

use serde_json::json;

use crate::stage::{Stage, send_mail};

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
