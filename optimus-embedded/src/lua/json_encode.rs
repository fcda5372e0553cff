//! `cjson.encode`: converts Lua values to JSON, by the rules of the library that Redis ships.

use mlua::{Lua, LuaString, MultiValue, Table, Value};

use super::{convert, failure};
use crate::number;

const MAX_DEPTH: usize = 1000;
/// The length up to which an array may have gaps. A longer array may have gaps only if at least
/// half of it is filled.
const GAPS_ALLOWED_BELOW: usize = 10;

/// The function `cjson.encode`.
pub(super) fn encode(lua: &Lua, arguments: MultiValue) -> mlua::Result<LuaString> {
    if arguments.len() != 1 {
        return Err(failure::raise(lua, "bad argument #1 to 'encode' (expected 1 argument)"));
    }
    match document(&arguments[0]) {
        Ok(json) => lua.create_string(json),
        Err(reason) => Err(failure::raise(lua, reason)),
    }
}

/// A table that is being written.
///
/// The open tables are in a list, because a thousand levels of calls are too many for the stack of
/// a thread.
struct Open {
    is_array: bool,
    /// The entries that are not written yet. In an object, each entry has its name.
    items: std::vec::IntoIter<(Value, Value)>,
}

fn document(value: &Value) -> Result<Vec<u8>, String> {
    let mut json = Vec::new();
    let mut open = Vec::new();
    open.extend(begin(&mut json, value, 0)?);
    while let Some(table) = open.last_mut() {
        let Some((name, item)) = table.items.next() else {
            json.push(if table.is_array { b']' } else { b'}' });
            open.pop();
            continue;
        };
        if !matches!(json.last(), Some(b'[' | b'{')) {
            json.push(b',');
        }
        if !table.is_array {
            write_name(&mut json, &name)?;
        }
        let inner = begin(&mut json, &item, open.len())?;
        open.extend(inner);
    }
    Ok(json)
}

/// Writes a value. Of a table, it writes only the opening bracket.
fn begin(json: &mut Vec<u8>, value: &Value, depth: usize) -> Result<Option<Open>, String> {
    match value {
        Value::Nil => json.extend(b"null"),
        null if *null == Value::NULL => json.extend(b"null"),
        Value::Boolean(boolean) => json.extend(boolean.to_string().as_bytes()),
        Value::Integer(_) | Value::Number(_) => json.extend(number_text(value)?),
        Value::String(string) => write_string(json, &string.as_bytes()),
        Value::Table(_) if depth == MAX_DEPTH => {
            return Err(format!("Cannot serialise, excessive nesting ({})", depth + 1));
        }
        Value::Table(table) => {
            let open = read(table)?;
            json.push(if open.is_array { b'[' } else { b'{' });
            return Ok(Some(open));
        }
        other => return Err(format!("Cannot serialise {}: type not supported", other.type_name())),
    }
    Ok(None)
}

/// Returns the entries of a table in the order in which they are written.
fn read(table: &Table) -> Result<Open, String> {
    let entries: mlua::Result<Vec<(Value, Value)>> = table.pairs().collect();
    let entries = entries.map_err(|error| error.to_string())?;
    let Some(len) = array_len(&entries)? else {
        return Ok(Open { is_array: false, items: entries.into_iter() });
    };
    let items: mlua::Result<Vec<(Value, Value)>> =
        (1..=len).map(|index| Ok((Value::Nil, table.raw_get(index)?))).collect();
    Ok(Open { is_array: true, items: items.map_err(|error| error.to_string())?.into_iter() })
}

/// Returns the length of a table that has only positive whole numbers as keys. An empty table is an
/// object.
fn array_len(entries: &[(Value, Value)]) -> Result<Option<usize>, String> {
    let mut len = 0;
    for (key, _) in entries {
        let Value::Integer(index) = key else { return Ok(None) };
        let Ok(index @ 1..) = usize::try_from(*index) else { return Ok(None) };
        len = len.max(index);
    }
    if len > GAPS_ALLOWED_BELOW && len > entries.len() * 2 {
        return Err("Cannot serialise table: excessively sparse array".to_owned());
    }
    Ok((len > 0).then_some(len))
}

/// Writes a number with 14 significant digits, if JSON can express it.
fn number_text(value: &Value) -> Result<Vec<u8>, String> {
    let number = convert::double(value).filter(|number| number.is_finite());
    let number = number.ok_or("Cannot serialise number: must not be NaN or Inf")?;
    Ok(number::general(number, 14).into_bytes())
}

fn write_name(json: &mut Vec<u8>, name: &Value) -> Result<(), String> {
    match name {
        Value::String(name) => write_string(json, &name.as_bytes()),
        Value::Integer(_) | Value::Number(_) => write_string(json, &number_text(name)?),
        other => {
            let kind = other.type_name();
            return Err(format!("Cannot serialise {kind}: table key must be a number or string"));
        }
    }
    json.push(b':');
    Ok(())
}

fn write_string(json: &mut Vec<u8>, bytes: &[u8]) {
    json.push(b'"');
    for &byte in bytes {
        match byte {
            b'"' | b'\\' | b'/' => json.extend([b'\\', byte]),
            0x08 => json.extend(b"\\b"),
            0x0c => json.extend(b"\\f"),
            b'\n' => json.extend(b"\\n"),
            b'\r' => json.extend(b"\\r"),
            b'\t' => json.extend(b"\\t"),
            0..=0x1f | 0x7f => json.extend(format!("\\u{byte:04x}").as_bytes()),
            _ => json.push(byte),
        }
    }
    json.push(b'"');
}
