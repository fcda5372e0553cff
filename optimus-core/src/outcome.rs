//! How an attempt ended, as layers are told: [`End`].

use std::time::Duration;

use crate::state::AttemptError;

/// The end of an attempt, as its worker has judged it. The report of it changes nothing if the
/// lease was lost and the worker does not know that yet.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct End {
    /// What becomes of the task.
    pub outcome: Outcome,
    /// How long the attempt took, with its layers.
    pub ran: Duration,
    /// Of a first attempt, how long the task waited since its submit, with its delay.
    pub waited: Option<Duration>,
}

/// What an attempt leads to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Outcome {
    /// The task has succeeded.
    Success,
    /// The attempt failed, and another one follows after this wait.
    Retry {
        /// From the end of this one on.
        wait: Duration,
        /// Why it failed.
        error: AttemptError,
    },
    /// The task is not tried again, for this reason.
    Dead(AttemptError),
    /// The task was cancelled, or cancelled itself.
    Cancelled,
    /// The handler asked to come back after this wait.
    Snoozed(Duration),
    /// The attempt was interrupted and does not count; the task is in line again.
    GivenBack,
    /// The lease was lost, so what this attempt did does not count; another may run already.
    Lost,
}

impl End {
    /// For workers.
    #[doc(hidden)]
    pub fn new(outcome: Outcome, ran: Duration, waited: Option<Duration>) -> Self {
        Self { outcome, ran, waited }
    }

    /// Why the attempt failed, if it did.
    pub fn error(&self) -> Option<&AttemptError> {
        match &self.outcome {
            Outcome::Retry { error, .. } | Outcome::Dead(error) => Some(error),
            _ => None,
        }
    }
}
