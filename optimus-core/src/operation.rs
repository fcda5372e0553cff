//! A change of many tasks: [`Operation`], [`OperationAct`], [`OperationState`].

use std::{fmt, iter};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};
use serde_json::{Value, json};

use crate::{
    broker::Act,
    operation_filter::{OperationFilter, ms_of},
    operation_progress::{OperationProblem, OperationSample},
    state::TaskState,
};

/// What an [operation](crate::Operations) does with each task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OperationAct {
    /// Dead and cancelled tasks go back to the ready list, as by
    /// [`Client::requeue`](crate::Client::requeue); those that were cancelled before they were due
    /// are delayed until then.
    Requeue,
    /// Waiting tasks are cancelled, and the workers of running ones are asked to stop them, as by
    /// [`TaskHandle::cancel`](crate::TaskHandle::cancel).
    Cancel,
    /// Tasks are removed with all their data, as by [`Client::delete`](crate::Client::delete).
    Delete,
    /// Delayed tasks and retries are due now, as by [`Client::run_now`](crate::Client::run_now).
    RunNow,
}

impl OperationAct {
    /// Returns the states of the tasks that can be changed so, in the order in which they are read.
    pub fn states(self) -> &'static [TaskState] {
        use TaskState::{Blocked, Cancelled, Dead, Delayed, Ready, Retry, Working};
        match self {
            Self::Requeue => &[Dead, Cancelled],
            Self::Cancel => &[Retry, Delayed, Blocked, Ready, Working],
            Self::Delete => &[Retry, Delayed, Blocked, Ready, Dead, Cancelled],
            Self::RunNow => &[Delayed, Retry],
        }
    }

    /// Returns the word for people.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Requeue => "requeue",
            Self::Cancel => "cancel",
            Self::Delete => "delete",
            Self::RunNow => "run now",
        }
    }

    pub(crate) fn stored(self) -> Act {
        match self {
            Self::Requeue => Act::Requeue,
            Self::Cancel => Act::Cancel,
            Self::Delete => Act::Delete,
            Self::RunNow => Act::RunNow,
        }
    }
}

/// How far an [operation](crate::Operations) is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OperationState {
    /// The tasks are counted. Nothing has changed.
    Counting,
    /// The tasks are counted, and somebody has to confirm it. Nothing has changed.
    Counted,
    /// Tasks are changed.
    Running,
    /// All tasks that matched are changed, or are no longer as they were counted.
    Done,
    /// Somebody has cancelled it. What was changed stays changed.
    Cancelled,
    /// Redis has refused a call in a way that a repeat does not help.
    Failed,
}

/// How long after it was counted an operation can be confirmed, as in `operation_decide.lua`.
const CONFIRMED_WITHIN: TimeDelta = TimeDelta::days(1);

const STATES: [(OperationState, &str); 6] = [
    (OperationState::Counting, "counting"),
    (OperationState::Counted, "counted"),
    (OperationState::Running, "running"),
    (OperationState::Done, "done"),
    (OperationState::Cancelled, "cancelled"),
    (OperationState::Failed, "failed"),
];

impl OperationState {
    /// Returns the stored word.
    pub fn as_str(self) -> &'static str {
        STATES.iter().find(|(state, _)| *state == self).map_or("failed", |(_, word)| word)
    }

    /// Reads a stored word. A state of a later release is none that goes on here.
    pub(crate) fn read(word: &str) -> Self {
        STATES.iter().find(|(_, known)| *known == word).map_or(Self::Failed, |(state, _)| *state)
    }

    /// Returns whether nothing more will change.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled | Self::Failed)
    }
}

impl fmt::Display for OperationState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A change of many tasks, and how far it has come; from [`Operations`](crate::Operations).
///
/// As JSON its times are ms since the Unix epoch, in fields that end in `_ms`, and all texts are
/// texts of tasks and people: a page has to escape them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Operation {
    /// Its id.
    pub id: String,
    /// What it does with each task.
    pub act: OperationAct,
    /// Which tasks it changes.
    pub filter: OperationFilter,
    /// How far it is.
    pub state: OperationState,
    /// Who has asked for it.
    pub who: String,
    /// Why it was confirmed.
    pub reason: String,
    /// How many tasks matched when it counted them; so far, while it counts.
    pub matched: u64,
    /// How many it has looked at to count them.
    pub scanned: u64,
    /// How many it has changed.
    pub done: u64,
    /// How many run, and were asked to stop.
    pub asked_to_stop: u64,
    /// How many it could not change.
    pub refused: u64,
    /// How many were no longer as they were counted: they have left these states, or have ended or
    /// failed once more since then. It has not changed them.
    pub gone: u64,
    /// How many tasks a second it changes.
    pub rate_s: f64,
    /// When it was added, by Redis' clock.
    pub created: DateTime<Utc>,
    /// When it has last come further.
    pub updated: DateTime<Utc>,
    /// Some of the tasks, at most 20.
    pub samples: Vec<OperationSample>,
    /// How many tasks of each name matched; of at most 100 names.
    pub by_task: Vec<(String, u64)>,
    /// Some of the tasks that it could not change, at most 20.
    pub problems: Vec<OperationProblem>,
    /// Why it has failed.
    pub failure: Option<String>,
    /// Which tasks it could not read, such as those of a damaged queue, and why; at most 20 lines.
    /// They are not counted, and stay as they are.
    pub unread: Vec<String>,
    /// When it has changed the first task, in ms; at most a little earlier.
    pub(crate) begun_ms: Option<u64>,
}

impl Operation {
    /// Returns how many of the tasks that matched it has not reached.
    pub fn left(&self) -> u64 {
        let reached = self.done + self.asked_to_stop + self.refused + self.gone;
        self.matched.saturating_sub(reached)
    }

    /// Returns until when it can be [confirmed](crate::Operations::confirm), by Redis' clock;
    /// `None` unless it is counted and not confirmed.
    pub fn confirm_until(&self) -> Option<DateTime<Utc>> {
        let is_counted = self.state == OperationState::Counted;
        // A damaged time may be the last one that there is.
        let until = self.updated.checked_add_signed(CONFIRMED_WITHIN);
        is_counted.then(|| until.unwrap_or(self.updated))
    }

    /// Returns the filter of the tasks that it has cancelled, with which another operation can
    /// requeue them while they are kept; `None` if it has cancelled none. Tasks that match and that
    /// somebody else has cancelled since it began are among them. A task that was cancelled before
    /// it was due is delayed until then.
    pub fn undo(&self) -> Option<OperationFilter> {
        let has_cancelled = self.done + self.asked_to_stop > 0;
        (self.act == OperationAct::Cancel && has_cancelled).then(|| OperationFilter {
            states: vec![TaskState::Cancelled],
            older_ms: None,
            since_ms: Some(self.begun_ms.unwrap_or_else(|| ms_of(self.created))),
            ..self.filter.clone()
        })
    }

    /// Describes in one line what it changes, without how far it is.
    pub fn what(&self) -> String {
        let states: Vec<_> = self.filter.states.iter().map(|state| state.as_str()).collect();
        let queues = match &self.filter.queues[..] {
            [] => "all queues".to_owned(),
            [queue] => format!("queue {queue}"),
            queues => format!("{} queues", queues.len()),
        };
        format!("{} {} tasks of {queues}", self.act.verb(), states.join(", "))
    }

    /// Describes it in one line.
    pub fn text(&self) -> String {
        let what = self.what();
        let Self { matched, done, asked_to_stop, refused, gone, .. } = self;
        let text = match self.state {
            OperationState::Counting => format!("{what}: counting, {matched} so far"),
            OperationState::Counted => format!("{what}: {matched} match, not confirmed"),
            state => format!(
                "{what}: {state}, {} of {matched} changed, {refused} refused, {gone} gone",
                done + asked_to_stop
            ),
        };
        iter::once(&text).chain(&self.unread).cloned().collect::<Vec<_>>().join("; ")
    }

    /// Returns the filter in the form of the JSON.
    fn filter_json(&self) -> Value {
        let filter = &self.filter;
        let one = |all: Vec<&str>| match &all[..] {
            [one] => json!(one),
            _ => Value::Null,
        };
        let queues: Vec<&str> = filter.queues.iter().map(AsRef::as_ref).collect();
        let states: Vec<&str> = filter.states.iter().map(|state| state.as_str()).collect();
        let headers: Vec<String> = filter
            .headers
            .iter()
            .map(|(name, value)| match value {
                Some(value) => format!("{name}={value}"),
                None => name.clone(),
            })
            .collect();
        json!({
            "queue": one(queues.clone()),
            "queues": queues,
            "state": one(states.clone()),
            "states": states,
            "task": filter.task,
            "fingerprint": filter.fingerprint,
            "cause": filter.cause,
            "header": one(headers.iter().map(String::as_str).collect()),
            "headers": headers,
            "older_ms": filter.older_ms,
            "since_ms": filter.since_ms,
            "text": filter.text,
        })
    }
}

impl Serialize for Operation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let by_task: Vec<Value> = self
            .by_task
            .iter()
            .map(|(task, count)| json!({ "task": task, "count": count }))
            .collect();
        let samples: Vec<Value> = self.samples.iter().map(OperationSample::to_json).collect();
        let mut fields = serializer.serialize_struct("Operation", 23)?;
        fields.serialize_field("id", &self.id)?;
        fields.serialize_field("act", &self.act)?;
        fields.serialize_field("filter", &self.filter_json())?;
        fields.serialize_field("state", &self.state)?;
        fields.serialize_field("who", &self.who)?;
        fields.serialize_field("reason", &self.reason)?;
        fields.serialize_field("matched", &self.matched)?;
        fields.serialize_field("scanned", &self.scanned)?;
        fields.serialize_field("done", &self.done)?;
        fields.serialize_field("asked_to_stop", &self.asked_to_stop)?;
        fields.serialize_field("refused", &self.refused)?;
        fields.serialize_field("gone", &self.gone)?;
        fields.serialize_field("left", &self.left())?;
        fields.serialize_field("rate_s", &self.rate_s)?;
        fields.serialize_field("created_ms", &ms_of(self.created))?;
        fields.serialize_field("updated_ms", &ms_of(self.updated))?;
        let confirm_until_ms = self.confirm_until().map(ms_of);
        fields.serialize_field("confirm_until_ms", &confirm_until_ms)?;
        fields.serialize_field("samples", &samples)?;
        fields.serialize_field("by_task", &by_task)?;
        fields.serialize_field("problems", &self.problems)?;
        fields.serialize_field("failure", &self.failure)?;
        fields.serialize_field("unread", &self.unread)?;
        fields.serialize_field("text", &self.text())?;
        fields.end()
    }
}
