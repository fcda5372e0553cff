//! The globals of a script. All of them are read-only.

use std::sync::{Arc, Mutex, PoisonError};

use mlua::{Function, Lua, LuaString, MultiValue, Table, Value};

use super::{convert, failure, json_decode, json_encode};
use crate::error::CommandError;

/// The functions of Lua's base library that scripts may use. `rawset` is not among them, because it
/// could circumvent the locks.
const BASE: [&str; 15] = [
    "_VERSION",
    "assert",
    "error",
    "getmetatable",
    "ipairs",
    "next",
    "pairs",
    "rawequal",
    "rawget",
    "select",
    "setmetatable",
    "tonumber",
    "tostring",
    "type",
    "unpack",
];

const LOG_LEVELS: [(&str, i64); 4] =
    [("LOG_DEBUG", 0), ("LOG_VERBOSE", 1), ("LOG_NOTICE", 2), ("LOG_WARNING", 3)];

/// The tables that each run of a script uses.
pub(super) struct Library {
    pub(super) environment: Table,
    pub(super) base: Table,
    pub(super) redis: Table,
}

/// Builds the globals of scripts.
///
/// Lua 5.1 has no read-only tables. So the environment is an empty table in front of the real one.
/// Every assignment then creates a new name, and the metatable refuses that. The libraries are
/// locked in the same way.
pub(super) fn install(lua: &Lua) -> mlua::Result<Library> {
    let globals = lua.globals();
    let base = lua.create_table()?;
    for name in BASE {
        base.raw_set(name, globals.raw_get::<Value>(name)?)?;
    }
    let (pcall, xpcall, format): (Function, Function, Function) =
        lua.load(include_str!("prelude.lua")).set_name("=prelude").call((
            lua.create_function(failure::to_caught)?,
            lua.create_function(failure::to_handled)?,
        ))?;
    base.raw_set("pcall", pcall)?;
    base.raw_set("xpcall", xpcall)?;

    let read_only = lua.create_function(|lua, _: MultiValue| -> mlua::Result<()> {
        Err(failure::raise(lua, "Attempt to modify a readonly table"))
    })?;
    let math: Table = globals.raw_get("math")?;
    seed_random(lua, &math)?;
    let string: Table = globals.raw_get("string")?;
    string.raw_set("format", format)?;
    let redis = redis(lua)?;
    let libraries = [
        ("math", math),
        ("string", string),
        ("table", globals.raw_get("table")?),
        ("cjson", cjson(lua)?),
        ("redis", redis.clone()),
    ];
    for (name, library) in libraries {
        base.raw_set(name, locked(lua, library, &read_only)?)?;
    }
    base.set_metatable(Some(lua.create_table_from([(
        "__index",
        lua.create_function(|lua, (_, name): (Table, Value)| -> mlua::Result<Value> {
            let name = name.to_string().unwrap_or_default();
            let message = "Script attempted to access nonexistent global variable";
            Err(failure::raise(lua, format!("{message} '{name}'")))
        })?,
    )])?))?;
    let environment = locked(lua, base.clone(), &read_only)?;
    base.raw_set("_G", &environment)?;
    Ok(Library { environment, base, redis })
}

/// Returns a table that allows reads of `table`, but no writes.
fn locked(lua: &Lua, table: Table, read_only: &Function) -> mlua::Result<Table> {
    let metatable = lua.create_table()?;
    metatable.raw_set("__index", table)?;
    metatable.raw_set("__newindex", read_only)?;
    metatable.raw_set("__metatable", false)?;
    let front = lua.create_table()?;
    front.set_metatable(Some(metatable))?;
    Ok(front)
}

/// Returns the table `redis`, without `call` and `pcall`, which each run provides.
fn redis(lua: &Lua) -> mlua::Result<Table> {
    let redis = lua.create_table()?;
    redis.raw_set("sha1hex", lua.create_function(sha1hex)?)?;
    redis.raw_set("error_reply", lua.create_function(error_reply)?)?;
    redis.raw_set("status_reply", lua.create_function(status_reply)?)?;
    redis.raw_set("log", lua.create_function(log)?)?;
    // Since Redis 5, scripts are replicated by their effects, so this call does nothing.
    redis.raw_set("replicate_commands", lua.create_function(|_, ()| Ok(true))?)?;
    for (name, level) in LOG_LEVELS {
        redis.raw_set(name, level)?;
    }
    Ok(redis)
}

fn sha1hex(lua: &Lua, arguments: MultiValue) -> mlua::Result<String> {
    let [argument] = arguments.iter().collect::<Vec<_>>()[..] else {
        let misuse = CommandError::general("wrong number of arguments");
        return Err(failure::Raised::Command(misuse).into());
    };
    let bytes = lua.coerce_string(argument.clone())?;
    let digest =
        bytes.map_or_else(sha1_smol::Sha1::new, |bytes| sha1_smol::Sha1::from(&*bytes.as_bytes()));
    Ok(digest.digest().to_string())
}

/// Reads the one string argument of a function that returns an error table if it is misused.
fn only_string(arguments: &MultiValue) -> Option<&LuaString> {
    match (arguments.front(), arguments.len()) {
        (Some(Value::String(text)), 1) => Some(text),
        _ => None,
    }
}

fn error_reply(lua: &Lua, arguments: MultiValue) -> mlua::Result<Table> {
    let Some(text) = only_string(&arguments) else { return misused_reply(lua) };
    let text = text.as_bytes();
    let text = text.strip_prefix(b"-").unwrap_or(&text);
    // A single word is a message without a code.
    let coded = if text.contains(&b' ') { text.to_vec() } else { [b"ERR ", text].concat() };
    convert::error_table(lua, coded)
}

fn status_reply(lua: &Lua, arguments: MultiValue) -> mlua::Result<Table> {
    match only_string(&arguments) {
        Some(text) => convert::status_table(lua, text.as_bytes()),
        None => misused_reply(lua),
    }
}

fn misused_reply(lua: &Lua) -> mlua::Result<Table> {
    convert::error_table(lua, "ERR wrong number or type of arguments")
}

fn log(lua: &Lua, (level, words): (i64, mlua::Variadic<Value>)) -> mlua::Result<()> {
    let mut message = String::new();
    for word in words {
        let word = lua.coerce_string(word)?;
        message.push_str(&word.map(|word| word.to_string_lossy()).unwrap_or_default());
    }
    match level {
        0 => tracing::trace!("{message}"),
        1 => tracing::debug!("{message}"),
        2 => tracing::info!("{message}"),
        3 => tracing::warn!("{message}"),
        _ => return Err(failure::raise(lua, "Invalid log level.")),
    }
    Ok(())
}

fn cjson(lua: &Lua) -> mlua::Result<Table> {
    let cjson = lua.create_table()?;
    cjson.raw_set("null", Value::NULL)?;
    cjson.raw_set("encode", lua.create_function(json_encode::encode)?)?;
    cjson.raw_set("decode", lua.create_function(json_decode::decode)?)?;
    Ok(cjson)
}

/// Replaces C's random numbers, whose sequence the whole process shares, with random numbers of the
/// store.
fn seed_random(lua: &Lua, math: &Table) -> mlua::Result<()> {
    let rng = Arc::new(Mutex::new(fastrand::Rng::with_seed(0)));
    let seeded = rng.clone();
    let random = move |lua: &Lua, (low, high): (Option<i64>, Option<i64>)| {
        let mut rng = rng.lock().unwrap_or_else(PoisonError::into_inner);
        let (low, high) = match (low, high) {
            (None, _) => return Ok(Value::Number(rng.f64())),
            (Some(high), None) => (1, high),
            (Some(low), Some(high)) => (low, high),
        };
        if low > high {
            return Err(failure::raise(lua, "bad argument to 'random' (interval is empty)"));
        }
        Ok(Value::Integer(rng.i64(low..=high)))
    };
    let randomseed = move |_: &Lua, seed: i64| {
        seeded.lock().unwrap_or_else(PoisonError::into_inner).seed(seed.unsigned_abs());
        Ok(())
    };
    math.raw_set("random", lua.create_function(random)?)?;
    math.raw_set("randomseed", lua.create_function(randomseed)?)
}
