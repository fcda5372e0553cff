//! The range commands of sorted sets: ZRANGE in all its forms, ZRANGESTORE, ZREVRANGE and
//! ZRANGEBYSCORE.

use super::{Outcome, span, upper};
use crate::error::CommandError;
use crate::keyspace::Keyspace;
use crate::number;
use crate::reply::Reply;
use crate::zset::{ScoreRange, ZSet};

/// The count of a LIMIT that has no effect. Every negative count has none.
const NO_LIMIT: i64 = -1;

/// The options of a range command, without its bounds.
#[derive(Clone, Copy, Default)]
struct Options {
    by_score: bool,
    reverse: bool,
    limit: Option<(i64, i64)>,
    with_scores: bool,
}

pub(super) fn zrange(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let options = Options::of_zrange(&arguments[4..])?;
    options.run(keyspace, &arguments[1..4])
}

/// Stores the members instead of returning them. An existing value of any type is replaced.
pub(super) fn zrangestore(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let options = Options::of_zrange(&arguments[5..])?;
    if options.with_scores {
        return Err(CommandError::Syntax);
    }
    let members = options.members(keyspace, &arguments[2..5])?;
    let target = &arguments[1];
    keyspace.remove(target);
    if !members.is_empty() {
        keyspace.upsert(target, |zset: &mut ZSet| {
            for (member, score) in &members {
                zset.insert(member, *score);
            }
        })?;
    }
    Ok(Reply::count(members.len()))
}

pub(super) fn zrevrange(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let mut options = Options { reverse: true, ..Options::default() };
    options.parse(&arguments[4..], |_, _| Err(CommandError::Syntax))?;
    options.run(keyspace, &arguments[1..4])
}

pub(super) fn zrangebyscore(keyspace: &mut Keyspace, arguments: &[Vec<u8>]) -> Outcome {
    let mut options = Options { by_score: true, ..Options::default() };
    options.parse(&arguments[4..], |_, _| Err(CommandError::Syntax))?;
    options.run(keyspace, &arguments[1..4])
}

impl Options {
    /// Reads the options that all three commands have, and passes other options to `own`.
    fn parse(
        &mut self,
        words: &[Vec<u8>],
        own: fn(&mut Self, &[u8]) -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match upper(word).as_slice() {
                b"WITHSCORES" => self.with_scores = true,
                b"LIMIT" => {
                    let (Some(offset), Some(count)) = (words.next(), words.next()) else {
                        return Err(CommandError::Syntax);
                    };
                    self.limit = Some((number::integer(offset)?, number::integer(count)?));
                }
                word => own(self, word)?,
            }
        }
        Ok(())
    }

    fn of_zrange(words: &[Vec<u8>]) -> Result<Self, CommandError> {
        let mut options = Self::default();
        options.parse(words, |options, word| match word {
            b"BYSCORE" => {
                options.by_score = true;
                Ok(())
            }
            b"REV" => {
                options.reverse = true;
                Ok(())
            }
            b"BYLEX" => Err(CommandError::unimplemented(b"ZRANGE BYLEX")),
            _ => Err(CommandError::Syntax),
        })?;
        Ok(options)
    }

    fn run(self, keyspace: &mut Keyspace, range: &[Vec<u8>]) -> Outcome {
        let mut replies = Vec::new();
        for (member, score) in self.members(keyspace, range)? {
            replies.push(Reply::Bulk(member));
            if self.with_scores {
                replies.push(Reply::Bulk(number::score(score)));
            }
        }
        Ok(Reply::Array(replies))
    }

    /// Returns the members of a range: a key and two bounds.
    fn members(
        self,
        keyspace: &mut Keyspace,
        range: &[Vec<u8>],
    ) -> Result<Vec<(Vec<u8>, f64)>, CommandError> {
        let (key, start, stop) = (&range[0], &range[1], &range[2]);
        let (offset, count) = self.limit.unwrap_or((0, NO_LIMIT));
        if !self.by_score {
            if count != NO_LIMIT {
                return Err(CommandError::general(
                    "syntax error, LIMIT is only supported in combination with either BYSCORE \
                     or BYLEX",
                ));
            }
            let (start, stop) = (number::integer(start)?, number::integer(stop)?);
            let Some(zset) = keyspace.read::<ZSet>(key)? else { return Ok(Vec::new()) };
            let ranks = span(start, stop, zset.len());
            return Ok(self.collect(zset.iter(), ranks.start, ranks.len()));
        }
        // In reverse order, the higher bound comes first.
        let (min, max) = if self.reverse { (stop, start) } else { (start, stop) };
        let range = ScoreRange::parse(min, max)?;
        let Some(zset) = keyspace.read::<ZSet>(key)? else { return Ok(Vec::new()) };
        // A negative offset returns no members, and a negative count returns all members.
        let Ok(offset) = usize::try_from(offset) else { return Ok(Vec::new()) };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Ok(self.collect(zset.range(range), offset, count))
    }

    fn collect<'a>(
        self,
        members: impl DoubleEndedIterator<Item = (&'a [u8], f64)>,
        skip: usize,
        take: usize,
    ) -> Vec<(Vec<u8>, f64)> {
        let owned = |(member, score): (&[u8], f64)| (member.to_vec(), score);
        if self.reverse {
            members.rev().skip(skip).take(take).map(owned).collect()
        } else {
            members.skip(skip).take(take).map(owned).collect()
        }
    }
}
