//! Sorted sets: adds, removals and lookups of members.

use super::Arity::{AtLeast, Exactly};
use super::Effect::{Grows, Reads, Writes};
use super::Run::Keyspace as On;
use super::{Command, Outcome, span, upper, zrange};
use crate::error::CommandError;
use crate::keyspace::Keyspace;
use crate::number;
use crate::reply::Reply;
use crate::zset::{ScoreRange, ZSet};

pub(super) const COMMANDS: &[Command] = &[
    Command::new("zadd", AtLeast(4), Grows, On(zadd)),
    Command::new("zincrby", Exactly(4), Grows, On(zincrby)),
    Command::new("zrem", AtLeast(3), Writes, On(zrem)),
    Command::new("zscore", Exactly(3), Reads, On(zscore)),
    Command::new("zmscore", AtLeast(3), Reads, On(zmscore)),
    Command::new("zcard", Exactly(2), Reads, On(zcard)),
    Command::new("zcount", Exactly(4), Reads, On(zcount)),
    Command::new("zrank", Exactly(3), Reads, On(zrank)),
    Command::new("zrange", AtLeast(4), Reads, On(zrange::zrange)),
    Command::new("zrangestore", AtLeast(5), Grows, On(zrange::zrangestore)),
    Command::new("zrevrange", AtLeast(4), Reads, On(zrange::zrevrange)),
    Command::new("zrangebyscore", AtLeast(4), Reads, On(zrange::zrangebyscore)),
    Command::new("zremrangebyrank", Exactly(4), Writes, On(zremrangebyrank)),
    Command::new("zremrangebyscore", Exactly(4), Writes, On(zremrangebyscore)),
    Command::new("zpopmin", AtLeast(2), Writes, On(zpopmin)),
];

/// The options of ZADD, which are between its key and its first score.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each field is an option of the command")]
struct Conditions {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
    ch: bool,
    incr: bool,
}

/// The effect of ZADD on a member.
#[derive(Clone, Copy)]
enum Change {
    Added { score: f64 },
    Moved { score: f64 },
    Same { score: f64 },
    Held,
}

fn zadd(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let (conditions, pairs) = Conditions::parse(&arguments[2..])?;
    let pairs: Result<Vec<(f64, &[u8])>, CommandError> = pairs
        .chunks_exact(2)
        .map(|pair| Ok((number::float(&pair[0]).ok_or(CommandError::NotAFloat)?, &pair[1][..])))
        .collect();
    let pairs = pairs?;
    let changes: Result<Vec<Change>, CommandError> =
        keyspace.upsert(&arguments[1], |zset: &mut ZSet| {
            pairs.iter().map(|(score, member)| conditions.apply(zset, member, *score)).collect()
        })?;
    let changes = changes?;
    if conditions.incr {
        return Ok(changes[0]
            .score()
            .map_or(Reply::Nil, |score| Reply::Bulk(number::score(score))));
    }
    let counts = |change: &&Change| match change {
        Change::Added { .. } => true,
        Change::Moved { .. } => conditions.ch,
        Change::Same { .. } | Change::Held => false,
    };
    Ok(Reply::count(changes.iter().filter(counts).count()))
}

fn zincrby(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let by = number::float(&arguments[2]).ok_or(CommandError::NotAFloat)?;
    let conditions = Conditions { incr: true, ..Conditions::default() };
    let change = keyspace
        .upsert(&arguments[1], |zset: &mut ZSet| conditions.apply(zset, &arguments[3], by))??;
    Ok(change.score().map_or(Reply::Nil, |score| Reply::Bulk(number::score(score))))
}

impl Conditions {
    /// Reads the options and the (score, member) pairs that follow them.
    fn parse(arguments: &[Vec<u8>]) -> Result<(Self, &[Vec<u8>]), CommandError> {
        let mut conditions = Self::default();
        let is_condition = |argument: &&Vec<u8>| {
            match upper(argument).as_slice() {
                b"NX" => conditions.nx = true,
                b"XX" => conditions.xx = true,
                b"GT" => conditions.gt = true,
                b"LT" => conditions.lt = true,
                b"CH" => conditions.ch = true,
                b"INCR" => conditions.incr = true,
                _ => return false,
            }
            true
        };
        let words = arguments.iter().take_while(is_condition).count();
        let pairs = &arguments[words..];
        let Self { nx, xx, gt, lt, incr, .. } = conditions;
        let clash = |what| Err(CommandError::general(what));
        match pairs.len() {
            0 => Err(CommandError::Syntax),
            odd if odd % 2 == 1 => Err(CommandError::Syntax),
            _ if nx && xx => clash("XX and NX options at the same time are not compatible"),
            _ if (gt && lt) || (nx && (gt || lt)) => {
                clash("GT, LT, and/or NX options at the same time are not compatible")
            }
            more if incr && more > 2 => {
                clash("INCR option supports a single increment-element pair")
            }
            _ => Ok((conditions, pairs)),
        }
    }

    fn apply(&self, zset: &mut ZSet, member: &[u8], score: f64) -> Result<Change, CommandError> {
        let Some(before) = zset.score(member) else {
            if self.xx {
                return Ok(Change::Held);
            }
            zset.insert(member, score);
            return Ok(Change::Added { score });
        };
        if self.nx {
            return Ok(Change::Held);
        }
        let score = if self.incr { before + score } else { score };
        if score.is_nan() {
            return Err(CommandError::NotANumber);
        }
        if (self.gt && score <= before) || (self.lt && score >= before) {
            return Ok(Change::Held);
        }
        if score.partial_cmp(&before) == Some(std::cmp::Ordering::Equal) {
            return Ok(Change::Same { score });
        }
        zset.insert(member, score);
        Ok(Change::Moved { score })
    }
}

impl Change {
    /// Returns the new score of the member, unless an option prevents the change.
    fn score(self) -> Option<f64> {
        match self {
            Self::Added { score } | Self::Moved { score } | Self::Same { score } => Some(score),
            Self::Held => None,
        }
    }
}

fn zrem(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let removed = keyspace.edit(&arguments[1], |zset: &mut ZSet| {
        arguments[2..].iter().filter(|member| zset.remove(member)).count()
    })?;
    Ok(Reply::count(removed.unwrap_or(0)))
}

fn zscore(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(score_reply(keyspace.read(&arguments[1])?, &arguments[2]))
}

fn zmscore(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let zset = keyspace.read(&arguments[1])?;
    Ok(Reply::Array(arguments[2..].iter().map(|member| score_reply(zset, member)).collect()))
}

fn score_reply(zset: Option<&ZSet>, member: &[u8]) -> Reply {
    Reply::bulk_or_nil(zset.and_then(|zset| zset.score(member)).map(number::score))
}

fn zcard(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    Ok(Reply::count(keyspace.read::<ZSet>(&arguments[1])?.map_or(0, ZSet::len)))
}

fn zcount(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let range = ScoreRange::parse(&arguments[2], &arguments[3])?;
    let zset = keyspace.read::<ZSet>(&arguments[1])?;
    Ok(Reply::count(zset.map_or(0, |zset| zset.range(range).count())))
}

fn zrank(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let zset = keyspace.read::<ZSet>(&arguments[1])?;
    Ok(zset.and_then(|zset| zset.rank(&arguments[2])).map_or(Reply::Nil, Reply::count))
}

fn zremrangebyrank(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let (start, stop) = (number::integer(&arguments[2])?, number::integer(&arguments[3])?);
    remove_all(keyspace, &arguments[1], |zset| {
        let ranks = span(start, stop, zset.len());
        zset.iter().skip(ranks.start).take(ranks.len()).map(|(member, _)| member.to_vec()).collect()
    })
}

fn zremrangebyscore(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let range = ScoreRange::parse(&arguments[2], &arguments[3])?;
    remove_all(keyspace, &arguments[1], |zset| {
        zset.range(range).map(|(member, _)| member.to_vec()).collect()
    })
}

/// Removes the members that `chosen` returns. Replies how many there were.
fn remove_all(
    keyspace: &mut Keyspace,
    key: &[u8],
    chosen: impl FnOnce(&ZSet) -> Vec<Vec<u8>>,
) -> Outcome {
    let removed = keyspace.edit(key, |zset: &mut ZSet| {
        chosen(zset).iter().filter(|member| zset.remove(member)).count()
    })?;
    Ok(Reply::count(removed.unwrap_or(0)))
}

fn zpopmin(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let count = match &arguments[2..] {
        [] => 1,
        [count] => number::count(count)?,
        _ => return Err(CommandError::Syntax),
    };
    let popped = keyspace.edit(&arguments[1], |zset: &mut ZSet| {
        let lowest = (0..count).map_while(|_| zset.pop_first());
        Reply::bulks(lowest.flat_map(|(member, score)| [member, number::score(score)]))
    })?;
    Ok(popped.unwrap_or(Reply::Array(Vec::new())))
}
