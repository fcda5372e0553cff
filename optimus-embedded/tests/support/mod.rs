//! A client that sends lines of text, as the command line of Redis does.

use optimus_embedded::{Clock, Store};
use redis::Value;
use redis::aio::ConnectionLike;

/// Splits a line at spaces. `""` is an empty word.
pub(crate) fn words(line: &str) -> Vec<Vec<u8>> {
    let plain = |word: &str| if word == "\"\"" { Vec::new() } else { word.as_bytes().to_vec() };
    line.split(' ').map(plain).collect()
}

/// Sends one command and returns the reply of the connection, including errors.
pub(crate) async fn send(connection: &mut impl ConnectionLike, words: &[Vec<u8>]) -> Value {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(word);
    }
    connection.req_packed_command(&command).await.expect("the connection itself does not fail")
}

/// Formats a reply: `nil`, `1`, `"bulk"`, `+STATUS`, `!ERROR`, `[a b]`.
pub(crate) fn show(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Int(integer) => integer.to_string(),
        Value::BulkString(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Value::Okay => "+OK".to_owned(),
        Value::SimpleString(text) => format!("+{text}"),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(" "))
        }
        Value::ServerError(error) => {
            format!("!{} {}", error.code(), error.details().unwrap_or_default())
        }
        other => panic!("not a reply of protocol version 2: {other:?}"),
    }
}

/// Sends the lines to a new store and compares each reply with the expected one.
#[allow(dead_code, reason = "some tests that share this file do not use it")]
pub(crate) async fn transcript(lines: &[(&str, &str)]) {
    let store = Store::new(Clock::manual(1_000_000));
    let mut connection = store.connection();
    for (line, reply) in lines {
        assert_eq!(show(&send(&mut connection, &words(line)).await), *reply, "after {line}");
    }
}
