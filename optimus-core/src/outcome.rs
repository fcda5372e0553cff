//! How an attempt ended, for layers: [`End`].

use std::time::Duration;

use crate::state::AttemptError;

/// The end of an attempt, as its worker has decided it. If the lease was lost and the worker does
/// not know that yet, the report changes nothing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct End {
    /// What happens to the task.
    pub outcome: Outcome,
    /// How long the attempt took, including its layers.
    pub ran: Duration,
    /// For a first attempt: how long the task waited since its submit, including its delay.
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
        /// Counted from the end of this attempt.
        wait: Duration,
        /// Why it failed.
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
    /// The lease was lost, so this attempt does not count. Another one may be running already.
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
