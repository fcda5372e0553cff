//! What is known of a stored schedule: [`ScheduleDetails`], [`ScheduleTick`].

use std::{fmt, str::FromStr, time::Duration};

use chrono::{DateTime, FixedOffset, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    id::{QueueName, TaskId},
    platform::instant,
    record::{RecordError, TaskRecord},
    schedule::{Missed, Overlap},
    timing::{BACK_MAX, Pace, Timing},
};

/// How long a schedule may be overdue before [`ScheduleDetails::is_overdue`]. Workers look for due
/// schedules each second.
const OVERDUE_AFTER_MS: u64 = 10_000;

/// How long a schedule may be overdue before [`ScheduleDetails::is_orphaned`].
pub(crate) const ORPHANED_AFTER_MS: u64 = 60_000;

/// A stored schedule.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScheduleDetails {
    /// Its name.
    pub name: String,
    /// The queue of its tasks.
    pub queue: QueueName,
    /// Its instants.
    pub pace: SchedulePace,
    /// What happens to instants at which no worker was there.
    pub missed: Missed,
    /// What happens at an instant while the task before has not ended.
    pub overlap: Overlap,
    /// The longest delay of its tasks.
    pub jitter: Duration,
    /// The task that it submits, or why this program can't read it.
    pub record: Result<TaskRecord, RecordError>,
    /// The release of the program whose code has it; `None` if it was made at run time.
    pub release: Option<String>,
    /// When it was stored first.
    pub made: DateTime<Utc>,
    /// When it is due next; `None` if it is paused, or if no instant follows.
    pub next: Option<DateTime<Utc>>,
    /// The latest instant.
    pub last: Option<DateTime<Utc>>,
    /// The latest task.
    pub last_id: Option<TaskId>,
    /// Since when and by whom it is paused.
    pub paused: Option<(DateTime<Utc>, String)>,
    /// Why it is paused, as given; empty if nobody has said it.
    pub paused_why: String,
    /// The clock of the store.
    pub(crate) now_ms: u64,
    pub(crate) timing: Timing,
}

/// The instants of a stored schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchedulePace {
    /// Those of a cron expression in a time zone.
    Cron {
        /// The expression.
        expression: String,
        /// The name of the zone.
        zone: String,
    },
    /// Again and again after this time.
    Every(Duration),
}

impl ScheduleDetails {
    /// Returns the next instants from now on, at most this many (and 1,000), by the clocks of the
    /// schedule's time zone. A schedule that is paused has those that it would have.
    pub fn next_instants(&self, count: usize) -> Vec<DateTime<FixedOffset>> {
        let due_ms = self.next.and_then(|next| u64::try_from(next.timestamp_millis()).ok());
        let follows = |after_ms: &u64| self.timing.next_ms(*after_ms);
        let first_ms = due_ms.or_else(|| follows(&self.now_ms));
        let instants = std::iter::successors(first_ms, follows);
        instants.take(count.min(BACK_MAX)).map(|ms| self.timing.local(ms)).collect()
    }

    /// Returns whether the schedule is due since more than 10 s, and no worker has ticked it.
    pub fn is_overdue(&self) -> bool {
        self.is_due_since_ms(OVERDUE_AFTER_MS)
    }

    /// Returns whether the schedule is due since more than a minute and nobody ticks it: no worker
    /// serves the queue, or the code of no worker has the schedule any more.
    /// [Remove](crate::Schedules::remove) what was removed from the code.
    pub fn is_orphaned(&self) -> bool {
        self.is_due_since_ms(ORPHANED_AFTER_MS)
    }

    fn is_due_since_ms(&self, ms: u64) -> bool {
        let due_ms = self.next.and_then(|next| u64::try_from(next.timestamp_millis()).ok());
        due_ms.is_some_and(|due_ms| self.now_ms.saturating_sub(due_ms) > ms)
    }
}

impl SchedulePace {
    pub(crate) fn of(timing: &Timing) -> Self {
        match &timing.pace {
            Pace::Every(ms) => Self::Every(Duration::from_millis(*ms)),
            Pace::Cron(_, expression, zone) => {
                Self::Cron { expression: expression.clone(), zone: zone.to_string() }
            }
        }
    }
}

impl fmt::Display for SchedulePace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every(time) => write!(f, "every {time:?}"),
            Self::Cron { expression, zone } => write!(f, "{expression} ({zone})"),
        }
    }
}

/// One instant in the history of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleTick {
    /// The instant.
    pub nominal: DateTime<Utc>,
    /// When a worker has noticed it, by the clock of the store.
    pub at: DateTime<Utc>,
    /// How many instants before it were left out, because no worker was there.
    pub missed: u32,
    /// Whether [`run_now`](crate::Schedules::run_now) has made it.
    pub by_hand: bool,
    /// What became of it.
    pub outcome: TickOutcome,
}

/// What became of an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TickOutcome {
    /// This task was submitted.
    Submitted(TaskId),
    /// Nothing: the task before it had not ended.
    Overlap,
    /// Nothing: no worker was there in time.
    Missed,
    /// Nothing: this task has its biz id.
    Duplicate(TaskId),
}

impl ScheduleTick {
    /// Reads an entry of the history.
    pub(crate) fn from_stored(queue: &QueueName, entry: &str) -> Option<Self> {
        let mut words = entry.splitn(4, ' ');
        let mut ms = || words.next()?.parse::<u64>().ok();
        let (nominal, at, missed) = (instant(ms()?), instant(ms()?), u32::try_from(ms()?).ok()?);
        let rest = words.next()?;
        let (by_hand, what) = match rest.strip_prefix("now ") {
            Some(what) => (true, what),
            None => (false, rest),
        };
        // A schedule that has moved takes its history along: `<id>@<the queue of that task>`.
        let id = |stored: &str| {
            let (stored, queue) = match stored.split_once('@') {
                Some((stored, other)) => (stored, QueueName::new(other).ok()?),
                None => (stored, queue.clone()),
            };
            TaskId::from_stored(queue, stored).ok()
        };
        let outcome = match what {
            "overlap" => TickOutcome::Overlap,
            "missed" => TickOutcome::Missed,
            _ => match what.strip_prefix('=') {
                Some(owner) => TickOutcome::Duplicate(id(owner)?),
                None => TickOutcome::Submitted(id(what)?),
            },
        };
        Some(Self { nominal, at, missed, by_hand, outcome })
    }
}

/// Some of the schedules of a queue.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SchedulePage {
    /// The schedules: first those that were made at run time, then those of code, each in the order
    /// in which they are due.
    pub rows: Vec<ScheduleDetails>,
    /// The start of the next page; `None` after the last.
    pub next: Option<ScheduleCursor>,
}

/// A position between two schedules of a list. Its text has only letters, digits and `-._~`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ScheduleCursor {
    /// Whether the schedule is one of code.
    pub(crate) is_of_code: bool,
    /// When it was due, as the index had it.
    pub(crate) due: String,
    pub(crate) name: String,
}

impl fmt::Display for ScheduleCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_of_code { 'c' } else { 'r' };
        write!(f, "{kind}~{}~{}", self.due, self.name)
    }
}

impl FromStr for ScheduleCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let read = || {
            let mut parts = text.splitn(3, '~');
            let is_of_code = match parts.next()? {
                "c" => true,
                "r" => false,
                _ => return None,
            };
            let due = parts.next()?;
            due.parse::<f64>().ok().filter(|due| !due.is_nan())?;
            let name = parts.next().filter(|name| crate::id::validate_name(name).is_ok())?;
            Some(Self { is_of_code, due: due.to_owned(), name: name.to_owned() })
        };
        read().ok_or_else(|| {
            Error::invalid(format!(
                "{text:?} is not the cursor of a page of schedules; use the `next` of the page \
                 before as it is, or none for the first page"
            ))
        })
    }
}

impl TryFrom<String> for ScheduleCursor {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<ScheduleCursor> for String {
    fn from(cursor: ScheduleCursor) -> Self {
        cursor.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_of_a_history_is_read_and_other_texts_are_not() {
        let queue = QueueName::new("mail").unwrap();
        let id = TaskId::new(queue.clone());
        let read = |entry: &str| ScheduleTick::from_stored(&queue, entry);
        let tick = read(&format!("60000 60012 2 now {}", id.stored())).unwrap();
        assert_eq!((tick.missed, tick.by_hand), (2, true));
        assert_eq!(tick.at - tick.nominal, chrono::TimeDelta::milliseconds(12));
        assert_eq!(tick.outcome, TickOutcome::Submitted(id.clone()));
        let outcome = |what: &str| read(&format!("60000 60012 0 {what}")).map(|tick| tick.outcome);
        assert_eq!(outcome("overlap"), Some(TickOutcome::Overlap));
        assert_eq!(outcome("missed"), Some(TickOutcome::Missed));
        assert_eq!(outcome(&format!("={}", id.stored())), Some(TickOutcome::Duplicate(id.clone())));
        let moved = TaskId::of(QueueName::new("old.mail").unwrap(), id.uuid());
        let entry = format!("{}@old.mail", moved.stored());
        assert_eq!(outcome(&entry), Some(TickOutcome::Submitted(moved.clone())));
        assert_eq!(outcome(&format!("={entry}")), Some(TickOutcome::Duplicate(moved)));
        assert_eq!(outcome("what"), None);
        assert_eq!(read("60000 x 0 missed"), None);
    }

    #[test]
    fn a_cursor_is_read_from_its_text_and_other_texts_are_refused() {
        for text in ["r~1795345200000~digest-4.2_a", "c~inf~report"] {
            assert_eq!(text.parse::<ScheduleCursor>().unwrap().to_string(), text);
        }
        for text in ["", "r", "x~1~a", "r~soon~a", "r~1~", "r~1~a b", "r~nan~a"] {
            let problem = text.parse::<ScheduleCursor>().unwrap_err();
            assert!(problem.is_invalid() && problem.to_string().contains(text), "{problem}");
        }
    }
}
