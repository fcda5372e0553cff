//! How an attempt ended, for layers: [`End`].

use std::time::{Duration, SystemTime};

use crate::{platform, state::AttemptError};

/// The end of an attempt, as Redis has accepted it; see [`Layer::ended`](crate::Layer::ended).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct End {
    /// What happens to the task.
    pub outcome: Outcome,
    /// How long the attempt took, including its layers and its wait for a thread of the runtime.
    pub ran: Duration,
    /// When it was decided how the attempt ended, by the clock of this machine.
    pub at: SystemTime,
    /// How long the task waited from its submit to this claim, including its delay and snoozes;
    /// `None` once an attempt has counted.
    pub waited: Option<Duration>,
}

/// The outcome of an attempt.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Outcome {
    /// The task has succeeded.
    Success,
    /// The attempt failed, and another one follows after this wait.
    Retry {
        /// The wait, counted from the end of this attempt.
        wait: Duration,
        /// The error of this attempt.
        error: AttemptError,
    },
    /// The task is not tried again. This is the error of its last attempt.
    Dead(AttemptError),
    /// The task was cancelled, or cancelled itself.
    Cancelled,
    /// The handler asked to run again after this wait.
    Snoozed(Duration),
    /// The attempt was interrupted and does not count. The task is in the ready list again.
    GivenBack,
    /// The lease was over before the attempt ended, so this attempt does not count. Another one may
    /// be running already.
    Stale,
}

impl End {
    /// Makes an end; for workers.
    #[doc(hidden)]
    pub fn new(outcome: Outcome, ran: Duration, waited: Option<Duration>) -> Self {
        Self { outcome, ran, at: platform::now(), waited }
    }

    /// Returns why the attempt failed, if it did.
    pub fn error(&self) -> Option<&AttemptError> {
        match &self.outcome {
            Outcome::Retry { error, .. } | Outcome::Dead(error) => Some(error),
            _ => None,
        }
    }
}
