//! The errors that a script raises and returns.

use mlua::{Lua, Table, Value};

use super::convert;
use crate::error::CommandError;
use crate::number;

/// The name of scripts in error messages, as in Redis 7.
pub(super) const CHUNK_NAME: &str = "@user_script";

/// An error that a function of this crate raises in a script.
#[derive(Debug, thiserror::Error)]
pub(super) enum Raised {
    /// A refused command. The text begins with a code.
    #[error("{0}")]
    Command(CommandError),
    /// A misused function. The text begins with the place in the script.
    #[error("{0}")]
    Message(String),
}

impl From<Raised> for mlua::Error {
    fn from(raised: Raised) -> Self {
        Self::external(raised)
    }
}

/// Returns an error of the current function, at the place of the call.
pub(super) fn raise(lua: &Lua, message: impl std::fmt::Display) -> mlua::Error {
    let place = lua.inspect_stack(1, |caller| {
        let source = caller.source().short_src.map(std::borrow::Cow::into_owned);
        source.zip(caller.current_line())
    });
    let message = match place.flatten() {
        Some((source, line)) => format!("{source}:{line}: {message}"),
        None => message.to_string(),
    };
    Raised::Message(message).into()
}

/// Returns the line that called the current function, from 1, or 0 if the line is unknown.
#[cfg(feature = "simulation")]
pub(super) fn line_of_caller(lua: &Lua) -> usize {
    lua.inspect_stack(1, |caller| caller.current_line().unwrap_or(0)).unwrap_or(0)
}

/// Returns the value that a script's `pcall` catches. For a refused command, as in Redis, it is the
/// text, and never an error object of this crate.
pub(super) fn to_caught(lua: &Lua, error: Value) -> mlua::Result<Value> {
    match &error {
        Value::Error(failure) => {
            let text = match failure.downcast_ref::<Raised>() {
                Some(raised) => raised.to_string(),
                None => failure.to_string(),
            };
            Ok(Value::String(lua.create_string(text)?))
        }
        Value::Table(table) => match table.raw_get("err")? {
            text @ Value::String(_) => Ok(text),
            _ => Ok(error),
        },
        _ => Ok(error),
    }
}

/// Returns the value that a script's `xpcall` passes to the handler. It is the same value as in
/// [`to_caught`], except that for a refused command it is the table that `redis.pcall` would
/// return.
pub(super) fn to_handled(lua: &Lua, error: Value) -> mlua::Result<Value> {
    match &error {
        Value::Error(failure) => match failure.downcast_ref() {
            Some(Raised::Command(refusal)) => {
                Ok(Value::Table(convert::error_table(lua, refusal.to_string())?))
            }
            _ => to_caught(lua, error),
        },
        _ => Ok(error),
    }
}

/// Handles the error of a script. Returns the text of the error with the line that raised it.
pub(super) fn locate(lua: &Lua, error: Value) -> mlua::Result<Table> {
    let located = convert::error_table(lua, text(&error)?)?;
    // Level 1 is the function that raised the error. If the host provides this function, the line
    // of its caller counts.
    let place = |level| {
        lua.inspect_stack(level, |frame| {
            let source = frame.source();
            let is_host = source.what == "C";
            (is_host, source.source.map(std::borrow::Cow::into_owned), frame.current_line())
        })
    };
    let found = place(1).and_then(|found| if found.0 { place(2) } else { Some(found) });
    if let Some((_, Some(source), Some(line))) = found {
        located.raw_set("source", source)?;
        located.raw_set("line", line)?;
    }
    Ok(located)
}

/// Returns the error that ended a script, from the result of [`locate`].
pub(super) fn to_error(located: &Value, sha: &str) -> CommandError {
    let Value::Table(located) = located else {
        return CommandError::general("the script failed, and so did its error handler");
    };
    let text: mlua::Result<String> = located.raw_get("err");
    let text = text.unwrap_or_else(|error| format!("ERR {error}"));
    let place: (mlua::Result<String>, mlua::Result<usize>) =
        (located.raw_get("source"), located.raw_get("line"));
    CommandError::Other(match place {
        (Ok(source), Ok(line)) => format!("{text} script: {sha}, on {source}:{line}."),
        _ => text,
    })
}

/// Returns the text of an error, with the code first.
fn text(error: &Value) -> mlua::Result<Vec<u8>> {
    let message = match error {
        Value::Error(error) => match error.downcast_ref() {
            Some(Raised::Command(error)) => return Ok(error.to_string().into_bytes()),
            Some(Raised::Message(message)) => message.clone().into_bytes(),
            None => error.to_string().into_bytes(),
        },
        Value::Table(table) => {
            return Ok(match table.raw_get("err")? {
                Value::String(text) => text.as_bytes().to_vec(),
                _ => b"ERR unknown error".to_vec(),
            });
        }
        Value::String(message) => message.as_bytes().to_vec(),
        Value::Integer(integer) => integer.to_string().into_bytes(),
        Value::Number(number) => number::general(*number, 14).into_bytes(),
        Value::Boolean(boolean) => boolean.to_string().into_bytes(),
        other => other.type_name().as_bytes().to_vec(),
    };
    Ok([b"ERR ", &message[..]].concat())
}
