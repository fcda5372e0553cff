//! Which tasks an operation changes: [`OperationFilter`].

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    fingerprint::Fingerprint,
    id::QueueName,
    operation::OperationAct,
    state::{Reason, TaskState},
    task_page::TaskRow,
};

/// The longest text of a filter, in bytes.
const TEXT_BYTES_MAX: usize = 1_024;
/// The most queues and headers that a filter names.
const NAMES_MAX: usize = 1_000;

/// Which tasks an [operation](crate::Operations) changes. A task must match all that is set.
///
/// ```
/// # use optimus_core as optimus;
/// use std::time::Duration;
///
/// use optimus::{OperationFilter, TaskState};
///
/// let filter = OperationFilter::of(TaskState::Dead)
///     .queue("mail")?
///     .task("welcome")
///     .older(Duration::from_secs(3_600));
/// # drop(filter);
/// # Ok::<(), optimus::Error>(())
/// ```
// A program that does not know a field would change more tasks than are meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationFilter {
    /// The queues; all if there is none.
    pub(crate) queues: Vec<QueueName>,
    pub(crate) states: Vec<TaskState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fingerprint: Option<Fingerprint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<Reason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) older_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) headers: Vec<(String, Option<String>)>,
    /// The task has ended at or after this ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) since_ms: Option<u64>,
}

impl OperationFilter {
    /// All tasks of all queues in this state.
    pub fn of(state: TaskState) -> Self {
        Self {
            queues: Vec::new(),
            states: vec![state],
            task: None,
            fingerprint: None,
            cause: None,
            text: None,
            older_ms: None,
            headers: Vec::new(),
            since_ms: None,
        }
    }

    /// Also tasks in this state.
    #[must_use]
    pub fn or(mut self, state: TaskState) -> Self {
        if !self.states.contains(&state) {
            self.states.push(state);
        }
        self
    }

    /// Tasks of this queue; of several, if it is called again.
    ///
    /// # Errors
    /// [`Error::is_invalid`] if no queue can have this name.
    pub fn queue(mut self, queue: impl AsRef<str>) -> Result<Self, Error> {
        let queue = QueueName::new(queue.as_ref())?;
        if !self.queues.contains(&queue) {
            self.queues.push(queue);
        }
        Ok(self)
    }

    /// Returns the queues that were named; none for all queues.
    pub fn named_queues(&self) -> &[QueueName] {
        &self.queues
    }

    /// Tasks of this name.
    #[must_use]
    pub fn task(mut self, name: impl Into<String>) -> Self {
        self.task = Some(name.into());
        self
    }

    /// Tasks whose last error has this fingerprint.
    #[must_use]
    pub fn fingerprint(mut self, fingerprint: Fingerprint) -> Self {
        self.fingerprint = Some(fingerprint);
        self
    }

    /// Tasks whose last attempt ended so.
    #[must_use]
    pub fn cause(mut self, cause: Reason) -> Self {
        self.cause = Some(cause);
        self
    }

    /// Tasks whose last error has this text in its first 200 characters.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Tasks that ended at least this long before they are counted; those that have not ended: that
    /// were submitted so long before.
    #[must_use]
    pub fn older(mut self, age: Duration) -> Self {
        self.older_ms = Some(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Tasks whose submit had this header; with any value, if it is `None`. May be repeated.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: Option<String>) -> Self {
        self.headers.push((name.into(), value));
        self
    }

    /// Returns the queues; all are meant if there is none.
    pub fn queues(&self) -> &[QueueName] {
        &self.queues
    }

    /// Returns whether it names no more than queues and states.
    pub fn is_all(&self) -> bool {
        let Self { task, fingerprint, cause, text, older_ms, headers, since_ms, .. } = self;
        let is_any_error = fingerprint.is_none() && cause.is_none() && text.is_none();
        let is_any_age = older_ms.is_none() && since_ms.is_none();
        task.is_none() && is_any_error && is_any_age && headers.is_empty()
    }

    /// Returns whether a task matches all but the queues and states, at that time of Redis.
    pub fn takes(&self, row: &TaskRow, now: DateTime<Utc>) -> bool {
        let error = row.last_error.as_ref();
        let since = if row.state.is_terminal() { row.at } else { row.created };
        let age_ms = |since: DateTime<Utc>| (now - since).num_milliseconds();
        let is_old = |older: u64| {
            since.is_some_and(|since| u64::try_from(age_ms(since)).is_ok_and(|age| age >= older))
        };
        let is_late = |ms: u64| since.is_some_and(|since| ms_of(since) >= ms);
        self.task.as_ref().is_none_or(|task| row.task.as_ref() == Some(task))
            && self.older_ms.is_none_or(is_old)
            && self.since_ms.is_none_or(is_late)
            && self.text.as_ref().is_none_or(|text| error.is_some_and(|e| e.message.contains(text)))
            && self.cause.is_none_or(|cause| error.is_some_and(|error| error.reason == cause))
            && self.fingerprint.is_none_or(|print| error.and_then(|e| e.fingerprint) == Some(print))
            && self.headers.iter().all(|(name, wanted)| {
                let header = row.headers.get(name);
                header.is_some_and(|value| wanted.as_ref().is_none_or(|wanted| wanted == value))
            })
    }

    /// Returns whether the task was there before the cut-off. One of which no time is known counts
    /// as later: nobody could say whether it was counted.
    pub(crate) fn was_there(row: &TaskRow, cut_off_ms: u64) -> bool {
        let since = if row.state.is_terminal() { row.at } else { row.created };
        // A retry that has run since then is not the one that was counted.
        let failed = row.last_error.as_ref().map(|error| error.at);
        let failed = failed.filter(|_| row.state == TaskState::Retry);
        let mut known = [since, failed].into_iter().flatten().peekable();
        known.peek().is_some() && known.all(|at| ms_of(at) <= cut_off_ms)
    }

    /// Checks the filter of an operation, and sorts it into the order in which tasks are read: a
    /// task that becomes ready meanwhile is met later.
    pub(crate) fn checked(mut self, act: OperationAct) -> Result<Self, Error> {
        let allowed = act.states();
        if let Some(state) = self.states.iter().find(|state| !allowed.contains(state)) {
            return Err(Error::invalid(format!(
                "an operation can't {} tasks in state {state}; use {}",
                act.verb(),
                allowed.iter().map(|state| state.as_str()).collect::<Vec<_>>().join(", ")
            )));
        }
        self.states.sort_by_key(|state| allowed.iter().position(|known| known == state));
        self.queues.sort();
        let texts = [self.task.as_ref(), self.text.as_ref()].into_iter().flatten();
        let headers = self.headers.iter().flat_map(|(name, value)| [Some(name), value.as_ref()]);
        let is_long = texts.chain(headers.flatten()).any(|text| text.len() > TEXT_BYTES_MAX);
        if is_long || self.queues.len() > NAMES_MAX || self.headers.len() > NAMES_MAX {
            return Err(Error::invalid(
                "a text of the filter of an operation is longer than 1 KiB, or it names more than \
                 1,000 queues or headers",
            ));
        }
        Ok(self)
    }
}

pub(crate) fn ms_of(at: DateTime<Utc>) -> u64 {
    u64::try_from(at.timestamp_millis()).unwrap_or_default()
}
