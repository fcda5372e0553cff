//! The commands of lists, including BLPOP, the only blocking command.

use std::time::Duration;

use super::Arity::{AtLeast, Exactly};
use super::Effect::{Grows, Reads, Writes};
use super::Run::{Blocking, Keyspace as On};
use super::{Command, Outcome, position, span};
use crate::error::CommandError;
use crate::keyspace::Keyspace;
use crate::number;
use crate::reply::Reply;
use crate::value::{Bytes, List};

pub(super) const COMMANDS: &[Command] = &[
    Command::new("lpush", AtLeast(3), Grows, On(lpush)),
    Command::new("rpush", AtLeast(3), Grows, On(rpush)),
    Command::new("lpop", AtLeast(2), Writes, On(lpop)),
    Command::new("rpop", AtLeast(2), Writes, On(rpop)),
    Command::new("lrange", Exactly(4), Reads, On(lrange)),
    Command::new("ltrim", Exactly(4), Writes, On(ltrim)),
    Command::new("llen", Exactly(2), Reads, On(llen)),
    Command::new("lindex", Exactly(3), Reads, On(lindex)),
    Command::new("lrem", Exactly(4), Writes, On(lrem)),
    Command::new("lset", Exactly(4), Grows, On(lset)),
    Command::new("lpos", AtLeast(3), Reads, On(lpos)),
    Command::new("blpop", AtLeast(3), Writes, Blocking(blpop)),
];

fn lpush(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    push(keyspace, arguments, List::push_front)
}

fn rpush(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    push(keyspace, arguments, List::push_back)
}

fn push(keyspace: &mut Keyspace, arguments: &[Vec<u8>], one: fn(&mut List, Bytes)) -> Outcome {
    let len = keyspace.upsert(&arguments[1], |list: &mut List| {
        arguments[2..].iter().for_each(|element| one(list, element.clone()));
        list.len()
    })?;
    keyspace.waiters.signal(&arguments[1]);
    Ok(Reply::count(len))
}

fn lpop(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    pop(keyspace, arguments, "lpop", List::pop_front)
}

fn rpop(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    pop(keyspace, arguments, "rpop", List::pop_back)
}

fn pop(
    keyspace: &mut Keyspace,
    arguments: &[Vec<u8>],
    name: &'static str,
    one: fn(&mut List) -> Option<Bytes>,
) -> Outcome {
    let key = &arguments[1];
    match &arguments[2..] {
        [] => Ok(Reply::bulk_or_nil(keyspace.edit(key, one)?.flatten())),
        [count] => {
            let count = number::count(count)?;
            let popped = keyspace
                .edit(key, |list: &mut List| Reply::bulks((0..count).map_while(|_| one(list))))?;
            Ok(popped.unwrap_or(Reply::Nil))
        }
        _ => Err(CommandError::Arity(name)),
    }
}

fn lrange(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let (start, stop) = (number::integer(&arguments[2])?, number::integer(&arguments[3])?);
    let Some(list) = keyspace.read::<List>(&arguments[1])? else {
        return Ok(Reply::Array(Vec::new()));
    };
    Ok(Reply::bulks(list.range(span(start, stop, list.len()))))
}

fn ltrim(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let (start, stop) = (number::integer(&arguments[2])?, number::integer(&arguments[3])?);
    keyspace.edit(&arguments[1], |list: &mut List| {
        let kept = span(start, stop, list.len());
        list.truncate(kept.end);
        list.drain(..kept.start);
    })?;
    Ok(Reply::ok())
}

fn llen(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(Reply::count(keyspace.read::<List>(&arguments[1])?.map_or(0, List::len)))
}

fn lindex(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let Some(list) = keyspace.read::<List>(&arguments[1])? else { return Ok(Reply::Nil) };
    let index = number::integer(&arguments[2])?;
    Ok(Reply::bulk_or_nil(position(index, list.len()).and_then(|at| list.get(at))))
}

fn lrem(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let count = number::integer(&arguments[2])?;
    let removed = keyspace.edit(&arguments[1], |list: &mut List| {
        let len = list.len();
        let limit = if count == 0 { u64::MAX } else { count.unsigned_abs() };
        let mut left = limit;
        let mut keep = |element: &Bytes| {
            let gone = left > 0 && *element == arguments[3];
            left -= u64::from(gone);
            !gone
        };
        if count < 0 {
            // The count starts at the tail, so the search begins there.
            let mut kept: List =
                std::mem::take(list).into_iter().rev().filter(|e| keep(e)).collect();
            kept.make_contiguous().reverse();
            *list = kept;
        } else {
            list.retain(keep);
        }
        len - list.len()
    })?;
    Ok(Reply::count(removed.unwrap_or(0)))
}

fn lset(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let set = keyspace.edit(&arguments[1], |list: &mut List| {
        let index = number::integer(&arguments[2])?;
        let element = position(index, list.len()).and_then(|at| list.get_mut(at));
        element.ok_or(CommandError::Index)?.clone_from(&arguments[3]);
        Ok(Reply::ok())
    })?;
    set.unwrap_or(Err(CommandError::NoSuchKey))
}

fn lpos(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    if let Some(option) = arguments.get(3) {
        return Err(CommandError::unimplemented(&[b"LPOS ", &option[..]].concat()));
    }
    let list = keyspace.read::<List>(&arguments[1])?;
    let at = list.and_then(|list| list.iter().position(|element| *element == arguments[2]));
    Ok(at.map_or(Reply::Nil, Reply::count))
}

/// Pops from the first list that has an element. Replies nil if all lists are empty.
fn blpop(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let (keys, _) = blocking_arguments(arguments)?;
    for key in keys {
        if let Some(element) = keyspace.edit(key, List::pop_front)?.flatten() {
            return Ok(popped(key.clone(), element));
        }
    }
    Ok(Reply::Nil)
}

/// Returns the reply of a BLPOP that received an element.
pub(crate) fn popped(key: Bytes, element: Bytes) -> Reply {
    Reply::Array(vec![Reply::Bulk(key), Reply::Bulk(element)])
}

/// Returns the lists and the timeout of a BLPOP. Without a timeout, the BLPOP waits without a
/// limit.
pub(crate) fn blocking_arguments(
    arguments: &[Vec<u8>],
) -> Result<(&[Bytes], Option<Duration>), CommandError> {
    let [_, keys @ .., timeout] = arguments else { return Err(CommandError::Arity("blpop")) };
    let seconds = number::float(timeout)
        .ok_or_else(|| CommandError::general("timeout is not a float or out of range"))?;
    if seconds < 0.0 {
        return Err(CommandError::general("timeout is negative"));
    }
    let timeout = Duration::try_from_secs_f64(seconds)
        .map_err(|_| CommandError::general("timeout is out of range"))?;
    Ok((keys, (!timeout.is_zero()).then_some(timeout)))
}
