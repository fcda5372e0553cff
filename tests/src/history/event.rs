//! One thing that happened, and its form as a line: [`Event`].

use std::fmt::{self, Display};
use std::str::{FromStr, SplitAsciiWhitespace};

/// One thing that happened, when and in which process.
///
/// As a line: `<ns> <pid> <word> <its words…>`, such as `17 4711 begin 1 mail/0a1b 1 4096`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// By the machine's monotonic clock, in ns.
    pub at: u64,
    /// The process that wrote it down.
    pub pid: u32,
    /// What happened.
    pub what: What,
}

/// What happened. Tasks are known by the number that their submitter gave them as an argument,
/// so that it does not depend on the queue which task is which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// `invoke <task> <biz id or -> <delay ms>`: a client is about to submit it.
    Invoke {
        /// Its number.
        task: u64,
        /// Its biz id, if it has one.
        biz: Option<u64>,
        /// Not to run before so much time has passed.
        delay_ms: u64,
    },
    /// `acked <task> <id>`: the submit was acknowledged, and the queue calls it so.
    Acked {
        /// Its number.
        task: u64,
        /// The id that it got.
        id: String,
    },
    /// `duplicate <task> <owner's id>`: its biz id was taken; it does not exist.
    Duplicate {
        /// Its number.
        task: u64,
        /// The id of the task that has the biz id.
        owner: String,
    },
    /// `refused <task>`: the client was told that nothing was done.
    Refused {
        /// Its number.
        task: u64,
    },
    /// `unknown <task>`: the client was told that nobody knows.
    Unknown {
        /// Its number.
        task: u64,
    },
    /// `cancel <task>`: an operator asks to cancel it.
    Cancel {
        /// Its number.
        task: u64,
    },
    /// `cancelled <task>`: an operator was told that it is cancelled.
    Cancelled {
        /// Its number.
        task: u64,
    },
    /// `requeue <task>`: an operator asks to run it again.
    Requeue {
        /// Its number.
        task: u64,
    },
    /// `begin <task> <id> <attempt> <fence>`: its handler begins.
    Begin {
        /// Its number.
        task: u64,
        /// What the queue calls it.
        id: String,
        /// Which attempt the handler was told.
        attempt: u32,
        /// The attempt's fence.
        fence: u64,
    },
    /// `end <task> <fence> <how>`: its handler is about to return.
    End {
        /// Its number.
        task: u64,
        /// The attempt's fence.
        fence: u64,
        /// With what.
        how: How,
    },
    /// `found <task> <state> <fence>`: where it was when all was over.
    Found {
        /// Its number.
        task: u64,
        /// The state.
        state: Found,
        /// The fence of the attempt whose result was kept; 0 for none.
        fence: u64,
    },
    /// `killed <pid>`: a process was killed with -9 and is dead.
    Killed {
        /// The process.
        victim: u32,
    },
    /// `left <pid> <since ns>`: a worker was asked to end then, and has ended now.
    Left {
        /// The process.
        worker: u32,
        /// When it was asked.
        since: u64,
    },
    /// `frozen <pid> <since ns>`: a process was stopped from then until now.
    Frozen {
        /// The process.
        victim: u32,
        /// When it was stopped.
        since: u64,
    },
    /// `outage <since ns> <pid or ->`: from then until now Redis was dead or silent, or
    /// connections to it broke: for one process, or for all.
    Outage {
        /// When it began.
        since: u64,
        /// The process; none for all of them.
        of: Option<u32>,
    },
    /// `stalled <since ns>`: the machine let nobody work from then until now.
    Stalled {
        /// When it began.
        since: u64,
    },
    /// `clock <ms>`: the clock of Redis was set forward by so much, or back.
    ClockSet {
        /// By how much; negative for back.
        by_ms: i64,
    },
    /// `lease <pid> <ms>`: a worker keeps its tasks for so long when nothing is heard of it.
    Lease {
        /// The process.
        worker: u32,
        /// Its lease.
        ms: u64,
    },
    /// `rollback <since ns>`: what Redis acknowledged from then until now may be gone.
    Rollback {
        /// When it began.
        since: u64,
    },
}

/// How a handler ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `ok`: well.
    Ok,
    /// `failed`: with an error of its own, or a panic.
    Failed,
    /// `stopped`: it was told to stop, or dropped.
    Stopped,
}

/// Where a task was found at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// `success`.
    Success,
    /// `dead`.
    Dead,
    /// `cancelled`.
    Cancelled,
    /// `forgotten`: it has ended well so long ago that nothing is known of it, or it never was.
    Forgotten,
    /// `live`: it has not ended.
    Live,
}

impl What {
    /// The number of the task that it is about; none for what a nemesis does.
    pub fn task(&self) -> Option<u64> {
        match *self {
            Self::Invoke { task, .. }
            | Self::Acked { task, .. }
            | Self::Duplicate { task, .. }
            | Self::Refused { task }
            | Self::Unknown { task }
            | Self::Cancel { task }
            | Self::Cancelled { task }
            | Self::Requeue { task }
            | Self::Begin { task, .. }
            | Self::End { task, .. }
            | Self::Found { task, .. } => Some(task),
            _ => None,
        }
    }
}

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
            What::Cancelled { task } => write!(f, "cancelled {task}"),
            What::Requeue { task } => write!(f, "requeue {task}"),
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
            What::Stalled { since } => write!(f, "stalled {since}"),
            What::ClockSet { by_ms } => write!(f, "clock {by_ms}"),
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
        "cancelled" => What::Cancelled { task: words.number()? },
        "requeue" => What::Requeue { task: words.number()? },
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
        "stalled" => What::Stalled { since: words.number()? },
        "clock" => What::ClockSet { by_ms: words.number()? },
        "rollback" => What::Rollback { since: words.number()? },
        "lease" => What::Lease { worker: words.number()?, ms: words.number()? },
        _ => return None,
    };
    Some(Event { at, pid, what })
}

/// Each variant's word, both ways.
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
words!(Found: Success = "success", Dead = "dead", Cancelled = "cancelled",
    Forgotten = "forgotten", Live = "live");
