//! Tests the JSON of the embedded store's scripts. Written JSON is read back, and no valid JSON is
//! refused.

use std::cell::RefCell;

use optimus_embedded::{Clock, Connection, Store};
use redis::{Cmd, Value, aio::ConnectionLike as _};
use tokio::runtime::{Builder, Runtime};

/// A script that decodes the text and encodes it again. It returns `nil` if the text is refused or
/// has a value that JSON lacks.
const SCRIPT: &str = "local ok, value = pcall(cjson.decode, ARGV[1])
    if not ok then return { 'refused', value } end
    local encoded, text = pcall(cjson.encode, value)
    return { encoded and 'ok' or 'unwritten', text }";

struct Vm {
    runtime: Runtime,
    connection: Connection,
}

thread_local! {
    static VM: RefCell<Vm> = RefCell::new(Vm {
        runtime: Builder::new_current_thread().build().expect("a runtime can be built"),
        connection: Store::new(Clock::manual(0)).connection(),
    });
}

/// Checks that any bytes are read, or refused with the position of the error.
pub(crate) fn check(data: &[u8]) {
    let (word, text) = through_lua(data);
    if word == "refused" {
        // Lua's numbers can hold values that are too large for other JSON readers. The reverse does
        // not occur.
        assert!(serde_json::from_slice::<serde_json::Value>(data).is_err(), "{text:?}");
        assert!(String::from_utf8_lossy(&text).contains("at character"), "{text:?}");
    } else if word == "ok" {
        let (word, again) = through_lua(&text);
        assert_eq!(word, "ok");
        assert_eq!(meaning(&again), meaning(&text), "the second encoding differs");
    }
}

/// Returns the meaning of a text, because the order of names may change. Returns none if the text
/// is nested too deep.
fn meaning(json: &[u8]) -> Option<serde_json::Value> {
    serde_json::from_slice(json).ok()
}

fn through_lua(json: &[u8]) -> (String, Vec<u8>) {
    let mut eval = Cmd::new();
    eval.arg("EVAL").arg(SCRIPT).arg(0).arg(json);
    let answer = VM.with_borrow_mut(|vm| {
        let Vm { runtime, connection } = vm;
        runtime
            .block_on(connection.req_packed_command(&eval))
            .expect("a store in this process does not fail")
    });
    match answer {
        Value::Array(items) => match items.as_slice() {
            [Value::BulkString(word), Value::BulkString(text)] => {
                (String::from_utf8_lossy(word).into_owned(), text.clone())
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}
