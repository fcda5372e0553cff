//! Requests that no page sends.

use serde_json::json;

use crate::stage::{Stage, call};

#[tokio::test(flavor = "multi_thread")]
async fn paths_methods_and_bodies_that_the_api_does_not_have_are_refused() {
    let stage = Stage::new().await;
    let id = stage.client.submit(call("x")).await.unwrap().id().to_string();
    let served = stage.open();
    let browser = &served.browser;
    for path in ["", "nothing", "queues/a/b/c", "tasks", "v2/session"] {
        let answer = browser.get(&format!("/api/v1/{path}")).await;
        answer.fails(404, "not_found");
        let expected = "the API has no such path; openapi.json lists all";
        assert_eq!(answer.json()["message"], expected, "{path}");
    }
    browser.act("nothing", &json!({})).await.fails(404, "not_found");
    let misspelt = browser.get("/api/v1/queues/mail/tasks?srt=age").await;
    misspelt.fails(400, "invalid");
    let message = misspelt.json()["message"].as_str().unwrap().to_owned();
    let expected = "the query has an unknown parameter \"srt\"; there are: state, ";
    assert!(message.starts_with(expected), "{message}");
    for (method, path) in [
        ("GET", "queues/mail/pause"),
        ("POST", "queues"),
        ("DELETE", "queues/mail"),
        ("PUT", "tasks/act"),
        ("PATCH", "session"),
        ("GET", "tasks/act"),
    ] {
        let answer = browser.send(method, &format!("/api/v1/{path}"), Some("{}")).await;
        answer.fails(405, "invalid");
    }
    let ids = json!({ "act": "cancel", "ids": [id] }).to_string();
    for body in [
        "",
        "null",
        "[]",
        "{",
        "{}",
        r#"{"act":"cancel"}"#,
        r#"{"act":"explode","ids":["a/b"]}"#,
        r#"{"act":"cancel","ids":"a/b"}"#,
        r#"{"act":"cancel","ids":["a/b"]}"#,
        r#"{"act":"cancel","ids":["../../b"]}"#,
        &format!(r#"{{"act":"cancel","ids":["{id}"],"force":true}}"#),
        &format!("{}x", &ids),
        &"[".repeat(10_000),
    ] {
        browser.send("POST", "/api/v1/tasks/act", Some(body)).await.fails(400, "invalid");
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""] {
        let form = browser.with("content-type", kind);
        form.send("POST", "/api/v1/tasks/act", Some(&ids)).await.fails(400, "invalid");
    }
    let is_in = stage.state(&id.parse().unwrap()).await;
    assert_eq!(is_in, optimus::TaskState::Ready, "nothing was done");
    browser.get("/api/v1/queues?colour=red").await.fails(400, "invalid");
    browser.get("/api/v1/queues?limit=-1").await.fails(400, "invalid");
    let charset = browser.with("content-type", "application/json; charset=utf-8");
    charset.send("POST", "/api/v1/tasks/act", Some(&ids)).await.is(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_and_heads_that_are_too_large_are_refused() {
    let stage = Stage::new().await;
    let served = stage.open();
    let large = json!({ "act": "cancel", "ids": [], "reason": "x".repeat(70_000) }).to_string();
    let answer = served.browser.send("POST", "/api/v1/tasks/act", Some(&large)).await;
    answer.fails(413, "too_large");
    let long = served.browser.with("x-long", &"x".repeat(40_000)).get("/api/v1/session").await;
    assert_eq!(long.status, 431, "{}", long.body);
    let mut many = served.browser.clone();
    many.headers.extend((0..100).map(|n| (format!("x-{n}"), "1".to_owned())));
    assert_eq!(many.get("/api/v1/session").await.status, 431);
    let path = format!("/api/v1/queues/{}", "a".repeat(200));
    served.browser.get(&path).await.fails(400, "invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_are_no_http_get_no_answer_of_the_console() {
    let stage = Stage::new().await;
    let served = stage.open();
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n",
        b"POST /api/v1/sign-out HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\
          transfer-encoding: chunked\r\nconnection: close\r\n\r\n0\r\n\r\n",
    ] {
        let answer = served.browser.raw(bytes).await;
        assert!([0, 400, 403].contains(&answer.status), "{bytes:?}: {answer:?}");
    }
    assert_eq!(served.browser.get("/api/v1/session").await.status, 200, "it still answers");
}
