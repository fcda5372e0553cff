//! The commands for keys of any type: removal, type, expiry, and lists of keys.

use super::Arity::{AtLeast, Exactly};
use super::Effect::{Reads, Writes};
use super::Run::Keyspace as On;
use super::scan::{Cursor, Scan};
use super::{Command, Outcome};
use crate::error::CommandError;
use crate::glob;
use crate::keyspace::Keyspace;
use crate::number;
use crate::reply::Reply;

pub(super) const COMMANDS: &[Command] = &[
    Command::new("del", AtLeast(2), Writes, On(remove)),
    Command::new("unlink", AtLeast(2), Writes, On(remove)),
    Command::new("exists", AtLeast(2), Reads, On(exists)),
    Command::new("type", Exactly(2), Reads, On(type_of)),
    Command::new("expire", AtLeast(3), Writes, On(expire)),
    Command::new("pexpire", AtLeast(3), Writes, On(pexpire)),
    Command::new("pexpireat", AtLeast(3), Writes, On(pexpireat)),
    Command::new("ttl", Exactly(2), Reads, On(ttl)),
    Command::new("pttl", Exactly(2), Reads, On(pttl)),
    Command::new("persist", Exactly(2), Writes, On(persist)),
    Command::new("keys", Exactly(2), Reads, On(keys)),
    Command::new("scan", AtLeast(2), Reads, On(scan)),
    Command::new("dbsize", Exactly(1), Reads, On(dbsize)),
    Command::new("flushall", AtLeast(1), Writes, On(flush)),
    Command::new("flushdb", AtLeast(1), Writes, On(flush)),
];

/// Returns the instant `after_ms` from now, possibly in the past. Returns `None` if no i64 can hold
/// it.
pub(super) fn instant(after_ms: i64, now_ms: u64) -> Option<u64> {
    let now_ms = i64::try_from(now_ms).ok()?;
    // An instant before the epoch is due at once, like the epoch itself.
    Some(now_ms.checked_add(after_ms)?.max(0).unsigned_abs())
}

fn remove(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(Reply::count(arguments[1..].iter().filter(|key| keyspace.remove(key)).count()))
}

fn exists(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let there = |key: &&Vec<u8>| keyspace.data(key).is_some();
    Ok(Reply::count(arguments[1..].iter().filter(there).count()))
}

fn type_of(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let name = keyspace.data(&arguments[1]).map_or("none", |data| data.type_name());
    Ok(Reply::Status(name.to_owned()))
}

fn expire(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let seconds = number::integer(&arguments[2])?;
    let due_ms = seconds.checked_mul(1000).and_then(|ms| instant(ms, keyspace.now_ms()));
    expire_at(keyspace, arguments, due_ms.ok_or(CommandError::ExpireTime("expire"))?)
}

fn pexpire(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let due_ms = instant(number::integer(&arguments[2])?, keyspace.now_ms());
    expire_at(keyspace, arguments, due_ms.ok_or(CommandError::ExpireTime("pexpire"))?)
}

fn pexpireat(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let due_ms = number::integer(&arguments[2])?.max(0).unsigned_abs();
    expire_at(keyspace, arguments, due_ms)
}

fn expire_at(keyspace: &mut Keyspace, arguments: &[Vec<u8>], due_ms: u64) -> Outcome {
    if let Some(condition) = arguments.get(3) {
        return Err(CommandError::unimplemented(&[&arguments[0], &b" "[..], condition].concat()));
    }
    let key = &arguments[1];
    if keyspace.data(key).is_none() {
        return Ok(Reply::from(false));
    }
    if due_ms <= keyspace.now_ms() {
        keyspace.remove(key);
    } else {
        keyspace.set_expiry(key, Some(due_ms));
    }
    Ok(Reply::from(true))
}

fn ttl(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(match remaining_ms(keyspace, &arguments[1]) {
        Reply::Integer(ms) if ms >= 0 => Reply::Integer((ms + 500) / 1000),
        none => none,
    })
}

fn pttl(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(remaining_ms(keyspace, &arguments[1]))
}

/// Replies -2 for a missing key, and -1 for a key without an expiry.
fn remaining_ms(keyspace: &Keyspace, key: &[u8]) -> Reply {
    match keyspace.expiry(key) {
        Some(due_ms) => {
            let ms = due_ms.saturating_sub(keyspace.now_ms());
            Reply::Integer(i64::try_from(ms).unwrap_or(i64::MAX))
        }
        None if keyspace.data(key).is_some() => Reply::Integer(-1),
        None => Reply::Integer(-2),
    }
}

fn persist(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let had_expiry = keyspace.expiry(&arguments[1]).is_some();
    keyspace.set_expiry(&arguments[1], None);
    Ok(Reply::from(had_expiry))
}

fn keys(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(Reply::bulks(keyspace.keys().filter(|key| glob::matches(&arguments[1], key))))
}

fn scan(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let scan = Scan::parse(Cursor::parse(&arguments[1])?, &arguments[2..])?;
    Ok(scan.over(keyspace.len(), |position, found| {
        if let Some(key) = keyspace.nth(position).filter(|key| scan.wants(key)) {
            found.push(Reply::bulk(key));
        }
    }))
}

fn dbsize(keyspace: &mut Keyspace, _: &[Vec<u8>]) -> Outcome {
    Ok(Reply::count(keyspace.len()))
}

fn flush(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    match &arguments[1..] {
        [] => {}
        [how] if how.eq_ignore_ascii_case(b"SYNC") || how.eq_ignore_ascii_case(b"ASYNC") => {}
        _ => return Err(CommandError::Syntax),
    }
    keyspace.clear();
    Ok(Reply::ok())
}
