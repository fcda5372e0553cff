//! Which keys of a queue a read of many queues asks for: [`KnownKeys`], [`KeyReads`].
//!
//! Most queues have few of the keys that a queue may have: no priorities, no schedules, nothing
//! that is dead. `meta` shows of most keys that they are absent. One `EXISTS` for the others of
//! many queues costs Redis less than a command for each queue or key.

use std::{collections::HashMap, vec};

use redis::{Cmd, Value};

use super::{
    BrokerError,
    inspect::{get, size, texts},
    keys::Keys,
};
use crate::id::QueueName;

/// The fields of `meta` that are read, in the order of [`Look`](super::overview_look::Look).
const NOTED: [&str; 16] = [
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
    "needs",
    "watched_at",
    "fence",
];
/// The number of keys besides `meta` and `hours`.
const KEYS: usize = 12;
/// A key, the commands that read it, and what `meta` shows of it. Of a command, the first text
/// comes before the key, and the others after it.
struct KeyRead {
    name: &'static str,
    commands: &'static [(&'static str, &'static [&'static str])],
    sign: Sign,
}

/// What `meta` shows of a key.
enum Sign {
    None,
    /// There is no such key without this field.
    Field(&'static str),
    /// There is no new key while `watched_at` is the same.
    Watched,
}

/// The keys, which [`Look`](super::overview_look::Look) takes by their names. They are read by
/// plain commands: a script that calls them costs Redis half as much again. The signs are those of
/// the scripts: `due` is absent if nothing is due, tasks that wait for others raise `needs`, a
/// claim writes `fence`, and a worker that joins writes `watched_at`.
static READS: [KeyRead; KEYS] = [
    key("ready", &[("LLEN", &[]), ("LINDEX", &["0"])], Sign::None),
    key("priority", &[("ZCARD", &[])], Sign::None),
    key("delayed", &[("ZCARD", &[])], Sign::Field("due")),
    key("unmet", &[("HLEN", &[])], Sign::Field("needs")),
    key("retry", &[("ZCARD", &[])], Sign::Field("due")),
    key("dead", &[("ZCARD", &[])], Sign::Field("dead_bytes")),
    key("cancelled", &[("ZCARD", &[])], Sign::Field("cancelled_bytes")),
    key("success", &[("LLEN", &[])], Sign::Field("fence")),
    key("tally", &[("HMGET", &["minute", "hour"])], Sign::Field("fence")),
    key("workers", &[("ZRANGE", &["0", "-1"])], Sign::Watched),
    key("schedules", &[("ZRANGE", &["0", "0", "WITHSCORES"])], Sign::None),
    key("code_schedules", &[("ZRANGE", &["0", "0", "WITHSCORES"])], Sign::None),
];
const TALLY: &str = "tally";
const WATCHED_AT: &str = "watched_at";
const HOURS: &str = "hours";
/// For so many reads a key without its sign is not asked for. Another program may have written one.
const TRUSTED: u8 = 60;
/// For so many reads after the last one that has found a key, the key is read at once. A list that
/// is empty now and then would otherwise cost more.
const KEPT: u8 = 12;

/// `SUCCESS_MAX` of `lua/complete.lua`: as long as the list of successes is after a cut, and longer
/// than all that a cut drops.
const SUCCESSES_KEPT: u64 = 1_000;

const fn key(
    name: &'static str,
    commands: &'static [(&'static str, &'static [&'static str])],
    sign: Sign,
) -> KeyRead {
    KeyRead { name, commands, sign }
}

/// What the reads before have found of a queue.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// For how many reads more a key without its sign is not asked for.
    trusted: u8,
    keys: [KeptKey; KEYS],
    watched_at: String,
    /// The finished hour before the open hour of this number. The call that begins an hour is the
    /// one that finishes a row.
    hour: Option<(Vec<u8>, Value)>,
    /// The total of successes.
    successes: u64,
    /// Whether the last read of it was torn.
    was_torn: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct KeptKey {
    /// For how many reads more the key is read at once.
    reads: u8,
    /// Whether the field that is the sign of the key was there.
    has_sign: bool,
}

/// The keys that queues had at the reads before, so that the next read asks for fewer. What they
/// hold is read again each time, but for finished hours, which do not change.
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

impl Kept {
    /// Returns the total of successes from what was cut from their list, and from what is in it.
    /// The two are read by two commands. If the list was cut in between, those that it lost are in
    /// neither, and the total is the one that was read before: a counter that goes back is taken
    /// for a new one. If the next read is lower, too, Redis has lost successes.
    pub(super) fn total_successes(&mut self, cut: u64, listed: u64) -> u64 {
        let total = cut + listed;
        let is_torn = total < self.successes
            && listed >= SUCCESSES_KEPT
            && self.successes - total < SUCCESSES_KEPT
            && !self.was_torn;
        self.was_torn = is_torn;
        self.successes = if is_torn { self.successes } else { total };
        self.successes
    }
}

/// The reads of the keys of one queue.
pub(super) struct KeyReads {
    keys: Keys,
    /// The keys that are read at once.
    known: Vec<&'static KeyRead>,
    /// The keys that are asked for first.
    asked: Vec<&'static KeyRead>,
    /// The keys that had no sign at the last read.
    unsigned: Vec<&'static KeyRead>,
    /// The keys that are read after the others.
    others: Vec<&'static KeyRead>,
    reads_hours: bool,
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
        let (mut known, mut asked, mut unsigned) = (Vec::new(), Vec::new(), Vec::new());
        let trusted = kept.trusted;
        for (read, kept) in READS.iter().zip(&kept.keys) {
            let place = match read.sign {
                _ if kept.reads > 0 => &mut known,
                Sign::Field(_) if trusted > 0 && !kept.has_sign => &mut unsigned,
                Sign::Watched if trusted > 0 => &mut unsigned,
                _ => &mut asked,
            };
            place.push(read);
        }
        let (others, noted, found) = (Vec::new(), Vec::new(), HashMap::new());
        Self { keys, known, asked, unsigned, others, reads_hours: false, noted, found }
    }

    /// Returns the commands that read `meta` and the known keys.
    pub(super) fn first(&self) -> impl Iterator<Item = Cmd> {
        // To name the fields costs Redis more than to answer all of them.
        let meta = get(&["HGETALL", &self.keys.of("meta")]);
        [meta].into_iter().chain(self.reads_of(&self.known))
    }

    /// Takes the answers to [`first`](Self::first): all of them, also if one is an error.
    pub(super) fn take_first(
        &mut self,
        kept: &mut Kept,
        answers: &mut impl Iterator<Item = Answer>,
    ) -> Result<(), BrokerError> {
        let noted = next(answers);
        self.found = take(&self.known, answers)?;
        let fields = texts("HGETALL", noted?)?;
        let value = |name| fields.chunks_exact(2).find(|field| field[0] == name);
        let value = |name| value(name).map(|field| field[1].clone()).unwrap_or_default();
        self.noted = NOTED.map(value).to_vec();
        let is_new = self.noted(WATCHED_AT) != kept.watched_at;
        self.noted(WATCHED_AT).clone_into(&mut kept.watched_at);
        let has_sign = |read: &KeyRead| match read.sign {
            Sign::None => false,
            Sign::Field(field) => !["", "0"].contains(&self.noted(field)),
            Sign::Watched => is_new,
        };
        for (kept, read) in kept.keys.iter_mut().zip(&READS) {
            kept.has_sign = has_sign(read);
        }
        self.others = self.unsigned.iter().filter(|read| has_sign(read)).copied().collect();
        Ok(())
    }

    /// Returns the command that asks whether any of the queues has a key that is asked for; `None`
    /// if there is no such key.
    pub(super) fn asks<'a>(reads: impl IntoIterator<Item = &'a Self>) -> Option<Cmd> {
        let mut words = vec!["EXISTS".to_owned()];
        for read in reads {
            words.extend(read.asked.iter().map(|key| read.keys.of(key.name)));
        }
        (words.len() > 1).then(|| get(&words.iter().map(String::as_str).collect::<Vec<_>>()))
    }

    /// Takes the answer to [`asks`](Self::asks) about this queue alone.
    pub(super) fn take_asked(&mut self, answer: Answer) -> Result<(), BrokerError> {
        if size(&answer?) > 0 {
            self.others.append(&mut self.asked);
        }
        Ok(())
    }

    /// Returns the commands that read the other keys, if the queue has any, and the last finished
    /// hour, if it is not known to be the one that is kept.
    pub(super) fn second(&mut self, kept: &Kept) -> impl Iterator<Item = Cmd> {
        let is_tally_new = self.others.iter().any(|read| read.name == TALLY);
        let (hour, known) = (self.open_hour(), kept.hour.as_ref().map(|(number, _)| &**number));
        self.reads_hours = is_tally_new || (hour.is_some() && hour != known);
        let hours = self.reads_hours.then(|| get(&["LRANGE", &self.keys.of(HOURS), "-1", "-1"]));
        self.reads_of(&self.others).chain(hours)
    }

    /// Takes the answers to [`second`](Self::second), and notes which keys there are.
    pub(super) fn end(
        mut self,
        kept: &mut Kept,
        answers: &mut impl Iterator<Item = Answer>,
    ) -> Result<KeysFound, BrokerError> {
        let others = take(&self.others, answers);
        let hours = self.reads_hours.then(|| next(answers)).transpose();
        self.found.extend(others?);
        kept.trusted = kept.trusted.checked_sub(1).unwrap_or(TRUSTED);
        if let Some(hours) = hours? {
            kept.hour = self.open_hour().map(|number| (number.to_owned(), hours));
        } else if self.open_hour().is_none() {
            // If the queue was removed, the same hour may begin again without the one before.
            kept.hour = None;
        }
        for (kept, read) in kept.keys.iter_mut().zip(&READS) {
            let is_there = self.found.get(read.name).is_some_and(|found| found.iter().any(has_any));
            kept.reads = if is_there { KEPT } else { kept.reads.saturating_sub(1) };
        }
        if let Some((_, hours)) = kept.hour.as_ref().filter(|_| self.open_hour().is_some()) {
            self.found.insert(HOURS, vec![hours.clone()]);
        }
        Ok(KeysFound { noted: self.noted, found: self.found })
    }

    /// Returns a field of `meta`; empty if it is absent.
    fn noted(&self, field: &str) -> &str {
        let at = NOTED.iter().position(|noted| *noted == field);
        at.and_then(|at| self.noted.get(at)).map_or("", String::as_str)
    }

    /// Returns the number of the open row of the hour, as it is stored.
    fn open_hour(&self) -> Option<&[u8]> {
        let Value::Array(rows) = self.found.get(TALLY)?.first()? else { return None };
        let Value::BulkString(hour) = rows.get(1)? else { return None };
        hour.split(|byte| *byte == b'\n').next().filter(|number| !number.is_empty())
    }

    fn reads_of(&self, reads: &[&'static KeyRead]) -> impl Iterator<Item = Cmd> {
        reads.iter().flat_map(|read| {
            let key = self.keys.of(read.name);
            read.commands.iter().map(move |(verb, rest)| get(&[&[*verb, &*key], *rest].concat()))
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
    reads: &[&'static KeyRead],
    answers: &mut impl Iterator<Item = Answer>,
) -> Result<HashMap<&'static str, Vec<Value>>, BrokerError> {
    let (mut found, mut problem) = (HashMap::new(), None);
    for read in reads {
        let answers: Result<Vec<_>, _> =
            read.commands.iter().map(|_| next(answers)).collect::<Vec<_>>().into_iter().collect();
        match answers {
            Ok(answers) => drop(found.insert(read.name, answers)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_successes_does_not_go_back_when_their_list_is_cut_between_two_reads() {
        let mut kept = Kept::default();
        assert_eq!(kept.total_successes(5_000, 1_128), 6_128);
        assert_eq!(kept.total_successes(5_000, 1_000), 6_128, "129 left the list meanwhile");
        assert_eq!(kept.total_successes(5_129, 1_003), 6_132);
        assert_eq!(kept.total_successes(0, 7), 7, "the queue was removed, and is used again");
    }

    #[test]
    fn the_total_of_successes_goes_back_at_the_second_read_after_redis_has_lost_some() {
        let mut kept = Kept::default();
        assert_eq!(kept.total_successes(2_000, 1_100), 3_100);
        assert_eq!(kept.total_successes(1_500, 1_000), 3_100);
        assert_eq!(kept.total_successes(1_600, 1_000), 2_600);
        assert_eq!(kept.total_successes(1_500, 1_050), 2_600, "this one may be torn");
    }
}
