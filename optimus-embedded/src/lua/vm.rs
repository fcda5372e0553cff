//! The Lua VM with its compiled scripts.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, MultiValue, StdLib, Table, Value};

use super::{convert, failure, library, session::Session};
use crate::commands::Outcome;
use crate::error::CommandError;
use crate::keyspace::Keyspace;

/// A Lua 5.1 VM that lives as long as its store.
pub(crate) struct Vm {
    lua: Lua,
    /// The globals of scripts.
    environment: Table,
    /// The table that provides `KEYS` and `ARGV` to the environment.
    base: Table,
    /// The table behind the global `redis`.
    redis: Table,
    xpcall: Function,
    on_error: Function,
    /// Compiled scripts by the SHA-1 of their text, in lower-case hex.
    scripts: HashMap<String, Function>,
}

impl Vm {
    pub(crate) fn new() -> Self {
        Self::build().expect("a new VM has room for its own libraries")
    }

    fn build() -> mlua::Result<Self> {
        let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH;
        let lua = Lua::new_with(libraries, mlua::LuaOptions::default())?;
        let library::Library { environment, base, redis } = library::install(&lua)?;
        let xpcall = lua.globals().raw_get("xpcall")?;
        let on_error = lua.create_function(failure::locate)?;
        let scripts = HashMap::new();
        Ok(Self { lua, environment, base, redis, xpcall, on_error, scripts })
    }

    /// Compiles a script unless it is already compiled, and returns its SHA-1.
    pub(crate) fn load(&mut self, body: &[u8]) -> Result<String, CommandError> {
        let sha = sha1_smol::Sha1::from(body).digest().to_string();
        if self.knows(&sha) {
            return Ok(sha);
        }
        if body.starts_with(b"#!") {
            return Err(CommandError::unimplemented(b"script shebang"));
        }
        let chunk = self.lua.load(body).set_name(failure::CHUNK_NAME).set_mode(ChunkMode::Text);
        let function = chunk.set_environment(self.environment.clone()).into_function();
        let function = function.map_err(|error| {
            let message = match error {
                mlua::Error::SyntaxError { message, .. } => message,
                other => other.to_string(),
            };
            CommandError::general(format!("Error compiling script (new function): {message}"))
        })?;
        self.scripts.insert(sha.clone(), function);
        Ok(sha)
    }

    pub(crate) fn knows(&self, sha: &str) -> bool {
        self.scripts.contains_key(sha)
    }

    pub(crate) fn flush(&mut self) {
        self.scripts.clear();
    }

    /// Runs a compiled script to its end.
    pub(crate) fn run(
        &self,
        keyspace: &mut Keyspace,
        sha: &str,
        keys: &[Vec<u8>],
        values: &[Vec<u8>],
    ) -> Outcome {
        let script = self.scripts.get(sha).ok_or(CommandError::NoScript)?;
        self.set_arguments(keys, values).map_err(CommandError::general)?;
        #[cfg(feature = "simulation")]
        if let Some(observer) = &mut keyspace.observer {
            observer.begins(sha);
        }
        match self.invoke(keyspace, script).map_err(CommandError::general)? {
            (true, result) => convert::to_reply(&result),
            (false, error) => Err(failure::to_error(&error, sha)),
        }
    }

    fn set_arguments(&self, keys: &[Vec<u8>], values: &[Vec<u8>]) -> mlua::Result<()> {
        for (name, arguments) in [("KEYS", keys), ("ARGV", values)] {
            let table = self.lua.create_table_with_capacity(arguments.len(), 0)?;
            for argument in arguments {
                // Lua's stack has room for about 8,000 values, so none stays outside the table.
                table.raw_push(self.lua.create_string(argument)?)?;
            }
            self.base.raw_set(name, table)?;
        }
        Ok(())
    }

    /// Runs the script. Returns whether it succeeded, and the value that it returned or raised.
    fn invoke(&self, keyspace: &mut Keyspace, script: &Function) -> mlua::Result<(bool, Value)> {
        let session = RefCell::new(Session::new(keyspace));
        self.lua.scope(|scope| {
            let call = |lua: &Lua, arguments: MultiValue| {
                #[cfg(feature = "simulation")]
                session.borrow_mut().set_line(|| failure::line_of_caller(lua));
                let reply = session.borrow_mut().call(&arguments);
                convert::to_lua(lua, &reply.map_err(failure::Raised::Command)?)
            };
            let pcall = |lua: &Lua, arguments: MultiValue| {
                let reply = session.borrow_mut().call(&arguments);
                convert::to_lua(lua, &reply.into())
            };
            self.redis.raw_set("call", scope.create_function(call)?)?;
            self.redis.raw_set("pcall", scope.create_function(pcall)?)?;
            self.xpcall.call((script, &self.on_error))
        })
    }
}

impl fmt::Debug for Vm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Vm").field("scripts", &self.scripts.len()).finish_non_exhaustive()
    }
}
