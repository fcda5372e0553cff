//! The state of a task: [`TaskState`], and why it is Dead: [`Reason`].

use std::{fmt, str::FromStr};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{Error, after::Prerequisite, fingerprint::Fingerprint, platform};

/// The state of a task. A task is in exactly one state.
///
/// `Failed`, `timed out`, `lost` and similar words are not states but [`Reason`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskState {
    /// The task was submitted with a delay, or was snoozed, and waits for its due time. When it is
    /// due, a claim moves it to `Ready`, or to `Blocked` if its lane has no room. `cancel` ends
    /// this state, too.
    Delayed,
    /// The task waits for its [prerequisites](crate::Call::after), in its lane until another task
    /// of the lane ends, or for a limit or the end of a pause. A submit, a claim, or an operator's
    /// requeue leads to this state. The report that ends the other task moves it to `Ready`, or to
    /// `Delayed` if it is not due, and a claim takes it when its limits let it start. `cancel` ends
    /// this state, too.
    Blocked,
    /// The task is in the ready list. A submit, a release, a lost lease or an operator's requeue
    /// leads to this state. A claim or `cancel` ends it.
    Ready,
    /// One worker holds the task with a lease. The worker's report ends this state, or the reaper
    /// when the lease is over.
    Working,
    /// An attempt failed, and the task waits for the next one. A claim ends this state when the
    /// task is due, and so does `cancel`.
    Retry,
    /// The task has succeeded. This state is final; summaries of the last 1,000 successes are kept.
    Success,
    /// The task ended without success: it has no retries left, was lost too often, expired, or is
    /// undecodable or unknown. It is kept with its arguments and errors until an operator requeues
    /// it or the janitor purges it.
    Dead,
    /// The task ended by request, before or during an attempt. It is kept like a `Dead` task, and
    /// may be requeued.
    Cancelled,
    /// The store has no data about the task: it ended and its history was removed, or it never
    /// existed. The store does not know which of the two happened.
    Forgotten,
}

impl TaskState {
    /// Every state that a task can be found in.
    pub const ALL: [Self; 8] = [
        Self::Delayed,
        Self::Blocked,
        Self::Ready,
        Self::Working,
        Self::Retry,
        Self::Success,
        Self::Dead,
        Self::Cancelled,
    ];

    /// Returns whether no worker runs the task again unless an operator requeues it.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Success | Self::Dead | Self::Cancelled | Self::Forgotten)
    }

    /// Returns the word for this state in scripts, logs and the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delayed => "delayed",
            Self::Blocked => "blocked",
            Self::Ready => "ready",
            Self::Working => "working",
            Self::Retry => "retry",
            Self::Success => "success",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
            Self::Forgotten => "forgotten",
        }
    }

    /// Returns the state of that word, as scripts return it.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().chain([Self::Forgotten]).find(|state| state.as_str() == word)
    }
}

/// Reads the words of [`TaskState::as_str`].
///
/// ```
/// # use optimus_core as optimus;
/// use optimus::TaskState;
///
/// assert_eq!("dead".parse::<TaskState>().unwrap(), TaskState::Dead);
/// assert!("failed".parse::<TaskState>().unwrap_err().is_invalid());
/// ```
impl FromStr for TaskState {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self, Error> {
        Self::from_word(word).ok_or_else(|| {
            let words = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid(format!("{word:?} is not a state of a task; use one of {words}"))
        })
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why an attempt did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// The handler returned an error.
    Failed,
    /// The handler was still running at its deadline.
    TimedOut,
    /// The handler panicked.
    Panicked,
    /// The worker's lease ended while it held the task, or the worker ended and dropped a handler
    /// whose task has [`OnLost::Dead`](crate::OnLost::Dead).
    Lost,
    /// The stored arguments do not fit the handler's parameters.
    Undecodable,
    /// For a whole `misfit_grace`, no worker knew the task's name or the version of its record.
    Unknown,
    /// The task was not started within its `expires_in`.
    Expired,
    /// The handler succeeded, but its result is larger than the worker's limit.
    ResultTooLarge,
    /// Redis refused the report of its outcome, while it accepted those of other tasks.
    Unreported,
    /// A prerequisite of the task has not succeeded: it ended otherwise, or the task gave up.
    Unmet,
}

impl Reason {
    /// Every reason.
    const ALL: [Self; 10] = [
        Self::Failed,
        Self::TimedOut,
        Self::Panicked,
        Self::Lost,
        Self::Undecodable,
        Self::Unknown,
        Self::Expired,
        Self::ResultTooLarge,
        Self::Unreported,
        Self::Unmet,
    ];

    /// Returns the reason of that word.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }

    /// Returns the word for this reason, as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Panicked => "panicked",
            Self::Lost => "lost",
            Self::Undecodable => "undecodable",
            Self::Unknown => "unknown",
            Self::Expired => "expired",
            Self::ResultTooLarge => "result_too_large",
            Self::Unreported => "unreported",
            Self::Unmet => "unmet",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_str().replace('_', " "))
    }
}

/// One entry of a task's error history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredError")]
pub struct AttemptError {
    /// Why the attempt did not succeed.
    pub reason: Reason,
    /// The error and its sources, each on a line of its own, the panic's place and text
    /// (`at src/jobs.rs:12:5: text`), or which worker was lost; at most 8 KiB.
    pub message: String,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The worker that ran it.
    pub worker: String,
    /// When the error was recorded, by Redis' clock.
    #[serde(rename = "at_ms", serialize_with = "chrono::serde::ts_milliseconds::serialize")]
    pub at: DateTime<Utc>,
    /// What failures with the same cause have in common. `None` if no worker wrote the entry, such
    /// as for a loss, or one of an earlier release. Scripts look for it at the end of the entry.
    #[serde(rename = "fp", skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
}

impl AttemptError {
    /// Returns the error as JSON for operators. The stored form has a shorter name for the
    /// fingerprint.
    #[doc(hidden)]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "reason": self.reason,
            "message": self.message,
            "attempt": self.attempt,
            "worker": self.worker,
            "at_ms": self.at.timestamp_millis(),
            "fingerprint": self.fingerprint,
        })
    }

    /// Returns the queue of the prerequisite that the message names, if the task has ended because
    /// of one. This method is for the other Optimus crates.
    #[doc(hidden)]
    pub fn prerequisite_queue(&self) -> Option<&str> {
        if self.reason != Reason::Unmet {
            return None;
        }
        let message = self.message.strip_prefix(GAVE_UP).unwrap_or(&self.message);
        let (queue, _) = message.strip_prefix(THE_PREREQUISITE)?.split_once('/')?;
        Some(queue)
    }
}

/// What a message about a prerequisite begins with.
const THE_PREREQUISITE: &str = "the prerequisite ";
const GAVE_UP: &str = "it gave up: ";

/// An [`AttemptError`] as it is stored: scripts store no message for a loss, and none for a task
/// whose prerequisite has not succeeded.
#[derive(Deserialize)]
struct StoredError {
    reason: Reason,
    #[serde(default)]
    message: String,
    attempt: u32,
    worker: String,
    #[serde(default)]
    at_ms: u64,
    /// The prerequisite that has not succeeded.
    #[serde(default, rename = "ref")]
    prerequisite: Option<String>,
    /// The state in which the prerequisite ended; another word if it has not ended.
    #[serde(default)]
    state: String,
    #[serde(default, rename = "fp")]
    fingerprint: String,
}

impl StoredError {
    /// Returns the message of a task whose prerequisite has not succeeded.
    fn unmet(&self) -> Option<String> {
        let reference = self.prerequisite.as_ref()?;
        let prerequisite = Prerequisite::from_reference(reference)
            .map_or_else(|| reference.clone(), |known| known.to_string());
        let ended = TaskState::from_word(&self.state).filter(|state| state.is_terminal());
        Some(match ended {
            Some(state) => format!("{THE_PREREQUISITE}{prerequisite} is {state}"),
            None => {
                format!("{GAVE_UP}{THE_PREREQUISITE}{prerequisite} has not succeeded in time")
            }
        })
    }
}

impl AttemptError {
    /// Returns the error of an attempt whose worker was lost. This method is for the other Optimus
    /// crates.
    #[doc(hidden)]
    pub fn lost(worker: String, attempt: u32) -> Self {
        let message =
            format!("worker {worker} was not heard from for a whole lease in attempt {attempt}");
        let at = DateTime::UNIX_EPOCH;
        Self { reason: Reason::Lost, message, attempt, worker, at, fingerprint: None }
    }
}

impl From<StoredError> for AttemptError {
    fn from(stored: StoredError) -> Self {
        let unmet = stored.unmet();
        let StoredError { reason, message, attempt, worker, at_ms, fingerprint, .. } = stored;
        let fingerprint = fingerprint.parse().ok();
        let at = platform::instant(at_ms);
        let message = unmet.unwrap_or(message);
        if reason == Reason::Lost && message.is_empty() {
            return Self { at, ..Self::lost(worker, attempt) };
        }
        Self { reason, message, attempt, worker, at, fingerprint }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_and_reason_has_a_word_and_three_states_are_final() {
        for state in TaskState::ALL {
            assert_eq!(TaskState::from_word(&state.to_string()), Some(state));
        }
        let ends = [TaskState::Success, TaskState::Dead, TaskState::Cancelled];
        for state in TaskState::ALL {
            assert_eq!(state.is_terminal(), ends.contains(&state), "{state}");
        }
        let json = serde_json::to_string(&Reason::TimedOut).unwrap();
        assert_eq!(json, format!("\"{}\"", Reason::TimedOut.as_str()));
    }

    #[test]
    fn a_stored_unmet_prerequisite_is_read_with_a_message_that_names_it() {
        let read = |reference: &str, state: &str| {
            let known = r#""reason":"unmet","attempt":0,"worker":"""#;
            let stored = format!("{{{known},\"ref\":\"{reference}\",\"state\":\"{state}\"}}");
            serde_json::from_str::<AttemptError>(&stored).unwrap()
        };
        let dead = read("shop/reserve:o-17", "dead");
        assert_eq!(dead.reason, Reason::Unmet);
        let message = "the prerequisite shop/reserve with biz id \"o-17\" is dead";
        assert_eq!(dead.message, message);
        let late = "it gave up: the prerequisite shop/reserve with biz id \"o-17\" has not \
                    succeeded in time";
        assert_eq!(read("shop/reserve:o-17", "waiting").message, late);
        assert_eq!(read("shop/reserve:o-17", "waiting").prerequisite_queue(), Some("shop"));
        assert_eq!(dead.prerequisite_queue(), Some("shop"));
        assert_eq!(read("?", "cancelled").prerequisite_queue(), None);
        assert_eq!(read("?", "cancelled").message, "the prerequisite ? is cancelled");
    }

    #[test]
    fn a_stored_loss_is_read_with_a_message_that_names_the_worker() {
        let stored = r#"{"reason":"lost","attempt":3,"worker":"vm-7"}"#;
        let read: AttemptError = serde_json::from_str(stored).unwrap();
        let message = "worker vm-7 was not heard from for a whole lease in attempt 3";
        assert_eq!((read.message.as_str(), read.attempt), (message, 3));
        let again: AttemptError =
            serde_json::from_str(&serde_json::to_string(&read).unwrap()).unwrap();
        assert_eq!(again, read);
    }
}
