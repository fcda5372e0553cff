//! What is stored of an operation: what it is about, and how far it has come.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    broker::Saved,
    id::{QueueName, TaskId},
    operation::{Operation, OperationAct, OperationState},
    operation_filter::OperationFilter,
    platform::instant,
    state::{AttemptError, TaskState},
    task_page::TaskRow,
};

/// How many tasks, and how many problems, are kept to be shown.
const SHOWN: usize = 20;
/// How many names of tasks are counted apart.
const NAMES_MAX: usize = 100;
/// The progress is stored more often than this while tasks are changed, in ms.
const BETWEEN_STORES_MS: u64 = 60_000;
/// The name of a task whose record can't be read.
const UNREADABLE: &str = "(unreadable)";

/// The form in which an operation keeps the tasks that it has counted.
pub(crate) const FORM: u32 = 2;

/// What an operation is about. It does not change.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    pub(crate) act: OperationAct,
    pub(crate) filter: OperationFilter,
    pub(crate) who: String,
    /// [`FORM`]. A release that kept no tasks wrote none, and refuses to read one.
    #[serde(default)]
    pub(crate) form: u32,
}

/// The place from which an operation goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) queue: QueueName,
    pub(crate) state: TaskState,
    /// The cursor of the list; empty at its start.
    pub(crate) after: String,
    /// How many more tasks of the list are read, because others may join it without end; `None`
    /// while nobody has looked.
    #[serde(default)]
    pub(crate) unread: Option<u64>,
}

/// How far an operation has come.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Progress {
    /// The number of the last batch that is counted here.
    pub(crate) batch: u64,
    /// `None` at the start of the count and of the changes.
    pub(crate) place: Option<Place>,
    /// The number of the last chunk of counted tasks.
    pub(crate) chunks: u64,
    /// The number of the last one whose tasks are all reached, how many tasks of the next one are
    /// reached, and how many in all.
    pub(crate) chunk: u64,
    pub(crate) within: u64,
    pub(crate) reached: u64,
    /// The number of the last one whose tasks that wait for others are requeued.
    pub(crate) waits_chunk: u64,
    /// The number of the last one whose requeued tasks have asked for what they wait for.
    pub(crate) asked_chunk: u64,
    pub(crate) scanned: u64,
    pub(crate) done: u64,
    pub(crate) asked: u64,
    pub(crate) refused: u64,
    pub(crate) gone: u64,
    /// When the first task was changed, in ms; earlier if Redis' clock went back since then.
    pub(crate) begun_ms: Option<u64>,
    pub(crate) samples: Vec<OperationSample>,
    pub(crate) names: BTreeMap<String, u64>,
    pub(crate) problems: Vec<OperationProblem>,
    pub(crate) failure: Option<String>,
    pub(crate) unread: Vec<String>,
}

/// One of the tasks that an [`Operation`] has counted, as it was then.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OperationSample {
    /// The id of the task.
    pub id: TaskId,
    /// The task's name; `None` if its record can't be read.
    pub task: Option<String>,
    /// The state of the task.
    pub state: TaskState,
    /// When the id was made, by the submitter's clock.
    #[serde(rename = "created_ms", with = "chrono::serde::ts_milliseconds_option")]
    pub created: Option<DateTime<Utc>>,
    /// When the task was due (delayed, retry) or had ended.
    #[serde(rename = "at_ms", with = "chrono::serde::ts_milliseconds_option")]
    pub at: Option<DateTime<Utc>>,
    /// The number of the last attempt.
    pub attempt: u32,
    /// The headers of its submit.
    pub headers: BTreeMap<String, String>,
    /// The last error, with up to 200 characters of the message.
    pub error: Option<AttemptError>,
}

impl OperationSample {
    /// Returns the task as JSON for operators.
    pub(crate) fn to_json(&self) -> Value {
        let Self { id, task, state, created, at, attempt, headers, error } = self;
        json!({
            "id": id,
            "task": task,
            "state": state,
            "created_ms": created.map(|at| at.timestamp_millis()),
            "at_ms": at.map(|at| at.timestamp_millis()),
            "attempt": attempt,
            "headers": headers,
            "error": error.as_ref().map(AttemptError::to_json),
        })
    }
}

/// A task that an [`Operation`] could not change.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OperationProblem {
    /// The id of the task.
    pub id: TaskId,
    /// Why.
    pub error: String,
}

impl Progress {
    /// Notes a task that matches.
    pub(crate) fn note(&mut self, row: TaskRow) {
        let name = row.task.clone().unwrap_or_else(|| UNREADABLE.to_owned());
        if self.names.len() < NAMES_MAX || self.names.contains_key(&name) {
            *self.names.entry(name).or_default() += 1;
        }
        if self.samples.len() < SHOWN {
            let TaskRow { id, task, headers, state, created, at, attempt, last_error, .. } = row;
            let error = last_error;
            self.samples.push(OperationSample {
                id,
                task,
                state,
                created,
                at,
                attempt,
                headers,
                error,
            });
        }
    }

    /// Notes a task that can't be changed.
    pub(crate) fn refuse(&mut self, id: TaskId, error: String) {
        self.refused += 1;
        if self.problems.len() < SHOWN {
            self.problems.push(OperationProblem { id, error });
        }
    }

    /// Notes that the tasks of a place can't be read, so they are not counted.
    pub(crate) fn skip(&mut self, place: &Place, why: &str) {
        if self.unread.len() < SHOWN {
            let Place { queue, state, .. } = place;
            self.unread.push(format!("the {state} tasks of queue {queue} can't be read: {why}"));
        }
    }

    /// Returns the number of the last chunk that may have tasks which are changed already: those
    /// that wait for others are requeued first, and the next chunk may be changed in part.
    pub(crate) fn last_begun(&self) -> u64 {
        let next = self.waits_chunk.max(self.chunk) + 1;
        self.begun_ms.map_or(0, |_| next.min(self.chunks))
    }

    /// Notes Redis' clock. If it went back, tasks may have been changed a little before this time,
    /// and an undo finds those that ended since the changes began.
    pub(crate) fn note_clock(&mut self, now_ms: u64) {
        let begun = self.begun_ms.as_mut().filter(|begun| **begun > now_ms);
        if let Some(begun) = begun {
            *begun = now_ms.saturating_sub(BETWEEN_STORES_MS);
        }
    }

    /// Notes that so many more tasks are reached. What was neither changed nor refused is gone.
    pub(crate) fn reach(&mut self, tasks: u64) {
        self.within += tasks;
        self.reached += tasks;
        self.gone = self.reached.saturating_sub(self.done + self.asked + self.refused);
    }
}

impl Operation {
    /// Reads what is stored of an operation.
    pub(crate) fn read(id: &str, saved: &Saved) -> Result<Self, serde_json::Error> {
        let About { act, filter, who, .. } = serde_json::from_str(&saved.about)?;
        let progress = read_progress(saved)?;
        let state = OperationState::read(&saved.state);
        let until_ms = if state.is_over() { saved.changed_ms } else { saved.now_ms };
        let took_ms = progress.begun_ms.map(|begun| until_ms.saturating_sub(begun).max(1));
        let reached = progress.done + progress.asked + progress.refused + progress.gone;
        let mut by_task: Vec<(String, u64)> = progress.names.into_iter().collect();
        by_task.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Ok(Self {
            id: id.to_owned(),
            act,
            filter,
            state,
            who,
            reason: saved.why.clone(),
            matched: saved.matched,
            scanned: progress.scanned,
            done: progress.done,
            asked_to_stop: progress.asked,
            refused: progress.refused,
            gone: progress.gone,
            rate_s: took_ms.map_or(0.0, |ms| per_second(reached, ms)),
            created: instant(saved.added_ms),
            updated: instant(saved.changed_ms),
            samples: progress.samples,
            by_task,
            problems: progress.problems,
            failure: progress.failure,
            unread: progress.unread,
            begun_ms: progress.begun_ms,
        })
    }
}

/// Reads how far an operation has come.
pub(crate) fn read_progress(saved: &Saved) -> Result<Progress, serde_json::Error> {
    if saved.progress.is_empty() {
        return Ok(Progress::default());
    }
    serde_json::from_str(&saved.progress)
}

#[expect(clippy::cast_precision_loss, reason = "a rate is for people")]
fn per_second(count: u64, ms: u64) -> f64 {
    (count as f64 * 10_000.0 / ms as f64).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_begun_before_the_clock_of_redis_if_it_went_back() {
        let mut progress = Progress::default();
        progress.note_clock(1_000_000);
        assert_eq!(progress.begun_ms, None, "nothing is changed yet");
        progress.begun_ms = Some(1_000_000);
        for (now_ms, begun_ms) in
            [(1_000_000, 1_000_000), (2_000_000, 1_000_000), (500_000, 440_000), (500_010, 440_000)]
        {
            progress.note_clock(now_ms);
            assert_eq!(progress.begun_ms, Some(begun_ms), "at {now_ms}");
        }
    }
}
