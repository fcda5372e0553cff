//! Requests of a real client over a loopback connection.

#[path = "http/errors.rs"]
mod errors;
#[path = "http/guide.rs"]
mod guide;

use std::{net::SocketAddr, time::Duration};

use optimus_core::Client;
use optimus_dispenser::{Settings, Tokens, router};
use optimus_testkit::namespace;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

const ANN: &str = "token-of-ann-0123456789";
const BOB: &str = "token-of-bob-0123456789";
const DESK: &str = "token-of-desk-0123456789";

/// A running server with one dispenser.
struct Desk {
    address: SocketAddr,
    tokens: Tokens,
}

/// What the server has answered.
#[derive(Debug, PartialEq)]
struct Answer {
    status: u16,
    head: String,
    body: Value,
}

impl Answer {
    fn code(&self) -> (u16, &str) {
        (self.status, self.body["error"]["code"].as_str().unwrap_or_default())
    }
}

impl Desk {
    async fn open() -> Self {
        Self::with(|settings| settings).await
    }

    async fn with(change: impl FnOnce(Settings) -> Settings) -> Self {
        let client = Client::connect(&format!("memory://{}", namespace())).await.unwrap();
        let tokens = Tokens::new();
        tokens.add_assignee("ann", ANN).unwrap();
        tokens.add_assignee("bob", BOB).unwrap();
        tokens.add_operator("desk", DESK).unwrap();
        let settings = Settings::new(tokens.clone()).serve(client.dispenser("review"));
        let app = router(change(settings));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, tokens }
    }

    async fn post(&self, token: &str, verb: &str, body: &Value) -> Answer {
        self.send(&format!("POST /dispensers/review/{verb}"), &bearer(token), body).await
    }

    async fn get(&self, token: &str, what: &str) -> Answer {
        self.send(&format!("GET /dispensers/review/{what}"), &bearer(token), &Value::Null).await
    }

    /// Sends a request whose head has these lines.
    async fn send(&self, request: &str, lines: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let length = body.len();
        let head = format!("{request} HTTP/1.1\r\nHost: desk\r\n{lines}Content-Length: {length}");
        self.raw(format!("{head}\r\nConnection: close\r\n\r\n{body}").as_bytes()).await
    }

    async fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        // The server may close the connection before it has read the whole body.
        let _ = stream.read_to_end(&mut answer).await;
        let text = String::from_utf8(answer).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = serde_json::from_str(body).unwrap_or(Value::Null);
        Answer { status, head: head.to_lowercase(), body }
    }
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

fn ids(answer: &Answer) -> Vec<&str> {
    let items = answer.body["items"].as_array().expect("items");
    items.iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn items_go_from_the_operator_through_assignees_to_their_end() {
    let desk = Desk::open().await;
    let items = json!({ "items": ["a", "b", { "id": "c", "priority": 9 }] });
    let added = desk.post(DESK, "add", &items).await;
    assert_eq!(added.body, json!({ "added": 3, "open": 0, "assigned": 0, "done": 0 }));
    let mine = desk.post(ANN, "assign", &json!({ "count": 2 })).await;
    assert_eq!((mine.status, ids(&mine)), (200, vec!["c", "a"]));
    assert_eq!(mine.body["hold_ms"], 600_000);
    assert!(mine.head.contains("content-type: application/json"));
    let checked = desk.post(ANN, "check", &json!({ "items": ["a", "c"] })).await;
    assert_eq!((checked.body["exactly"].clone(), ids(&checked)), (json!(true), vec!["c", "a"]));
    assert_eq!(ids(&desk.post(ANN, "check", &Value::Null).await), ["c", "a"]);
    let done = desk.post(ANN, "done", &json!({ "items": ["c", "b", "x"] })).await;
    let refused = json!([{ "id": "b", "place": "open" }, { "id": "x", "place": "unknown" }]);
    assert_eq!(done.body, json!({ "accepted": ["c"], "refused": refused }));
    let given = desk.post(ANN, "give_back", &json!({ "items": ["a"] })).await;
    assert_eq!(given.body, json!({ "accepted": ["a"], "refused": [] }));
    let peek = desk.get(BOB, "peek").await;
    assert_eq!((&peek.body["open"], &peek.body["assigned"]), (&json!(2), &json!(0)));
    let open = desk.get(DESK, "peek?list=open&skip=0&limit=1").await;
    assert_eq!(open.body["rows"][0]["id"], "a");
    assert_eq!(open.body["rows"][0]["last_assignee"], "ann");
    assert_eq!(desk.get(DESK, "peek?list=assignees").await.body["rows"][0]["name"], "ann");
    assert_eq!(desk.get(DESK, "peek?list=assigned").await.body["rows"], json!([]));
}

#[tokio::test]
async fn a_rebuild_can_be_made_by_requests() {
    let desk = Desk::open().await;
    desk.post(DESK, "add", &json!({ "items": ["a", "gone"] })).await;
    let opened = desk.post(DESK, "rebuild", &json!({ "step": "begin" })).await;
    let rebuild = opened.body["rebuild"].as_str().unwrap();
    let since = "2026-01-02T03:04:05Z";
    let items = json!(["a", { "id": "new", "since": since }]);
    let page = json!({ "step": "page", "rebuild": rebuild, "items": items });
    assert_eq!(desk.post(DESK, "rebuild", &page).await.body["added"], 1);
    let empty = |id: &str| json!({ "step": "page", "rebuild": id, "items": [] });
    assert_eq!(desk.post(DESK, "rebuild", &empty(rebuild)).await.body["added"], 0);
    let finish = json!({ "step": "finish", "rebuild": rebuild });
    assert_eq!(desk.post(DESK, "rebuild", &finish).await.body, json!({ "removed": 1 }));
    for late in [page, empty(rebuild), empty("invented")] {
        let refused = desk.post(DESK, "rebuild", &late).await;
        assert_eq!(refused.code(), (409, "rebuild_ended"), "{late}");
    }
    assert_eq!(ids(&desk.post(ANN, "assign", &json!({ "count": 9 })).await), ["new", "a"]);
}

#[tokio::test]
async fn only_a_token_decides_who_the_caller_is() {
    let desk = Desk::open().await;
    desk.post(DESK, "add", &json!({ "items": ["a"] })).await;
    desk.post(ANN, "assign", &json!({ "count": 1 })).await;
    let count = json!({ "count": 1 });
    let assign = "POST /dispensers/review/assign";
    for lines in [
        String::new(),
        bearer("token-of-nobody-0123456789"),
        bearer(""),
        bearer(&ANN[..22]),
        bearer(&format!("{ANN}x")),
        format!("Authorization: Basic {ANN}\r\n"),
        format!("Authorization: {ANN}\r\n"),
        "Authorization: Bearer \u{e9}\r\n".to_owned(),
    ] {
        let refused = desk.send(assign, &lines, &count).await;
        assert_eq!(refused.code(), (401, "unauthorized"), "{lines:?}");
        assert!(refused.head.contains("www-authenticate: bearer"), "{}", refused.head);
        assert!(!refused.body.to_string().contains(ANN));
    }
    // No field, path or query lets bob act as ann.
    let done = desk.post(BOB, "done", &json!({ "items": ["a"] })).await;
    assert_eq!(done.body["refused"][0]["place"], "assigned_to_another");
    let as_ann = desk.post(BOB, "done", &json!({ "items": ["a"], "assignee": "ann" })).await;
    assert_eq!(as_ann.code(), (400, "invalid"));
    let released = desk.post(BOB, "release", &json!({ "assignee": "ann" })).await;
    assert_eq!(released.code(), (403, "forbidden"));
    let query = format!("{assign}?assignee=ann");
    assert_eq!(ids(&desk.send(&query, &bearer(BOB), &count).await), [""; 0]);
    for verb in ["add", "rebuild"] {
        assert_eq!(desk.post(ANN, verb, &json!({ "items": [] })).await.code(), (403, "forbidden"));
    }
    assert_eq!(desk.get(ANN, "peek?list=assigned").await.code(), (403, "forbidden"));
    assert_eq!(desk.post(DESK, "assign", &count).await.code(), (403, "forbidden"));
    assert_eq!(ids(&desk.post(ANN, "check", &Value::Null).await), ["a"]);

    assert_eq!(desk.post(DESK, "release", &json!({ "assignee": "ann" })).await.status, 200);
    assert_eq!(ids(&desk.post(BOB, "assign", &count).await), ["a"]);
    assert!(desk.tokens.revoke(BOB));
    assert_eq!(desk.post(BOB, "check", &Value::Null).await.code(), (401, "unauthorized"));
}

#[tokio::test]
async fn a_repeat_with_the_same_key_gets_the_same_answer_and_changes_nothing() {
    let desk = Desk::open().await;
    let keyed = async |token, verb, key, body: Value| keyed(&desk, token, verb, key, &body).await;
    let items = json!({ "items": ["a", "b", "c"] });
    let added = keyed(DESK, "add", "k1", items.clone()).await;
    assert_eq!(keyed(DESK, "add", "k1", items).await, added);
    let first = keyed(ANN, "assign", "k1", json!({ "count": 1 })).await;
    desk.post(ANN, "done", &json!({ "items": ["a"] })).await;
    assert_eq!(keyed(ANN, "assign", "k1", json!({ "count": 1 })).await.body, first.body);
    assert_eq!(ids(&desk.post(ANN, "check", &Value::Null).await), [""; 0], "b was not assigned");
    let other = keyed(ANN, "assign", "k1", json!({ "count": 2 })).await;
    assert_eq!(other.code(), (422, "key_reused"));
    assert_eq!(ids(&keyed(BOB, "assign", "k1", json!({ "count": 1 })).await), ["b"]);
    for key in ["", &"k".repeat(300), "\u{e9}"] {
        let refused = keyed(ANN, "assign", key, json!({ "count": 1 })).await;
        assert_eq!(refused.code(), (400, "invalid"), "{key:?}");
    }
}

/// Sends a request with an `Idempotency-Key`.
async fn keyed(desk: &Desk, token: &str, verb: &str, key: &str, body: &Value) -> Answer {
    let lines = format!("{}Idempotency-Key: {key}\r\n", bearer(token));
    desk.send(&format!("POST /dispensers/review/{verb}"), &lines, body).await
}

/// Clients that number their keys have the same ones.
#[tokio::test]
async fn the_key_of_an_operator_is_not_that_of_an_assignee_or_of_another_operator() {
    let desk = Desk::open().await;
    let other = "token-of-another-desk-0123";
    desk.tokens.add_operator("ann", other).unwrap();
    desk.post(DESK, "add", &json!({ "items": ["a"] })).await;
    keyed(&desk, ANN, "release", "1", &Value::Null).await;
    for operator in [DESK, other] {
        desk.post(ANN, "assign", &json!({ "count": 1 })).await;
        for held in [0, 1] {
            let released =
                keyed(&desk, operator, "release", "1", &json!({ "assignee": "ann" })).await;
            assert_eq!((released.status, released.body), (200, json!({})));
            let mine = desk.post(ANN, "check", &Value::Null).await;
            assert_eq!(ids(&mine).len(), held, "a repeat releases nothing");
            desk.post(ANN, "assign", &json!({ "count": 1 })).await;
        }
        let reused = keyed(&desk, operator, "release", "1", &json!({ "assignee": "bob" })).await;
        assert_eq!(reused.code(), (422, "key_reused"));
        let reused = keyed(&desk, operator, "add", "1", &json!({ "items": ["b"] })).await;
        assert_eq!(reused.code(), (422, "key_reused"));
    }
}

#[tokio::test]
async fn a_repeated_step_of_a_rebuild_does_not_begin_another_one() {
    let desk = Desk::open().await;
    desk.post(DESK, "add", &json!({ "items": ["a", "gone"] })).await;
    let step = async |key: &str, body: &Value| keyed(&desk, DESK, "rebuild", key, body).await;
    let begin = json!({ "step": "begin" });
    let opened = step("k1", &begin).await;
    assert_eq!(step("k1", &begin).await, opened);
    let id = opened.body["rebuild"].as_str().unwrap();
    let page = |items: Value| json!({ "step": "page", "rebuild": id, "items": items });
    let listed = step("k2", &page(json!(["a", "new"]))).await;
    assert_eq!(listed.body, json!({ "added": 1, "open": 1, "assigned": 0, "done": 0 }));
    assert_eq!(step("k2", &page(json!(["a", "new"]))).await, listed);
    assert_eq!(step("k2", &page(json!(["b"]))).await.code(), (422, "key_reused"));
    let finish = json!({ "step": "finish", "rebuild": id });
    for _ in 0..2 {
        assert_eq!(step("k3", &finish).await.body, json!({ "removed": 1 }));
    }
    assert_eq!(step("k1", &begin).await, opened, "a late repeat");
    assert_eq!(desk.get(DESK, "peek").await.body["is_rebuilding"], false);
    assert_ne!(step("k4", &begin).await.body, opened.body);
}

#[tokio::test]
async fn bad_requests_are_refused_in_json_and_change_nothing() {
    let desk = Desk::open().await;
    desk.post(DESK, "add", &json!({ "items": ["a"] })).await;
    let many: Vec<String> = (0..3_000).map(|number| number.to_string()).collect();
    for (token, verb, body) in [
        (ANN, "assign", json!({ "count": -1 })),
        (ANN, "assign", json!({ "count": 501 })),
        (ANN, "assign", json!({ "count": 1.5 })),
        (ANN, "assign", json!({})),
        (ANN, "assign", json!([])),
        (ANN, "done", json!({ "items": [1.5] })),
        (ANN, "done", json!({ "items": [""] })),
        (ANN, "done", json!({ "items": ["x".repeat(257)] })),
        (ANN, "check", json!({ "itemz": [] })),
        (DESK, "release", json!({})),
        (DESK, "release", json!({ "assignee": "" })),
        (DESK, "add", json!({ "items": ["fine", { "id": "b", "priority": 101 }] })),
        (DESK, "add", json!({ "items": [{ "id": "b", "priority": 1_000 }] })),
        (DESK, "add", json!({ "items": [{ "id": "b", "since": "yesterday" }] })),
        (DESK, "rebuild", json!({ "step": "burn" })),
    ] {
        let refused = desk.post(token, verb, &body).await;
        assert_eq!(refused.code(), (400, "invalid"), "{verb} {body}");
    }
    for body in ["", "{", "{\"count\":1}{", "\u{0}", &"[".repeat(100_000)] {
        let length = body.len();
        let head =
            format!("POST /dispensers/review/assign HTTP/1.1\r\nHost: desk\r\n{}", bearer(ANN));
        let request = format!("{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        assert_eq!(desk.raw(request.as_bytes()).await.code(), (400, "invalid"));
    }
    for (request, expected) in [
        ("GET /", (404, "not_found")),
        ("POST /dispensers/review", (404, "not_found")),
        ("POST /dispensers/review/steal", (404, "unknown_verb")),
        ("POST /dispensers/other/assign", (404, "unknown_dispenser")),
        ("POST /dispensers/%7Bx%7D%0A/assign", (404, "unknown_dispenser")),
        ("POST /dispensers/%FF/assign", (404, "not_found")),
        ("GET /dispensers/review/assign", (405, "wrong_method")),
        ("DELETE /dispensers/review/peek", (405, "wrong_method")),
        ("GET /dispensers/review/peek?list=all", (400, "invalid")),
        ("GET /dispensers/review/peek?list=open&limit=501", (400, "invalid")),
        ("GET /dispensers/review/peek?list=open&limit=0", (400, "invalid")),
    ] {
        let refused = desk.send(request, &bearer(DESK), &Value::Null).await;
        assert_eq!(refused.code(), expected, "{request}");
    }
    let counts = desk.get(DESK, "peek").await.body;
    assert_eq!((&counts["open"], &counts["assigned"]), (&json!(1), &json!(0)));
    assert_eq!(desk.post(DESK, "add", &json!({ "items": many })).await.body["added"], 3_000);
}

#[tokio::test]
async fn strange_texts_come_back_unchanged() {
    let desk = Desk::open().await;
    let strange = ["\u{0}", "a\r\nb", "\"\\", "{review}:0", "é☃\u{1f980}", "' OR 1=1 --", "../.."];
    desk.post(DESK, "add", &json!({ "items": strange })).await;
    let mine = desk.post(ANN, "assign", &json!({ "count": 9 })).await;
    assert_eq!(ids(&mine), strange);
    let done = desk.post(ANN, "done", &json!({ "items": strange })).await;
    assert_eq!(done.body["accepted"], json!(strange));
}

#[tokio::test]
async fn a_body_that_is_too_long_or_too_slow_is_refused() {
    let change =
        |settings: Settings| settings.body_bytes_max(100).timeout(Duration::from_millis(300));
    let desk = Desk::with(change).await;
    let long = json!({ "items": ["x".repeat(200)] });
    assert_eq!(desk.post(ANN, "done", &long).await.code(), (413, "too_large"));
    assert_eq!(desk.post("nobody", "done", &long).await.code(), (401, "unauthorized"));
    let head = format!("POST /dispensers/review/done HTTP/1.1\r\nHost: desk\r\n{}", bearer(ANN));
    let slow = format!("{head}Content-Length: 50\r\nConnection: close\r\n\r\n{{");
    assert_eq!(desk.raw(slow.as_bytes()).await.code(), (503, "timeout"));
    assert_eq!(desk.post(ANN, "check", &Value::Null).await.status, 200, "others are served");
}

#[tokio::test]
async fn a_store_that_is_away_is_told_and_not_named() {
    let server = optimus_testkit::RedisServer::start();
    let client = Client::connect(&server.url()).await.unwrap();
    let desk = Desk::with(|settings| {
        let short = settings.timeout(Duration::from_secs(30));
        short.serve(client.dispenser("review"))
    })
    .await;
    assert_eq!(desk.post(ANN, "assign", &json!({ "count": 1 })).await.status, 200);
    let url = server.url();
    drop(server);
    let refused = desk.post(ANN, "assign", &json!({ "count": 1 })).await;
    assert_eq!(refused.code(), (503, "unavailable"));
    assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
    assert!(!refused.body.to_string().contains(url.trim_start_matches("unix://")), "{refused:?}");
}
