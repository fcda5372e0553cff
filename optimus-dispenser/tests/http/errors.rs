//! What a caller reads that has made a mistake.

use serde_json::{Value, json};

use crate::{ANN, DESK, Desk, bearer, ids};

/// A caller is of another team, and reads only the answer.
#[tokio::test]
async fn an_error_names_the_field_and_says_what_to_send() {
    let desk = Desk::open().await;
    for (token, verb, body, text) in [
        (DESK, "add", json!({ "items": ["a", true] }), "boolean `true`, expected a text"),
        (DESK, "add", json!({ "items": ["a", null] }), "items[1] is null; an id is a text"),
        (DESK, "add", json!({ "items": "a" }), "items is \"a\"; use a list"),
        (
            DESK,
            "add",
            json!({ "items": [{ "id": "p", "priority": 500 }] }),
            "items[0].priority is 500; use a whole number from -100 to 100",
        ),
        (
            DESK,
            "add",
            json!({ "items": [{ "id": "p", "since": "yesterday" }] }),
            "items[0].since is \"yesterday\"; use a time such as 2026-01-02T03:04:05Z",
        ),
        (
            DESK,
            "add",
            json!({ "items": [{ "id": "p", "prio": 5 }] }),
            "unknown field items[0].prio",
        ),
        (DESK, "add", json!({ "items": [{ "priority": 5 }] }), "items[0].id is missing"),
        (DESK, "add", json!({ "items": ["x".repeat(257)] }), "items[0] has 257 bytes"),
        (DESK, "rebuild", json!({ "step": "burn" }), "step is \"burn\"; use begin, page or finish"),
        (DESK, "rebuild", json!({ "step": "page" }), "rebuild is missing"),
        (DESK, "rebuild", json!({ "step": "begin", "items": [] }), "unknown field \"items\""),
        (DESK, "release", Value::Null, "send {\"assignee\":\"ann\"}"),
        (ANN, "assign", Value::Null, "count is missing; send a body such as {\"count\":20}"),
        (ANN, "assign", json!({ "count": -1 }), "count is -1; use a whole number from 0 to 500"),
        (ANN, "assign", json!({ "count": 501 }), "count is 501; use a whole number from 0 to 500"),
        (ANN, "assign", json!([]), "the body is a list; send an object such as {\"count\":20}"),
        (ANN, "done", json!({}), "items is missing"),
    ] {
        let refused = desk.post(token, verb, &body).await;
        assert_eq!(refused.code(), (400, "invalid"), "{verb} {body}");
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(text), "{verb} {body}: {message}");
    }
    for (what, text) in [
        ("peek?list=all", "list is \"all\"; use open, assigned or assignees"),
        ("peek?list=open&limit=0", "limit is 0; use 1 to 500"),
        ("peek?list=open&limit=many", "limit is \"many\"; use 1 to 500"),
        ("peek?list=open&skip=-1", "skip is \"-1\"; use a whole number from 0"),
        ("peek?lists=open", "unknown parameter \"lists\""),
        ("peek?limit=5", "skip and limit need list"),
        ("peek?list=open&list=open", "list is there twice"),
    ] {
        let refused = desk.get(DESK, what).await;
        assert_eq!(refused.code(), (400, "invalid"), "{what}");
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(text), "{what}: {message}");
    }
    let twice = "{\"count\":1,\"count\":2}";
    let head = format!("POST /dispensers/review/assign HTTP/1.1\r\nHost: desk\r\n{}", bearer(ANN));
    let length = twice.len();
    let request = format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{twice}");
    let refused = desk.raw(request.as_bytes()).await;
    assert!(
        refused.body["error"]["message"].as_str().unwrap().contains("\"count\" is there twice")
    );
    let unknown = desk.send("POST /dispensers/revue/assign", &bearer(ANN), &Value::Null).await;
    assert_eq!(unknown.code(), (404, "unknown_dispenser"));
    assert!(unknown.body["error"]["message"].as_str().unwrap().ends_with("served: review"));
}

#[tokio::test]
async fn a_whole_number_is_an_id_as_its_digits() {
    let desk = Desk::open().await;
    let rows = json!([7, { "id": 8 }, "9", u64::MAX]);
    assert_eq!(desk.post(DESK, "add", &json!({ "items": rows })).await.body["added"], 4);
    let mine = desk.post(ANN, "assign", &json!({ "count": 9 })).await;
    assert_eq!(ids(&mine), ["7", "8", "9", "18446744073709551615"]);
    let checked = desk.post(ANN, "check", &json!({ "items": [7, 8, 9, u64::MAX] })).await;
    assert_eq!(checked.body["exactly"], true);
    let done = desk.post(ANN, "done", &json!({ "items": [7, "8"] })).await;
    assert_eq!(done.body["accepted"], json!(["7", "8"]));
}
