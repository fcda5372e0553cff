//! The commands, with one family in each file, and the table that finds them.

#![expect(
    clippy::unnecessary_wraps,
    reason = "all commands have the same signature, for the table"
)]

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::connection::Client;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::keyspace::Keyspace;
use crate::reply::Reply;

mod hashes;
mod keys;
pub(crate) mod lists;
mod scan;
mod scripting;
mod server;
mod sets;
mod strings;
mod zrange;
mod zsets;

/// The reply of a command, or the reason why it was refused.
pub(crate) type Outcome = Result<Reply, CommandError>;

/// An implemented command.
pub(crate) struct Command {
    /// The name in lower case, as in error texts.
    pub(crate) name: &'static str,
    pub(crate) arity: Arity,
    pub(crate) effect: Effect,
    pub(crate) run: Run,
}

/// The number of arguments of a command, including its name.
#[derive(Clone, Copy)]
pub(crate) enum Arity {
    Exactly(usize),
    AtLeast(usize),
}

/// What a command may change in the keyspace.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Effect {
    Reads,
    /// Writes, but needs no memory: a removal, or a change of an expiry.
    Writes,
    /// Writes and needs memory, so it is refused if the store is full.
    Grows,
}

/// How a command runs. Each kind of function gets the arguments, including the name as the first
/// one.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    Keyspace(fn(&mut Keyspace, &[Vec<u8>]) -> Outcome),
    /// Replies nil if the command would have to wait. In this case, the connection waits. Not
    /// allowed in scripts.
    Blocking(fn(&mut Keyspace, &[Vec<u8>]) -> Outcome),
    /// Not allowed in scripts.
    Engine(fn(&mut Engine, &[Vec<u8>]) -> Outcome),
    /// Not allowed in scripts.
    Client(fn(&Client, &[Vec<u8>]) -> Outcome),
}

impl Arity {
    pub(crate) fn accepts(self, arguments: usize) -> bool {
        match self {
            Self::Exactly(count) => arguments == count,
            Self::AtLeast(count) => arguments >= count,
        }
    }
}

impl Effect {
    pub(crate) fn writes(self) -> bool {
        self != Self::Reads
    }

    pub(crate) fn grows(self) -> bool {
        self == Self::Grows
    }
}

impl Command {
    const fn new(name: &'static str, arity: Arity, effect: Effect, run: Run) -> Self {
        Self { name, arity, effect, run }
    }
}

const FAMILIES: [&[Command]; 8] = [
    strings::COMMANDS,
    keys::COMMANDS,
    hashes::COMMANDS,
    lists::COMMANDS,
    sets::COMMANDS,
    zsets::COMMANDS,
    server::COMMANDS,
    scripting::COMMANDS,
];

static BY_NAME: LazyLock<HashMap<&'static [u8], &'static Command>> = LazyLock::new(|| {
    let all = FAMILIES.into_iter().flatten();
    all.map(|command| (command.name.as_bytes(), command)).collect()
});

/// Returns the command that the first argument names, in upper or lower case.
pub(crate) fn find(arguments: &[Vec<u8>]) -> Result<&'static Command, CommandError> {
    let name = arguments.first().map_or(&[][..], Vec::as_slice);
    BY_NAME
        .get(name.to_ascii_lowercase().as_slice())
        .copied()
        .ok_or_else(|| CommandError::unimplemented(name))
}

/// Returns whether the command waits if it has no reply yet.
pub(crate) fn blocks(arguments: &[Vec<u8>]) -> bool {
    find(arguments).is_ok_and(|command| matches!(command.run, Run::Blocking(_)))
}

/// Returns the option or subcommand in upper case, so that it can be compared with literals.
fn upper(argument: &[u8]) -> Vec<u8> {
    argument.to_ascii_uppercase()
}

/// Returns the position of a possibly negative index in a sequence. Returns `None` if the position
/// is before the start.
fn position(index: i64, len: usize) -> Option<usize> {
    if index >= 0 {
        Some(usize::try_from(index).unwrap_or(usize::MAX))
    } else {
        let from_end = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
        len.checked_sub(from_end)
    }
}

/// Returns the positions from `start` to `stop`, both inclusive and possibly negative, clamped to
/// the sequence.
fn span(start: i64, stop: i64, len: usize) -> std::ops::Range<usize> {
    let start = position(start, len).unwrap_or(0);
    let end = position(stop, len).map_or(0, |stop| stop.saturating_add(1)).min(len);
    if start < end { start..end } else { 0..0 }
}
