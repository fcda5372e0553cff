//! The commands of strings: GET, SET, MGET, MSET, STRLEN, INCR and INCRBY.

use super::Arity::{AtLeast, Exactly};
use super::Effect::{Grows, Reads};
use super::Run::Keyspace as On;
use super::{Command, Outcome, keys, upper};
use crate::error::CommandError;
use crate::keyspace::Keyspace;
use crate::number;
use crate::reply::Reply;
use crate::value::{Bytes, Data};

pub(super) const COMMANDS: &[Command] = &[
    Command::new("get", Exactly(2), Reads, On(get)),
    Command::new("set", AtLeast(3), Grows, On(set)),
    Command::new("mget", AtLeast(2), Reads, On(mget)),
    Command::new("mset", AtLeast(3), Grows, On(mset)),
    Command::new("strlen", Exactly(2), Reads, On(strlen)),
    Command::new("incr", Exactly(2), Grows, On(incr)),
    Command::new("incrby", Exactly(3), Grows, On(incrby)),
];

fn get(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(Reply::bulk_or_nil(keyspace.read::<Bytes>(&arguments[1])?))
}

fn mget(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    // A key of another type counts as missing here.
    let value = |key| keyspace.read::<Bytes>(key).ok().flatten();
    Ok(Reply::Array(arguments[1..].iter().map(|key| Reply::bulk_or_nil(value(key))).collect()))
}

fn mset(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let (pairs, []) = arguments[1..].as_chunks::<2>() else {
        return Err(CommandError::Arity("mset"));
    };
    for [key, value] in pairs {
        keyspace.put(key, Data::String(value.clone()), None);
    }
    Ok(Reply::ok())
}

fn strlen(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(Reply::count(keyspace.read::<Bytes>(&arguments[1])?.map_or(0, Vec::len)))
}

fn incr(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    increment(keyspace, &arguments[1], 1)
}

fn incrby(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let by = number::integer(&arguments[2])?;
    increment(keyspace, &arguments[1], by)
}

fn increment(keyspace: &mut Keyspace, key: &[u8], by: i64) -> Outcome {
    let before =
        keyspace.read::<Bytes>(key)?.map(|bytes| number::integer(bytes)).transpose()?.unwrap_or(0);
    let after = before.checked_add(by).ok_or(CommandError::Overflow)?;
    let expiry = keyspace.expiry(key);
    keyspace.put(key, Data::String(after.to_string().into_bytes()), expiry);
    Ok(Reply::Integer(after))
}

fn set(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let key = &arguments[1];
    let options = SetOptions::parse(&arguments[3..])?;
    let expiry = options.expiry.due_ms(keyspace, key)?;
    let before =
        if options.get { Reply::bulk_or_nil(keyspace.read::<Bytes>(key)?) } else { Reply::ok() };
    let exists = keyspace.data(key).is_some();
    if options.only_if_exists.is_some_and(|wanted| wanted != exists) {
        return Ok(if options.get { before } else { Reply::Nil });
    }
    if expiry.is_some_and(|due_ms| due_ms <= keyspace.now_ms()) {
        keyspace.remove(key);
    } else {
        keyspace.put(key, Data::String(arguments[2].clone()), expiry);
    }
    Ok(before)
}

/// The options of SET, which follow the value.
struct SetOptions<'a> {
    /// True for XX, false for NX.
    only_if_exists: Option<bool>,
    expiry: Expiry<'a>,
    get: bool,
}

#[derive(PartialEq)]
enum Expiry<'a> {
    None,
    Keep,
    InSeconds(&'a [u8]),
    InMs(&'a [u8]),
    AtMs(&'a [u8]),
}

impl<'a> SetOptions<'a> {
    fn parse(arguments: &'a [Vec<u8>]) -> Result<Self, CommandError> {
        let mut options = Self { only_if_exists: None, expiry: Expiry::None, get: false };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match upper(argument).as_slice() {
                b"NX" if options.only_if_exists != Some(true) => {
                    options.only_if_exists = Some(false);
                }
                b"XX" if options.only_if_exists != Some(false) => {
                    options.only_if_exists = Some(true);
                }
                b"GET" => options.get = true,
                b"KEEPTTL" if matches!(options.expiry, Expiry::None | Expiry::Keep) => {
                    options.expiry = Expiry::Keep;
                }
                unit @ (b"EX" | b"PX" | b"PXAT") if options.expiry == Expiry::None => {
                    let amount = arguments.next().ok_or(CommandError::Syntax)?;
                    options.expiry = match unit {
                        b"EX" => Expiry::InSeconds(amount),
                        b"PX" => Expiry::InMs(amount),
                        _ => Expiry::AtMs(amount),
                    };
                }
                b"EXAT" => return Err(CommandError::unimplemented(b"SET EXAT")),
                _ => return Err(CommandError::Syntax),
            }
        }
        Ok(options)
    }
}

impl Expiry<'_> {
    /// Returns the expiry of the key. The caller must check first that all options are compatible.
    fn due_ms(&self, keyspace: &Keyspace, key: &[u8]) -> Result<Option<u64>, CommandError> {
        let positive = |amount| match number::integer(amount)? {
            amount @ 1.. => Ok(amount),
            _ => Err(CommandError::ExpireTime("set")),
        };
        let after_ms = match self {
            Self::None => return Ok(None),
            Self::Keep => return Ok(keyspace.expiry(key)),
            Self::AtMs(amount) => return Ok(Some(positive(amount)?.unsigned_abs())),
            Self::InSeconds(amount) => positive(amount)?.checked_mul(1000),
            Self::InMs(amount) => Some(positive(amount)?),
        };
        let due_ms = after_ms.and_then(|ms| keys::instant(ms, keyspace.now_ms()));
        due_ms.map(Some).ok_or(CommandError::ExpireTime("set"))
    }
}
