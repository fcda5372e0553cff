//! The tasks that succeeded or died on a day, one page at a time: [`HistoryPage`].

use std::{fmt, str::FromStr, time::Duration};

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    id::{QueueName, TaskId, WorkerId},
    platform::instant,
    state::{AttemptError, TaskState},
};

/// Which tasks of a day to read.
///
/// ```
/// use optimus_core::{HistoryFilter, TaskState};
///
/// let day = "2026-10-03".parse()?;
/// let failed = HistoryFilter::day(day).task("send_mail").state(TaskState::Dead);
/// # let _ = failed;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryFilter {
    pub(crate) day: NaiveDate,
    pub(crate) state: Option<TaskState>,
    pub(crate) task: Option<String>,
}

impl HistoryFilter {
    /// All tasks that ended on this day, in UTC.
    pub fn day(day: NaiveDate) -> Self {
        Self { day, state: None, task: None }
    }

    /// Only tasks with this name.
    pub fn task(mut self, task: impl Into<String>) -> Self {
        self.task = Some(task.into());
        self
    }

    /// Only successes, or only deaths.
    pub fn state(mut self, state: TaskState) -> Self {
        self.state = Some(state);
        self
    }

    /// Returns the states to read, in their order.
    pub(crate) fn states(&self) -> Result<&[TaskState], Error> {
        match self.state {
            None => Ok(&[TaskState::Dead, TaskState::Success]),
            Some(TaskState::Dead) => Ok(&[TaskState::Dead]),
            Some(TaskState::Success) => Ok(&[TaskState::Success]),
            Some(other) => Err(Error::invalid(format!(
                "a history has the tasks that succeeded or died, not those in the state {other}"
            ))),
        }
    }
}

/// Some of the tasks that ended on a day.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HistoryPage {
    /// The rows: deaths before successes, and of each kind the first before the last.
    pub rows: Vec<HistoryRow>,
    /// The start of the next page; `None` after the last. The next page may be empty.
    pub next: Option<HistoryCursor>,
    /// How many tasks of the day were looked at: at most about 20,000.
    pub scanned: u64,
}

/// A task that succeeded or died.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HistoryRow {
    /// The id of the task.
    pub id: TaskId,
    /// The task's name.
    pub task: String,
    /// How it ended: [`TaskState::Success`] or [`TaskState::Dead`].
    pub state: TaskState,
    /// When it ended, by Redis' clock.
    pub ended: DateTime<Utc>,
    /// The number of the last attempt, from 1; 0 if it died before the first.
    pub attempt: u32,
    /// How long the last attempt took. For a death, until its outcome was stored.
    pub took: Duration,
    /// The worker of the last attempt, whose name begins with that of its machine.
    pub worker: Option<WorkerId>,
    /// Why it died. A message of more than about 1,000 bytes is left out.
    pub error: Option<AttemptError>,
}

impl HistoryRow {
    /// Reads a line; `None` if it is not one.
    pub(crate) fn read(queue: &QueueName, state: TaskState, line: &str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let mut word = || words.next();
        let id = TaskId::from_stored(queue.clone(), word()?).ok()?;
        let (ended, task) = (instant(word()?.parse().ok()?), word()?.to_owned());
        let ms = |word: &str| word.parse().ok().map(Duration::from_millis);
        if state == TaskState::Success {
            let (attempt, took) = (word()?.parse().ok()?, ms(word()?)?);
            let worker = Some(WorkerId::from_stored(word()?));
            return Some(Self { id, task, state, ended, attempt, took, worker, error: None });
        }
        let took = ms(word()?)?;
        let json = line.splitn(5, ' ').nth(4)?;
        let error = serde_json::from_str::<AttemptError>(json).ok();
        let error = error.map(|error| AttemptError { at: ended, ..error });
        let worker = error.as_ref().map(|error| error.worker.as_str());
        let worker = worker.filter(|worker| !worker.is_empty()).map(WorkerId::from_stored);
        let attempt = error.as_ref().map_or(0, |error| error.attempt);
        Some(Self { id, task, state, ended, attempt, took, worker, error })
    }
}

/// A position between two tasks of a day. It stays valid while tasks end.
///
/// Its text ([`Display`](fmt::Display), [`FromStr`], serde) needs no escape in a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HistoryCursor {
    queue: QueueName,
    day: NaiveDate,
    pub(crate) place: Place,
}

/// Where a read goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) state: TaskState,
    /// The number of an entry.
    pub(crate) entry: u64,
    /// The last line that was read of that entry or one behind it, if one was: the id and the ms of
    /// its end.
    pub(crate) after: Option<(String, u64)>,
}

impl Place {
    pub(crate) fn first(state: TaskState) -> Self {
        Self { state, entry: 0, after: None }
    }
}

impl HistoryCursor {
    pub(crate) fn of(queue: &QueueName, filter: &HistoryFilter, place: Place) -> Self {
        Self { queue: queue.clone(), day: filter.day, place }
    }

    /// Returns the place, if the cursor is of that day of that queue.
    pub(crate) fn place_in(
        &self,
        queue: &QueueName,
        filter: &HistoryFilter,
    ) -> Result<Place, Error> {
        let is_of_state = filter.states()?.contains(&self.place.state);
        if &self.queue == queue && self.day == filter.day && is_of_state {
            return Ok(self.place.clone());
        }
        Err(Error::invalid(format!(
            "the cursor {self} is a place in the {} tasks of {} in queue {}; begin another list \
             without a cursor",
            self.place.state, self.day, self.queue
        )))
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('~');
        let mut part = || parts.next();
        let (queue, day) = (QueueName::new(part()?).ok()?, part()?.parse().ok()?);
        let state = TaskState::from_word(part()?)?;
        let entry = part()?.parse().ok()?;
        let after = match (part(), part()) {
            (None, None) => None,
            (Some(id), Some(ms)) => {
                TaskId::from_stored(queue.clone(), id).ok()?;
                Some((id.to_owned(), ms.parse().ok()?))
            }
            _ => return None,
        };
        let is_state = matches!(state, TaskState::Dead | TaskState::Success);
        let place = Place { state, entry, after };
        (is_state && parts.next().is_none()).then_some(Self { queue, day, place })
    }
}

impl fmt::Display for HistoryCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { state, entry, after } = &self.place;
        write!(f, "{}~{}~{state}~{entry}", self.queue, self.day)?;
        match after {
            Some((id, ms)) => write!(f, "~{id}~{ms}"),
            None => Ok(()),
        }
    }
}

impl FromStr for HistoryCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::read(text).ok_or_else(|| {
            Error::invalid(format!(
                "{text:?} is not the cursor of a history; use the `next` of the page before as it \
                 is, or none for the first page"
            ))
        })
    }
}

impl TryFrom<String> for HistoryCursor {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<HistoryCursor> for String {
    fn from(cursor: HistoryCursor) -> Self {
        cursor.to_string()
    }
}

#[cfg(test)]
#[path = "history_page_tests.rs"]
mod tests;
