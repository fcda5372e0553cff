//! Which keys of a queue a read of many queues asks for: [`KnownKeys`], [`KeyReads`].
//!
//! Most queues have few of the keys that a queue may have: no priorities, no schedules, nothing
//! that is dead. One `EXISTS` for all of these costs Redis less than a command for each.

use std::{collections::HashMap, vec};

use redis::{Cmd, Value};

use super::{
    BrokerError,
    inspect::{get, size, texts},
    keys::Keys,
};
use crate::id::QueueName;

/// The fields of `meta` that are read, in the order of [`Look`](super::overview_look::Look).
const NOTED: [&str; 13] = [
    "tombstones",
    "blocked",
    "dead_bytes",
    "cancelled_bytes",
    "purged",
    "paused",
    "cut_successes",
    "retries",
    "losses",
    "deaths",
    "cancels",
    "due",
    "limited",
];
/// The number of keys besides `meta`.
const KEYS: usize = 13;
/// A key, and the commands that read it: what comes before the key, and what after.
type KeyRead = (&'static str, &'static [(&'static str, &'static [&'static str])]);
/// The keys, which [`Look`](super::overview_look::Look) takes by their names. They are read by
/// plain commands: a script that calls them costs Redis half as much again.
const READS: [KeyRead; KEYS] = [
    ("ready", &[("LLEN", &[]), ("LRANGE", &["0", "0"])]),
    ("priority", &[("ZCARD", &[])]),
    ("delayed", &[("ZCARD", &[])]),
    ("unmet", &[("HLEN", &[])]),
    ("retry", &[("ZCARD", &[])]),
    ("dead", &[("ZCARD", &[])]),
    ("cancelled", &[("ZCARD", &[])]),
    ("success", &[("LLEN", &[])]),
    ("tally", &[("HMGET", &["minute", "hour"])]),
    ("hours", &[("LRANGE", &["-1", "-1"])]),
    ("workers", &[("ZRANGE", &["0", "-1"])]),
    ("schedules", &[("ZRANGE", &["0", "0", "WITHSCORES"])]),
    ("code_schedules", &[("ZRANGE", &["0", "0", "WITHSCORES"])]),
];
/// For so many reads after the last one that has found a key, the key is read at once. A list that
/// is empty now and then would otherwise cost more.
const KEPT: u8 = 12;

/// For how many reads more each key of a queue is read at once.
type Kept = [u8; KEYS];

/// The keys that queues had at the reads before, so that the next read asks for fewer. What they
/// hold is read again each time.
#[derive(Debug, Default)]
pub struct KnownKeys(HashMap<QueueName, Kept>);

impl KnownKeys {
    /// Forgets all other queues.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&QueueName) -> bool) {
        self.0.retain(|queue, _| is_kept(queue));
    }

    pub(super) fn of(&mut self, queue: &QueueName) -> &mut Kept {
        self.0.entry(queue.clone()).or_default()
    }
}

/// The reads of the keys of one queue.
pub(super) struct KeyReads {
    keys: Keys,
    /// The keys that are read at once.
    known: Vec<KeyRead>,
    /// The keys that are asked for first.
    others: Vec<KeyRead>,
    has_others: bool,
    noted: Vec<String>,
    found: HashMap<&'static str, Vec<Value>>,
}

/// What was found of a queue.
pub(super) struct KeysFound {
    /// The fields of `meta`.
    pub(super) noted: Vec<String>,
    /// The answers about each other key that was read.
    found: HashMap<&'static str, Vec<Value>>,
}

type Answer = Result<Value, BrokerError>;

impl KeyReads {
    pub(super) fn new(keys: Keys, kept: &Kept) -> Self {
        let (known, others): (Vec<_>, Vec<_>) =
            READS.into_iter().zip(kept).partition(|(_, kept)| **kept > 0);
        let read = |(read, _)| read;
        Self {
            keys,
            known: known.into_iter().map(read).collect(),
            others: others.into_iter().map(read).collect(),
            has_others: false,
            noted: Vec::new(),
            found: HashMap::new(),
        }
    }

    /// Returns the commands that read `meta` and the known keys, and ask for the others.
    pub(super) fn first(&self) -> impl Iterator<Item = Cmd> {
        let meta = get(&[&["HMGET", &*self.keys.of("meta")], &NOTED[..]].concat());
        let others: Vec<_> = self.others.iter().map(|(name, _)| self.keys.of(name)).collect();
        let asks = (!others.is_empty()).then(|| {
            let others = others.iter().map(String::as_str);
            get(&["EXISTS"].into_iter().chain(others).collect::<Vec<_>>())
        });
        [meta].into_iter().chain(self.reads_of(&self.known)).chain(asks)
    }

    /// Takes the answers to [`first`](Self::first): all of them, also if one is an error.
    pub(super) fn take_first(
        &mut self,
        answers: &mut impl Iterator<Item = Answer>,
    ) -> Result<(), BrokerError> {
        let noted = next(answers);
        let known = take(&self.known, answers);
        let others = if self.others.is_empty() { Ok(Value::Nil) } else { next(answers) };
        self.found = known?;
        (self.noted, self.has_others) = (texts("HMGET", noted?)?, size(&others?) > 0);
        Ok(())
    }

    /// Returns the commands that read the other keys, if the queue has any.
    pub(super) fn second(&self) -> impl Iterator<Item = Cmd> {
        self.reads_of(if self.has_others { &self.others } else { &[] })
    }

    /// Takes the answers to [`second`](Self::second), and notes which keys there are.
    pub(super) fn end(
        mut self,
        kept: &mut Kept,
        answers: &mut impl Iterator<Item = Answer>,
    ) -> Result<KeysFound, BrokerError> {
        if self.has_others {
            self.found.extend(take(&self.others, answers)?);
        }
        for (kept, (name, _)) in kept.iter_mut().zip(READS) {
            let is_there = self.found.get(name).is_some_and(|found| found.iter().any(has_any));
            *kept = if is_there { KEPT } else { kept.saturating_sub(1) };
        }
        Ok(KeysFound { noted: self.noted, found: self.found })
    }

    fn reads_of(&self, reads: &[KeyRead]) -> impl Iterator<Item = Cmd> {
        reads.iter().flat_map(|(name, commands)| {
            let key = self.keys.of(name);
            commands.iter().map(move |(verb, rest)| get(&[&[*verb, &*key], *rest].concat()))
        })
    }
}

impl KeysFound {
    /// Returns the answers about a key; none if the queue does not have it.
    pub(super) fn take(&mut self, key: &str) -> vec::IntoIter<Value> {
        self.found.remove(key).unwrap_or_default().into_iter()
    }
}

fn next(answers: &mut impl Iterator<Item = Answer>) -> Answer {
    answers.next().expect("an answer for each command")
}

fn take(
    reads: &[KeyRead],
    answers: &mut impl Iterator<Item = Answer>,
) -> Result<HashMap<&'static str, Vec<Value>>, BrokerError> {
    let (mut found, mut problem) = (HashMap::new(), None);
    for (name, commands) in reads {
        let answers: Result<Vec<_>, _> =
            commands.iter().map(|_| next(answers)).collect::<Vec<_>>().into_iter().collect();
        match answers {
            Ok(answers) => drop(found.insert(*name, answers)),
            Err(why) => problem = Some(why),
        }
    }
    problem.map_or(Ok(found), Err)
}

/// Returns whether an answer is that of a key that exists.
fn has_any(answer: &Value) -> bool {
    match answer {
        Value::Int(size) => *size > 0,
        Value::Array(parts) => parts.iter().any(|part| *part != Value::Nil),
        _ => true,
    }
}
