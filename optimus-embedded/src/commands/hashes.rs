//! The commands of hashes.

use super::Arity::{AtLeast, Exactly};
use super::Effect::{Grows, Reads, Writes};
use super::Run::Keyspace as On;
use super::scan::{self, Cursor, Scan};
use super::{Command, Outcome};
use crate::error::CommandError;
use crate::keyspace::Keyspace;
use crate::number;
use crate::reply::Reply;
use crate::value::{Bytes, Hash};

pub(super) const COMMANDS: &[Command] = &[
    Command::new("hget", Exactly(3), Reads, On(hget)),
    Command::new("hset", AtLeast(4), Grows, On(hset)),
    Command::new("hsetnx", Exactly(4), Grows, On(hsetnx)),
    Command::new("hmget", AtLeast(3), Reads, On(hmget)),
    Command::new("hdel", AtLeast(3), Writes, On(hdel)),
    Command::new("hexists", Exactly(3), Reads, On(hexists)),
    Command::new("hlen", Exactly(2), Reads, On(hlen)),
    Command::new("hgetall", Exactly(2), Reads, On(hgetall)),
    Command::new("hkeys", Exactly(2), Reads, On(hkeys)),
    Command::new("hvals", Exactly(2), Reads, On(hvals)),
    Command::new("hincrby", Exactly(4), Grows, On(hincrby)),
    Command::new("hstrlen", Exactly(3), Reads, On(hstrlen)),
    Command::new("hscan", AtLeast(3), Reads, On(hscan)),
    Command::new("hrandfield", AtLeast(2), Reads, On(hrandfield)),
];

/// Returns the field that the third argument names.
fn field<'a>(
    keyspace: &'a Keyspace,
    arguments: &[Vec<u8>],
) -> Result<Option<&'a Bytes>, CommandError> {
    let hash = keyspace.read::<Hash>(&arguments[1])?;
    Ok(hash.and_then(|hash| hash.get(&arguments[2])))
}

fn hget(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(Reply::bulk_or_nil(field(keyspace, arguments)?))
}

fn hexists(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(Reply::from(field(keyspace, arguments)?.is_some()))
}

fn hstrlen(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(Reply::count(field(keyspace, arguments)?.map_or(0, Vec::len)))
}

fn hmget(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let hash = keyspace.read::<Hash>(&arguments[1])?;
    let value = |field: &Vec<u8>| Reply::bulk_or_nil(hash.and_then(|hash| hash.get(field)));
    Ok(Reply::Array(arguments[2..].iter().map(value).collect()))
}

fn hset(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let pairs = arguments[2..].chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(CommandError::Arity("hset"));
    }
    let added = keyspace.upsert(&arguments[1], |hash: &mut Hash| {
        let is_new = |pair: &&[Vec<u8>]| hash.insert(pair[0].clone(), pair[1].clone()).is_none();
        pairs.filter(is_new).count()
    })?;
    Ok(Reply::count(added))
}

fn hsetnx(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    if field(keyspace, arguments)?.is_some() {
        return Ok(Reply::from(false));
    }
    keyspace.upsert(&arguments[1], |hash: &mut Hash| {
        hash.insert(arguments[2].clone(), arguments[3].clone());
    })?;
    Ok(Reply::from(true))
}

fn hdel(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let removed = keyspace.edit(&arguments[1], |hash: &mut Hash| {
        arguments[2..].iter().filter(|field| hash.swap_remove(*field).is_some()).count()
    })?;
    Ok(Reply::count(removed.unwrap_or(0)))
}

fn hlen(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(Reply::count(keyspace.read::<Hash>(&arguments[1])?.map_or(0, Hash::len)))
}

fn hgetall(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let hash = keyspace.read::<Hash>(&arguments[1])?;
    Ok(Reply::bulks(hash.into_iter().flatten().flat_map(|(field, value)| [field, value])))
}

fn hkeys(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(Reply::bulks(keyspace.read::<Hash>(&arguments[1])?.into_iter().flat_map(Hash::keys)))
}

fn hvals(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(Reply::bulks(keyspace.read::<Hash>(&arguments[1])?.into_iter().flat_map(Hash::values)))
}

fn hincrby(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let by = number::integer(&arguments[3])?;
    let before = match field(keyspace, arguments)? {
        Some(bytes) => number::integer(bytes).map_err(|_| CommandError::HashNotAnInteger)?,
        None => 0,
    };
    let after = before.checked_add(by).ok_or(CommandError::Overflow)?;
    keyspace.upsert(&arguments[1], |hash: &mut Hash| {
        hash.insert(arguments[2].clone(), after.to_string().into_bytes());
    })?;
    Ok(Reply::Integer(after))
}

fn hscan(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let cursor = Cursor::parse(&arguments[2])?;
    let Some(hash) = keyspace.read::<Hash>(&arguments[1])? else { return Ok(scan::nothing()) };
    let scan = Scan::parse(cursor, &arguments[3..])?;
    Ok(scan.over(hash.len(), |position, found| {
        let entry = hash.get_index(position);
        if let Some((field, value)) = entry.filter(|(field, _)| scan.wants(field)) {
            found.extend([Reply::bulk(field), Reply::bulk(value)]);
        }
    }))
}

fn hrandfield(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    if arguments.len() > 3 {
        return Err(CommandError::unimplemented(b"HRANDFIELD WITHVALUES"));
    }
    let count = arguments.get(2).map(|count| number::integer(count)).transpose()?;
    let mut rng = keyspace.rng.fork();
    let Some(hash) = keyspace.read::<Hash>(&arguments[1])? else {
        return Ok(if count.is_some() { Reply::Array(Vec::new()) } else { Reply::Nil });
    };
    let at = |position: usize| hash.get_index(position).map(|(field, _)| field);
    let Some(count) = count else { return Ok(Reply::bulk_or_nil(at(rng.usize(..hash.len())))) };
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if count < 0 {
        // A negative count asks for exactly this many draws, for any size of the hash.
        return Ok(Reply::bulks((0..wanted).filter_map(|_| at(rng.usize(..hash.len())))));
    }
    Ok(Reply::bulks(rng.choose_multiple(hash.keys(), wanted.min(hash.len()))))
}
