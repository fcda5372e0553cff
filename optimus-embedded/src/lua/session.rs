//! The state of one run of a script.

use mlua::{MultiValue, Value};

use super::convert;
#[cfg(feature = "simulation")]
use crate::commands::Effect;
use crate::commands::{self, Outcome, Run};
use crate::error::CommandError;
use crate::keyspace::Keyspace;
use crate::number;

/// The state of a script run, from the first call to the last.
pub(super) struct Session<'a> {
    keyspace: &'a mut Keyspace,
    /// Whether a writing command was called. After such a call, a full store refuses no command of
    /// the script.
    wrote: bool,
    /// The line of the call.
    #[cfg(feature = "simulation")]
    line: usize,
}

impl<'a> Session<'a> {
    pub(super) fn new(keyspace: &'a mut Keyspace) -> Self {
        Self {
            keyspace,
            wrote: false,
            #[cfg(feature = "simulation")]
            line: 0,
        }
    }

    /// Sets the line of the next call.
    #[cfg(feature = "simulation")]
    pub(super) fn set_line(&mut self, line: impl FnOnce() -> usize) {
        if self.keyspace.observer.is_some() {
            self.line = line();
        }
    }

    /// Shows the call to the observer of the store. Fails if the observer returns an error.
    #[cfg(feature = "simulation")]
    fn observe(&mut self, effect: Effect, arguments: &[Vec<u8>]) -> Result<(), CommandError> {
        let Some(observer) = &mut self.keyspace.observer else { return Ok(()) };
        let (line, writes, wrote) = (self.line, effect.writes(), self.wrote);
        let call = crate::simulation::RedisCall { line, writes, wrote, arguments };
        observer.before(&call).map_or(Ok(()), |text| Err(CommandError::Other(text)))
    }

    /// Runs the command of a `redis.call`.
    pub(super) fn call(&mut self, arguments: &MultiValue) -> Outcome {
        if arguments.is_empty() {
            return Err(CommandError::general(
                "Please specify at least one argument for this redis lib call",
            ));
        }
        let arguments: Option<Vec<Vec<u8>>> = arguments.iter().map(argument).collect();
        let arguments = arguments.ok_or_else(|| {
            CommandError::general("Lua redis lib command arguments must be strings or integers")
        })?;
        let command = commands::find(&arguments)?;
        let Run::Keyspace(run) = command.run else {
            return Err(CommandError::general("This Redis command is not allowed from script"));
        };
        if !command.arity.accepts(arguments.len()) {
            return Err(CommandError::general(
                "Wrong number of args calling Redis command from script",
            ));
        }
        if command.effect.grows() && self.keyspace.full && !self.wrote {
            return Err(CommandError::OutOfMemory);
        }
        #[cfg(feature = "simulation")]
        self.observe(command.effect, &arguments)?;
        self.wrote |= command.effect.writes();
        run(self.keyspace, &arguments)
    }
}

/// Returns the bytes of a Lua value as an argument of a command.
fn argument(value: &Value) -> Option<Vec<u8>> {
    /// The greatest value for which `%.17g` writes every digit of a whole number.
    const PLAIN: mlua::Integer = 100_000_000_000_000_000;
    match value {
        Value::String(string) => Some(string.as_bytes().to_vec()),
        Value::Integer(integer) if (-PLAIN..PLAIN).contains(integer) => {
            Some(integer.to_string().into_bytes())
        }
        Value::Integer(_) | Value::Number(_) => {
            convert::double(value).map(|number| number::general(number, 17).into_bytes())
        }
        _ => None,
    }
}
