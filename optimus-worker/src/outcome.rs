//! What became of an attempt, as the log tells it: [`Outcome`].
//!
//! There is one event for each attempt that ends and for each task that dies without one. All that
//! it says are its own fields, outside of any span, so that it says the same at every level.

use std::time::Duration;

use optimus_core::{
    AttemptError, Reason, TaskId, TaskState,
    broker::{Failure, Give, Lost, Verdict},
};
use tracing::{Level, level_filters::LevelFilter};

use crate::{
    attempts::Attempt,
    decide::{Decision, Report},
    shared::Shared,
};

/// What was judged.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It is told at this level.
    Success(Level),
    /// Another attempt follows; `asked`: the handler said when.
    Retry {
        next_in: Duration,
        asked: bool,
        error: Told,
    },
    Dead(Told),
    Cancelled(Told),
    Snoozed(Duration),
    /// It was interrupted, and the attempt does not count.
    GivenBack,
    /// The lease is over: nobody would hear the report, or Redis refused it.
    Lost,
    /// Redis did not answer the report before the worker ended.
    Unanswered,
}

/// Why, where anybody listens.
type Told = Option<Box<AttemptError>>;

/// Of an entry of the error history. Each source of an error has a line of its own there, and a
/// field of an event is read in one.
fn told(entry: &str) -> Told {
    let mut told: AttemptError = serde_json::from_str(entry).ok()?;
    told.message = told.message.replace("\n  caused by: ", ": ");
    Some(Box::new(told))
}

/// The attempt that ended.
#[derive(Debug)]
pub(crate) struct End<'a> {
    id: &'a TaskId,
    task: Option<&'a str>,
    attempt: u32,
    run_ms: Option<u64>,
    wait_ms: Option<u64>,
}

impl<'a> End<'a> {
    pub(crate) fn of(attempt: &'a Attempt, run: Duration) -> Self {
        Self {
            id: &attempt.lease.id,
            task: Some(attempt.facts.task),
            attempt: attempt.facts.attempt,
            run_ms: Some(millis(run)),
            wait_ms: attempt.facts.wait.map(millis),
        }
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Outcome {
    /// Of what a report says. `success`: the level at which a success is told.
    pub(crate) fn of(decision: Option<&Decision>, success: Level) -> Self {
        let Some(Decision { report, asked }) = decision else { return Self::Lost };
        match report {
            Report::Complete(_) => Self::Success(success),
            Report::Fail(failure) => Self::failed(failure, *asked),
            Report::Release(release) => match release.give {
                Give::Snooze(wait) => Self::Snoozed(wait),
                Give::Head | Give::Interrupted | Give::Misfit(_) => Self::GivenBack,
            },
        }
    }

    pub(crate) fn failed(failure: &Failure, asked: bool) -> Self {
        let outcome = match failure.verdict {
            Verdict::Retry(next_in) => Self::Retry { next_in, asked, error: None },
            Verdict::Dead => Self::Dead(None),
            Verdict::Cancelled => Self::Cancelled(None),
        };
        if LevelFilter::current() < outcome.level() {
            return outcome;
        }
        let told = told(&failure.error);
        match outcome {
            Self::Retry { next_in, asked, .. } => Self::Retry { next_in, asked, error: told },
            Self::Dead(_) => Self::Dead(told),
            _ => Self::Cancelled(told),
        }
    }

    pub(crate) fn level(&self) -> Level {
        match self {
            Self::Dead(_) => Level::ERROR,
            Self::Retry { asked: false, .. } | Self::Lost | Self::Unanswered => Level::WARN,
            Self::Retry { asked: true, .. }
            | Self::Cancelled(_)
            | Self::Snoozed(_)
            | Self::GivenBack => Level::INFO,
            Self::Success(level) => *level,
        }
    }

    /// Calls the subscriber, which is the user's code.
    pub(crate) fn log(&self, end: &End<'_>) {
        macro_rules! say {
            ($level:ident, $outcome:literal, $text:literal $(, $($field:tt)+)?) => {
                tracing::event!(
                    target: "optimus::task",
                    parent: None,
                    Level::$level,
                    outcome = $outcome,
                    task = end.task,
                    id = %end.id,
                    queue = %end.id.queue(),
                    attempt = end.attempt,
                    run_ms = end.run_ms,
                    wait_ms = end.wait_ms,
                    $($($field)+,)?
                    $text
                )
            };
        }
        let (reason, error) = (self.reason().map(Reason::as_str), self.error());
        let next_in_ms = self.next_in().map(millis);
        match self {
            Self::Success(Level::INFO) => say!(INFO, "success", "succeeded"),
            Self::Success(_) => say!(DEBUG, "success", "succeeded"),
            Self::Retry { asked: false, .. } if self.reason() == Some(Reason::Lost) => {
                let text = "its worker was lost; will be retried";
                say!(WARN, "retry", "{text}", reason, next_in_ms, error);
            }
            Self::Retry { asked: false, .. } => {
                say!(WARN, "retry", "failed; will be retried", reason, next_in_ms, error);
            }
            Self::Retry { asked: true, .. } => {
                let text = "will be retried after the wait that it asked for";
                say!(INFO, "retry", "{text}", next_in_ms, error);
            }
            Self::Dead(_) => say!(ERROR, "dead", "dead", reason, error),
            Self::Cancelled(_) => say!(INFO, "cancelled", "cancelled", error),
            Self::Snoozed(_) => say!(INFO, "snoozed", "snoozed", next_in_ms),
            Self::GivenBack => {
                say!(INFO, "given_back", "interrupted and given back; the attempt does not count");
            }
            Self::Lost => {
                say!(WARN, "lost", "its lease is over; how it ended here does not count");
            }
            Self::Unanswered => {
                let text = "Redis did not answer its report before the worker ended; it counts if \
                            Redis has it, else the task runs again";
                say!(WARN, "unanswered", "{text}");
            }
        }
    }

    /// How long the task waits for its next attempt.
    fn next_in(&self) -> Option<Duration> {
        match self {
            Self::Retry { next_in, .. } | Self::Snoozed(next_in) => Some(*next_in),
            _ => None,
        }
    }

    fn told(&self) -> Option<&AttemptError> {
        match self {
            Self::Retry { error, .. } | Self::Dead(error) | Self::Cancelled(error) => {
                error.as_deref()
            }
            Self::Success(_)
            | Self::Snoozed(_)
            | Self::GivenBack
            | Self::Lost
            | Self::Unanswered => None,
        }
    }

    fn reason(&self) -> Option<Reason> {
        self.told().map(|told| told.reason)
    }

    fn error(&self) -> Option<&str> {
        self.told().map(|told| told.message.as_str())
    }
}

/// Tells of a task that dies without an attempt, and counts it.
pub(crate) fn tell_marked_dead(
    shared: &Shared,
    report: &Report,
    task: Option<String>,
    attempt: u32,
) {
    let Report::Fail(failure) = report else { return };
    let outcome = Outcome::failed(failure, false);
    tell_ended(shared, outcome, (failure.lease.id.clone(), task, attempt));
}

/// Tells of an attempt that was lost with its worker, where this worker took the task back.
pub(crate) fn tell_lost(shared: &Shared, lost: Lost) {
    let Lost { id, worker, task, attempt, state } = lost;
    let error = Some(Box::new(AttemptError::lost(worker.to_string(), attempt)));
    let outcome = match state {
        TaskState::Dead => Outcome::Dead(error),
        TaskState::Cancelled => Outcome::Cancelled(error),
        _ => Outcome::Retry { next_in: Duration::ZERO, asked: false, error },
    };
    tell_ended(shared, outcome, (id, task, attempt));
}

/// On the log's thread.
fn tell_ended(
    shared: &Shared,
    outcome: Outcome,
    (id, task, attempt): (TaskId, Option<String>, u32),
) {
    shared.tally.count(&outcome);
    shared.log.tell(outcome.level(), move || {
        let task = task.as_deref();
        outcome.log(&End { id: &id, task, attempt, run_ms: None, wait_ms: None });
    });
}
