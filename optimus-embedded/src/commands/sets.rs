//! The commands of sets.

use super::Arity::{AtLeast, Exactly};
use super::Effect::{Grows, Reads, Writes};
use super::Run::Keyspace as On;
use super::scan::{self, Cursor, Scan};
use super::{Command, Outcome};
use crate::error::CommandError;
use crate::keyspace::Keyspace;
use crate::number;
use crate::reply::Reply;
use crate::value::Set;

pub(super) const COMMANDS: &[Command] = &[
    Command::new("sadd", AtLeast(3), Grows, On(sadd)),
    Command::new("srem", AtLeast(3), Writes, On(srem)),
    Command::new("scard", Exactly(2), Reads, On(scard)),
    Command::new("sismember", Exactly(3), Reads, On(sismember)),
    Command::new("smismember", AtLeast(3), Reads, On(smismember)),
    Command::new("smembers", Exactly(2), Reads, On(smembers)),
    Command::new("sscan", AtLeast(3), Reads, On(sscan)),
    Command::new("spop", AtLeast(2), Writes, On(spop)),
];

fn sadd(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let added = keyspace.upsert(&arguments[1], |set: &mut Set| {
        arguments[2..].iter().filter(|member| set.insert((*member).clone())).count()
    })?;
    Ok(Reply::count(added))
}

fn srem(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let removed = keyspace.edit(&arguments[1], |set: &mut Set| {
        arguments[2..].iter().filter(|member| set.swap_remove(*member)).count()
    })?;
    Ok(Reply::count(removed.unwrap_or(0)))
}

fn scard(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(Reply::count(keyspace.read::<Set>(&arguments[1])?.map_or(0, Set::len)))
}

fn sismember(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let set = keyspace.read::<Set>(&arguments[1])?;
    Ok(Reply::from(set.is_some_and(|set| set.contains(&arguments[2]))))
}

fn smismember(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let set = keyspace.read::<Set>(&arguments[1])?;
    let is_member = |member| Reply::from(set.is_some_and(|set| set.contains(member)));
    Ok(Reply::Array(arguments[2..].iter().map(is_member).collect()))
}

fn smembers(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(Reply::bulks(keyspace.read::<Set>(&arguments[1])?.into_iter().flatten()))
}

fn sscan(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let cursor = Cursor::parse(&arguments[2])?;
    let Some(set) = keyspace.read::<Set>(&arguments[1])? else { return Ok(scan::nothing()) };
    let scan = Scan::parse(cursor, &arguments[3..])?;
    Ok(scan.over(set.len(), |position, found| {
        let member = set.get_index(position);
        found.extend(member.filter(|member| scan.wants(member)).map(Reply::bulk));
    }))
}

fn spop(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let count = match &arguments[2..] {
        [] => None,
        [count] => Some(number::count(count)?),
        _ => return Err(CommandError::Syntax),
    };
    let mut rng = keyspace.rng.fork();
    let popped = keyspace.edit(&arguments[1], |set: &mut Set| {
        let draws = count.unwrap_or(1).min(set.len());
        let draw = |_| set.swap_remove_index(rng.usize(..set.len()));
        (0..draws).map_while(draw).collect::<Vec<_>>()
    })?;
    let popped = popped.unwrap_or_default();
    Ok(if count.is_some() { Reply::bulks(popped) } else { Reply::bulk_or_nil(popped.first()) })
}
