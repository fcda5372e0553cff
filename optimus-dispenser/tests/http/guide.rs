//! Plays the requests of the guide: each of them gets the answer that the guide shows.

use serde_json::Value;

use crate::{ANN, BOB, DESK, Desk, bearer};

const GUIDE: &str = include_str!("../../../docs/guides/dispenser-http.md");

/// Values of these fields differ in each run.
const VARIABLE: [&str; 4] = ["until", "rank_ms", "first_waits_ms", "rebuild"];

/// A request of the guide, and the answer below it.
struct Exchange {
    line: String,
    caller: String,
    key: Option<String>,
    body: String,
    status: u16,
    answer: Value,
}

/// Returns the blocks of the guide in this language.
fn blocks(language: &str) -> Vec<String> {
    let start = format!("```{language}\n");
    let parts = GUIDE.split(start.as_str()).skip(1);
    parts.map(|part| part.split("\n```").next().unwrap_or_default().to_owned()).collect()
}

fn exchange(block: &str) -> Exchange {
    let (request, answer) = block.split_once("\n\nHTTP/1.1 ").expect("a request and an answer");
    let (head, body) = request.split_once("\n\n").unwrap_or((request, ""));
    let header = |name: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::to_owned)
    };
    let (status, answer) = answer.split_once("\n\n").expect("a status and a body");
    Exchange {
        line: head.lines().next().expect("a first line").to_owned(),
        caller: header("Authorization: Bearer ").expect("a token"),
        key: header("Idempotency-Key: "),
        body: body.to_owned(),
        status: status.split(' ').next().expect("a status").parse().expect("a number"),
        answer: serde_json::from_str(answer).expect("an answer in JSON"),
    }
}

/// Replaces the values that differ in each run.
fn masked(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if VARIABLE.contains(&name.as_str()) && !value.is_null() {
                    *value = Value::from(name.as_str());
                }
                masked(value);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(masked),
        _ => {}
    }
}

#[tokio::test]
async fn each_request_of_the_guide_gets_the_answer_that_the_guide_shows() {
    let desk = Desk::open().await;
    let mut rebuild: Option<String> = None;
    let blocks = blocks("http");
    assert!(blocks.len() >= 12, "{} exchanges", blocks.len());
    for block in blocks {
        let told = exchange(&block);
        let token = match told.caller.as_str() {
            "<ann>" => ANN,
            "<bob>" => BOB,
            "<desk>" => DESK,
            other => other,
        };
        let key = told.key.iter().map(|key| format!("Idempotency-Key: {key}\r\n"));
        let lines: String = [bearer(token)].into_iter().chain(key).collect();
        let body = match &rebuild {
            Some(id) => told.body.replace("6a4f…", id.as_str()),
            None => told.body,
        };
        let length = body.len();
        let request = format!(
            "{} HTTP/1.1\r\nHost: desk\r\n{lines}Content-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}",
            told.line
        );
        let mut answer = desk.raw(request.as_bytes()).await;
        if let Some(id) = answer.body["rebuild"].as_str() {
            rebuild = Some(id.to_owned());
        }
        let mut expected = told.answer;
        masked(&mut expected);
        masked(&mut answer.body);
        assert_eq!((answer.status, &answer.body), (told.status, &expected), "{block}");
    }
}

/// Each code that the router has, with its status.
#[test]
fn the_guide_lists_each_code() {
    let source = include_str!("../../src/problem.rs");
    let codes: Vec<&str> = source.split('"').filter(|text| is_code(text)).collect();
    assert!(codes.len() >= 11, "{codes:?}");
    for code in codes {
        assert!(GUIDE.contains(&format!("| `{code}` |")), "{code}");
    }
    for place in ["open", "assigned_to_another", "done", "done_by_another", "unknown"] {
        assert!(GUIDE.contains(&format!("| `{place}` |")), "{place}");
    }
}

fn is_code(text: &str) -> bool {
    const OTHERS: [&str; 4] = ["error", "code", "message", "none"];
    let is_word = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    !text.is_empty() && is_word && !OTHERS.contains(&text)
}
