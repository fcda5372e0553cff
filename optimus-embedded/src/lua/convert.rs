//! Converts replies to Lua values and back, by the rules of Redis.

use mlua::{Lua, Table, Value};

use crate::commands::Outcome;
use crate::error::CommandError;
use crate::reply::Reply;

/// The limit of nesting. A table with deeper nesting counts as endless.
const MAX_DEPTH: usize = 100;

/// Returns the value that `redis.call` returns for a reply.
pub(super) fn to_lua(lua: &Lua, reply: &Reply) -> mlua::Result<Value> {
    Ok(match reply {
        Reply::Nil => Value::Boolean(false),
        #[expect(clippy::cast_precision_loss, reason = "Lua 5.1 has only doubles")]
        Reply::Integer(integer) => Value::Number(*integer as f64),
        Reply::Bulk(bytes) => Value::String(lua.create_string(bytes)?),
        Reply::Status(text) => Value::Table(status_table(lua, text)?),
        Reply::Error(error) => Value::Table(error_table(lua, error.to_string())?),
        Reply::Array(items) => {
            let items: mlua::Result<Vec<Value>> =
                items.iter().map(|item| to_lua(lua, item)).collect();
            Value::Table(lua.create_sequence_from(items?)?)
        }
    })
}

pub(super) fn status_table(lua: &Lua, text: impl AsRef<[u8]>) -> mlua::Result<Table> {
    lua.create_table_from([("ok", lua.create_string(text)?)])
}

pub(super) fn error_table(lua: &Lua, text: impl AsRef<[u8]>) -> mlua::Result<Table> {
    lua.create_table_from([("err", lua.create_string(text)?)])
}

/// Returns the reply for the value that a script returned.
pub(super) fn to_reply(value: &Value) -> Outcome {
    nested_to_reply(value, 0)
}

fn nested_to_reply(value: &Value, depth: usize) -> Outcome {
    Ok(match value {
        Value::String(string) => Reply::bulk(string.as_bytes()),
        Value::Boolean(true) => Reply::Integer(1),
        Value::Integer(integer) => Reply::Integer(*integer),
        Value::Number(number) => Reply::Integer(truncate(*number)),
        Value::Table(_) if depth == MAX_DEPTH => {
            return Err(CommandError::general("reached lua stack limit"));
        }
        Value::Table(table) => table_to_reply(table, depth)?,
        _ => Reply::Nil,
    })
}

fn table_to_reply(table: &Table, depth: usize) -> Outcome {
    let unreadable = |error: mlua::Error| CommandError::general(error);
    if let Value::String(text) = table.raw_get("err").map_err(unreadable)? {
        return Ok(Reply::Error(CommandError::Other(text.to_string_lossy())));
    }
    if let Value::String(text) = table.raw_get("ok").map_err(unreadable)? {
        return Ok(Reply::Status(text.to_string_lossy().replace(['\r', '\n'], " ")));
    }
    let mut items = Vec::new();
    loop {
        match table.raw_get(items.len() + 1).map_err(unreadable)? {
            Value::Nil => return Ok(Reply::Array(items)),
            item => items.push(nested_to_reply(&item, depth + 1)?),
        }
    }
}

/// Reads a number of either mlua type. Lua 5.1 itself has only doubles.
pub(super) fn double(value: &Value) -> Option<f64> {
    match value {
        #[expect(
            clippy::cast_precision_loss,
            reason = "the number was a double before mlua converted it"
        )]
        Value::Integer(integer) => Some(*integer as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

/// Returns the result of a C cast to `long long` on the machines on which Redis runs.
fn truncate(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) {
        #[expect(clippy::cast_possible_truncation, reason = "Redis drops the fraction, too")]
        return number as i64;
    }
    i64::MIN
}
