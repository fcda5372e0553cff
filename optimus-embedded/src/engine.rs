//! The keyspace with its Lua VM. A store keeps both under its lock.

use crate::clock::Clock;
use crate::commands::{self, Command, Run};
use crate::connection::Client;
use crate::error::CommandError;
use crate::keyspace::Keyspace;
use crate::lua::Vm;
use crate::reply::Reply;

/// One command: its name and its arguments.
pub(crate) type Arguments = Vec<Vec<u8>>;

/// The state of a store.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) keyspace: Keyspace,
    pub(crate) vm: Vm,
}

impl Engine {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { keyspace: Keyspace::new(clock), vm: Vm::new() }
    }

    /// Runs one command to its end. A command that would wait replies nil instead.
    pub(crate) fn execute(&mut self, client: &Client, arguments: &[Vec<u8>]) -> Reply {
        self.keyspace.begin();
        let reply =
            self.admit(arguments).and_then(|command| self.run(command, client, arguments)).into();
        self.keyspace.serve_waiters();
        reply
    }

    /// Runs commands as one transaction. If one of them is refused before the start, no command
    /// runs. Otherwise all commands run, even if some of them fail.
    pub(crate) fn transact(
        &mut self,
        client: &Client,
        batch: &[Arguments],
    ) -> Result<Vec<Reply>, CommandError> {
        self.keyspace.begin();
        let commands: Result<Vec<&Command>, CommandError> =
            batch.iter().map(|arguments| self.admit(arguments)).collect();
        let commands = commands.map_err(|_| CommandError::Aborted)?;
        let replies = commands
            .into_iter()
            .zip(batch)
            .map(|(command, arguments)| self.run(command, client, arguments).into())
            .collect();
        self.keyspace.serve_waiters();
        Ok(replies)
    }

    /// Checks a command before it runs or is queued.
    pub(crate) fn admit(&self, arguments: &[Vec<u8>]) -> Result<&'static Command, CommandError> {
        let command = commands::find(arguments)?;
        if !command.arity.accepts(arguments.len()) {
            return Err(CommandError::Arity(command.name));
        }
        if self.keyspace.full && command.effect.grows() {
            return Err(CommandError::OutOfMemory);
        }
        Ok(command)
    }

    fn run(
        &mut self,
        command: &Command,
        client: &Client,
        arguments: &[Vec<u8>],
    ) -> Result<Reply, CommandError> {
        match command.run {
            Run::Keyspace(run) | Run::Blocking(run) => run(&mut self.keyspace, arguments),
            Run::Engine(run) => run(self, arguments),
            Run::Client(run) => run(client, arguments),
        }
    }
}
