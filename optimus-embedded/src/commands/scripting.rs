//! The commands for scripts: EVAL, EVALSHA and SCRIPT.

use super::Arity::AtLeast;
use super::Effect::Reads;
use super::Run::Engine as On;
use super::{Command, Outcome, upper};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::number;
use crate::reply::Reply;

// These commands count as reading, because the refusal comes only when a script calls a writing
// command.
pub(super) const COMMANDS: &[Command] = &[
    Command::new("eval", AtLeast(3), Reads, On(eval)),
    Command::new("evalsha", AtLeast(3), Reads, On(evalsha)),
    Command::new("script", AtLeast(2), Reads, On(script)),
];

fn eval(engine: &mut Engine, arguments: &[Vec<u8>]) -> Outcome {
    let (keys, values) = keys_and_values(arguments)?;
    let sha = engine.vm.load(&arguments[1])?;
    engine.vm.run(&mut engine.keyspace, &sha, keys, values)
}

fn evalsha(engine: &mut Engine, arguments: &[Vec<u8>]) -> Outcome {
    let (keys, values) = keys_and_values(arguments)?;
    let sha = String::from_utf8_lossy(&arguments[1]).to_ascii_lowercase();
    engine.vm.run(&mut engine.keyspace, &sha, keys, values)
}

type KeysAndValues<'a> = (&'a [Vec<u8>], &'a [Vec<u8>]);

/// Splits the arguments after the number of keys.
fn keys_and_values(arguments: &[Vec<u8>]) -> Result<KeysAndValues<'_>, CommandError> {
    let keys = number::integer(&arguments[2])?;
    let keys = usize::try_from(keys)
        .map_err(|_| CommandError::general("Number of keys can't be negative"))?;
    arguments[3..]
        .split_at_checked(keys)
        .ok_or_else(|| CommandError::general("Number of keys can't be greater than number of args"))
}

fn script(engine: &mut Engine, arguments: &[Vec<u8>]) -> Outcome {
    match (upper(&arguments[1]).as_slice(), &arguments[2..]) {
        (b"LOAD", [body]) => Ok(Reply::bulk(engine.vm.load(body)?)),
        (b"LOAD", _) => Err(CommandError::Arity("script|load")),
        (b"EXISTS", shas @ [_, ..]) => {
            let known =
                |sha: &Vec<u8>| engine.vm.knows(&String::from_utf8_lossy(sha).to_ascii_lowercase());
            Ok(Reply::Array(shas.iter().map(|sha| Reply::from(known(sha))).collect()))
        }
        (b"EXISTS", []) => Err(CommandError::Arity("script|exists")),
        (b"FLUSH", []) => {
            engine.vm.flush();
            Ok(Reply::ok())
        }
        (b"FLUSH", [how])
            if how.eq_ignore_ascii_case(b"SYNC") || how.eq_ignore_ascii_case(b"ASYNC") =>
        {
            engine.vm.flush();
            Ok(Reply::ok())
        }
        (b"FLUSH", _) => Err(CommandError::general("SCRIPT FLUSH only support SYNC|ASYNC option")),
        (other, _) => Err(CommandError::unimplemented(&[b"SCRIPT ", other].concat())),
    }
}
