//! The form of an [`Event`] as a line.

use std::fmt::{self, Display};
use std::str::{FromStr, SplitAsciiWhitespace};

use super::{Event, Found, How, IfDead, Until, What};

impl Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.at, self.pid)?;
        match &self.what {
            What::Invoke { task, biz, delay_ms } => {
                write!(f, "invoke {task} {} {delay_ms}", Optional(*biz))
            }
            What::Acked { task, id } => write!(f, "acked {task} {id}"),
            What::Duplicate { task, owner } => write!(f, "duplicate {task} {owner}"),
            What::Refused { task } => write!(f, "refused {task}"),
            What::Unknown { task } => write!(f, "unknown {task}"),
            What::Cancel { task } => write!(f, "cancel {task}"),
            What::Waits { task } => write!(f, "waits {task}"),
            What::Lane { task, width, if_dead, lane } => {
                write!(f, "lane {task} {width} {} {lane}", if_dead.word())
            }
            What::Limited { task, cost, limit } => write!(f, "limit {task} {cost} {limit}"),
            What::After { task, other, until } => {
                write!(f, "after {task} {other} {}", until.word())
            }
            What::Rule { interval_us, burst, max_working, limit } => {
                write!(f, "rule {interval_us} {burst} {max_working} {limit}")
            }
            What::Cancelled { task } => write!(f, "cancelled {task}"),
            What::Stopping { task } => write!(f, "stopping {task}"),
            What::Requeue { task } => write!(f, "requeue {task}"),
            What::Requeued { task } => write!(f, "requeued {task}"),
            What::Delete { task } => write!(f, "delete {task}"),
            What::Deleted { task } => write!(f, "deleted {task}"),
            What::Undone { task } => write!(f, "undone {task}"),
            What::Pause { queue } => write!(f, "pause {queue}"),
            What::Paused { queue } => write!(f, "paused {queue}"),
            What::Resume { queue } => write!(f, "resume {queue}"),
            What::Begin { task, id, attempt, fence } => {
                write!(f, "begin {task} {id} {attempt} {fence}")
            }
            What::End { task, fence, how } => write!(f, "end {task} {fence} {}", how.word()),
            What::Found { task, state, fence } => {
                write!(f, "found {task} {} {fence}", state.word())
            }
            What::Killed { victim } => write!(f, "killed {victim}"),
            What::Left { worker, since } => write!(f, "left {worker} {since}"),
            What::Frozen { victim, since } => write!(f, "frozen {victim} {since}"),
            What::Outage { since, of } => write!(f, "outage {since} {}", Optional(*of)),
            What::Missed { worker } => write!(f, "missed {worker}"),
            What::Stalled { since } => write!(f, "stalled {since}"),
            What::ClockSet { since, by_ms } => write!(f, "clock {since} {by_ms}"),
            What::GiveUps => f.write_str("giveups"),
            What::Rollback { since } => write!(f, "rollback {since}"),
            What::Lease { worker, ms } => write!(f, "lease {worker} {ms}"),
        }
    }
}

/// A number, or `-` for none.
struct Optional<T>(Option<T>);

impl<T: Display> Display for Optional<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(number) => number.fmt(f),
            None => f.write_str("-"),
        }
    }
}

impl FromStr for Event {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = Words(line.split_ascii_whitespace());
        let event = read(&mut words).ok_or_else(|| format!("no event: {line:?}"))?;
        if words.0.next().is_some() {
            return Err(format!("too many words: {line:?}"));
        }
        Ok(event)
    }
}

struct Words<'a>(SplitAsciiWhitespace<'a>);

impl Words<'_> {
    fn number<T: FromStr>(&mut self) -> Option<T> {
        self.0.next()?.parse().ok()
    }

    fn optional<T: FromStr>(&mut self) -> Option<Optional<T>> {
        match self.0.next()? {
            "-" => Some(Optional(None)),
            number => number.parse().ok().map(Some).map(Optional),
        }
    }

    fn text(&mut self) -> Option<String> {
        self.0.next().map(str::to_owned)
    }
}

fn read(words: &mut Words<'_>) -> Option<Event> {
    let (at, pid) = (words.number()?, words.number()?);
    let what = match words.0.next()? {
        "invoke" => What::Invoke {
            task: words.number()?,
            biz: words.optional()?.0,
            delay_ms: words.number()?,
        },
        "acked" => What::Acked { task: words.number()?, id: words.text()? },
        "duplicate" => What::Duplicate { task: words.number()?, owner: words.text()? },
        "refused" => What::Refused { task: words.number()? },
        "unknown" => What::Unknown { task: words.number()? },
        "cancel" => What::Cancel { task: words.number()? },
        "waits" => What::Waits { task: words.number()? },
        "cancelled" => What::Cancelled { task: words.number()? },
        "stopping" => What::Stopping { task: words.number()? },
        "requeue" => What::Requeue { task: words.number()? },
        "requeued" => What::Requeued { task: words.number()? },
        "delete" => What::Delete { task: words.number()? },
        "deleted" => What::Deleted { task: words.number()? },
        "undone" => What::Undone { task: words.number()? },
        "pause" => What::Pause { queue: words.text()? },
        "paused" => What::Paused { queue: words.text()? },
        "resume" => What::Resume { queue: words.text()? },
        "begin" => What::Begin {
            task: words.number()?,
            id: words.text()?,
            attempt: words.number()?,
            fence: words.number()?,
        },
        "end" => What::End {
            task: words.number()?,
            fence: words.number()?,
            how: How::read(words.0.next()?)?,
        },
        "found" => What::Found {
            task: words.number()?,
            state: Found::read(words.0.next()?)?,
            fence: words.number()?,
        },
        "killed" => What::Killed { victim: words.number()? },
        "left" => What::Left { worker: words.number()?, since: words.number()? },
        "frozen" => What::Frozen { victim: words.number()?, since: words.number()? },
        "outage" => What::Outage { since: words.number()?, of: words.optional()?.0 },
        "missed" => What::Missed { worker: words.number()? },
        "stalled" => What::Stalled { since: words.number()? },
        "clock" => What::ClockSet { since: words.number()?, by_ms: words.number()? },
        "giveups" => What::GiveUps,
        "rollback" => What::Rollback { since: words.number()? },
        "lease" => What::Lease { worker: words.number()?, ms: words.number()? },
        word => return read_flow(word, words).map(|what| Event { at, pid, what }),
    };
    Some(Event { at, pid, what })
}

/// Reads what is known of the lane, the limits and the prerequisites of a task.
fn read_flow(word: &str, words: &mut Words<'_>) -> Option<What> {
    Some(match word {
        "lane" => What::Lane {
            task: words.number()?,
            width: words.number()?,
            if_dead: IfDead::read(words.0.next()?)?,
            lane: words.text()?,
        },
        "limit" => {
            What::Limited { task: words.number()?, cost: words.number()?, limit: words.text()? }
        }
        "after" => What::After {
            task: words.number()?,
            other: words.number()?,
            until: Until::read(words.0.next()?)?,
        },
        "rule" => What::Rule {
            interval_us: words.number()?,
            burst: words.number()?,
            max_working: words.number()?,
            limit: words.text()?,
        },
        _ => return None,
    })
}

/// Defines the word of each variant, for writing and reading.
macro_rules! words {
    ($type:ident: $($variant:ident = $word:literal),*) => {
        impl $type {
            fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            fn read(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

words!(How: Ok = "ok", Failed = "failed", Stopped = "stopped");
words!(IfDead: Skip = "skip", Block = "block");
words!(Until: Success = "success", End = "end");
words!(Found: Success = "success", Dead = "dead", Cancelled = "cancelled",
    Forgotten = "forgotten", Live = "live");
