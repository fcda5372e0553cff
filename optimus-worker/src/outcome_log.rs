//! The outcome of an attempt, as it is logged: [`Outcome`].
//!
//! Each attempt that ends has one event, and so has each task that dies without an attempt. The
//! calls of a run that end in the same way have one together. The event is in no span, and all
//! facts are its fields, so the event is the same at every level.

use std::time::Duration;

use optimus_core::{
    AttemptError, Reason, TaskId, TaskState,
    broker::{Failure, FailureOutcome, Give, Lost},
};
use tracing::{Level, level_filters::LevelFilter};

use crate::{
    attempts::Attempt,
    decide_outcome::{Decision, Report},
    marked_dead::Marked,
    run_log::Calls,
    shared::Shared,
};

/// How an attempt ended, and what happens to its task.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The attempt succeeded. The success is logged at this level.
    Success(Level),
    /// Another attempt follows.
    Retry {
        next_in: Duration,
        why: Why,
        error: Cause,
    },
    Dead(Cause),
    Cancelled(Cause),
    Snoozed {
        next_in: Duration,
        because: Option<Box<str>>,
    },
    /// The attempt was interrupted, and does not count.
    GivenBack,
    /// The lease is over, so no report was sent, or Redis refused the report.
    Stale,
    /// Redis did not answer the report before the worker ended.
    Unanswered,
}

/// Why another attempt follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Failed,
    /// The handler asked for another attempt and its wait.
    Asked,
    /// The worker was lost, or its process was stopped for so long that it may have been.
    Lost,
}

/// The cause of the outcome. `None` if the event is not logged.
type Cause = Option<Box<AttemptError>>;

/// Returns the cause in an entry of the error history.
fn cause(entry: &str) -> Cause {
    let mut cause: AttemptError = serde_json::from_str(entry).ok()?;
    cause.message = one_line(&cause.message);
    Some(Box::new(cause))
}

/// Joins the texts of an error and its sources. In the error history, each source has its own line,
/// but a field of an event has only one line.
pub(crate) fn one_line(entry: &str) -> String {
    entry.replace("\n  caused by: ", ": ")
}

/// The attempt that ended.
#[derive(Debug)]
pub(crate) struct End<'a> {
    id: &'a TaskId,
    task: Option<&'a str>,
    attempt: u32,
    run_ms: Option<u64>,
    wait_ms: Option<u64>,
    /// The calls of a run that ended so, if they were gathered.
    calls: Option<&'a Calls>,
}

impl<'a> End<'a> {
    pub(crate) fn of(attempt: &'a Attempt, run: Duration, calls: Option<&'a Calls>) -> Self {
        Self {
            id: &attempt.lease.id,
            task: Some(attempt.facts.task),
            attempt: attempt.facts.attempt,
            run_ms: Some(millis(run)),
            wait_ms: attempt.facts.wait.map(millis),
            calls,
        }
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Outcome {
    /// Returns the outcome that follows from a decision. `success` is the level at which a success
    /// is logged.
    pub(crate) fn of(decision: Option<&Decision>, success: Level) -> Self {
        let Some(decision) = decision else { return Self::Stale };
        match &decision.report {
            Report::Complete(_) => Self::Success(success),
            Report::Fail(failure) => Self::failed(failure, Some(decision)),
            Report::Release(release) => match release.give {
                Give::Snooze(next_in) => {
                    Self::Snoozed { next_in, because: decision.because.clone() }
                }
                Give::Head | Give::Interrupted | Give::Misfit(_) => Self::GivenBack,
            },
        }
    }

    /// Returns the outcome of a failure. `decision` is the decision of this worker that led to it.
    pub(crate) fn failed(failure: &Failure, decision: Option<&Decision>) -> Self {
        let asked = decision.is_some_and(|decision| decision.asked.is_some());
        let why = if asked { Why::Asked } else { Why::Failed };
        let outcome = match failure.outcome {
            FailureOutcome::Retry(next_in) => Self::Retry { next_in, why, error: None },
            FailureOutcome::Lost => {
                Self::Retry { next_in: Duration::ZERO, why: Why::Lost, error: None }
            }
            FailureOutcome::Dead | FailureOutcome::Expired => Self::Dead(None),
            FailureOutcome::Cancelled | FailureOutcome::Unstarted => Self::Cancelled(None),
        };
        if LevelFilter::current() < outcome.level() {
            return outcome;
        }
        let error = cause(&failure.error);
        match outcome {
            Self::Retry { next_in, why, .. } => Self::Retry { next_in, why, error },
            Self::Dead(_) => Self::Dead(error),
            _ => Self::Cancelled(error),
        }
    }

    /// The outcome of a report for a task that was asked to stop; `failure`: if it is one.
    pub(crate) fn cancelled(failure: Option<&Failure>) -> Self {
        let cancelled = |failure: &Failure| {
            let failure = Failure { outcome: FailureOutcome::Cancelled, ..failure.clone() };
            Self::failed(&failure, None)
        };
        failure.map_or(Self::Cancelled(None), cancelled)
    }

    /// The outcome of a failure whose task Redis has marked Dead.
    pub(crate) fn dead(failure: &Failure) -> Self {
        Self::failed(&Failure { outcome: FailureOutcome::Dead, ..failure.clone() }, None)
    }

    pub(crate) fn level(&self) -> Level {
        match self {
            Self::Dead(_) => Level::ERROR,
            Self::Retry { why: Why::Failed | Why::Lost, .. } | Self::Stale | Self::Unanswered => {
                Level::WARN
            }
            Self::Retry { why: Why::Asked, .. }
            | Self::Cancelled(_)
            | Self::Snoozed { .. }
            | Self::GivenBack => Level::INFO,
            Self::Success(level) => *level,
        }
    }

    /// Returns whether the attempt is reported as lost.
    pub(crate) fn is_loss(&self) -> bool {
        matches!(self, Self::Retry { why: Why::Lost, .. })
    }

    /// Logs the event. This calls the subscriber, which is user code.
    pub(crate) fn log(&self, end: &End<'_>) {
        macro_rules! log {
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
                    calls = end.calls.map(|calls| calls.count),
                    others = end.calls.and_then(Calls::others),
                    $($($field)+,)?
                    $text
                )
            };
        }
        let (reason, error) = (self.reason().map(Reason::as_str), self.error());
        let next_in_ms = self.next_in().map(millis);
        match self {
            Self::Success(Level::INFO) => log!(INFO, "success", "succeeded"),
            Self::Success(_) => log!(DEBUG, "success", "succeeded"),
            Self::Retry { why: Why::Lost, .. } => {
                let text = "the worker was lost; the task will be retried";
                log!(WARN, "retry", "{text}", reason, next_in_ms, error);
            }
            Self::Retry { why: Why::Failed, .. } => {
                log!(WARN, "retry", "failed; will be retried", reason, next_in_ms, error);
            }
            Self::Retry { why: Why::Asked, .. } => {
                let text = "will be retried after the wait that the handler asked for";
                log!(INFO, "retry", "{text}", next_in_ms, error);
            }
            Self::Dead(_) => log!(ERROR, "dead", "dead", reason, error),
            Self::Cancelled(_) => log!(INFO, "cancelled", "cancelled", error),
            Self::Snoozed { .. } => log!(INFO, "snoozed", "snoozed", next_in_ms, error),
            Self::GivenBack => {
                log!(INFO, "given_back", "interrupted and given back; the attempt does not count");
            }
            Self::Stale => {
                log!(WARN, "stale", "the lease is over; the outcome here does not count");
            }
            Self::Unanswered => {
                let text = "Redis did not answer the report before the worker ended; if Redis has \
                            the report, the outcome counts, otherwise the task runs again";
                log!(WARN, "unanswered", "{text}");
            }
        }
    }

    /// Returns how long the task waits for its next attempt.
    fn next_in(&self) -> Option<Duration> {
        match self {
            Self::Retry { next_in, .. } | Self::Snoozed { next_in, .. } => Some(*next_in),
            _ => None,
        }
    }

    fn cause(&self) -> Option<&AttemptError> {
        match self {
            Self::Retry { error, .. } | Self::Dead(error) | Self::Cancelled(error) => {
                error.as_deref()
            }
            Self::Success(_)
            | Self::Snoozed { .. }
            | Self::GivenBack
            | Self::Stale
            | Self::Unanswered => None,
        }
    }

    pub(crate) fn reason(&self) -> Option<Reason> {
        self.cause().map(|cause| cause.reason)
    }

    /// The text of its error.
    pub(crate) fn error(&self) -> Option<&str> {
        match self {
            Self::Snoozed { because, .. } => because.as_deref(),
            _ => self.cause().map(|cause| cause.message.as_str()),
        }
    }
}

/// Logs and counts a task that dies without an attempt.
pub(crate) fn log_marked_dead(shared: &Shared, id: TaskId, marked: Marked, outcome: Outcome) {
    let Marked { task, attempt } = marked;
    shared.tally.count(&outcome);
    shared.task_tallies.count_without_attempt(shared, (&id, task.as_deref()), &outcome, 0);
    log_ended(shared, outcome, (id, task, attempt), None);
}

/// Logs and counts an attempt that was lost with its worker, or these calls of a run.
/// This worker took the tasks back.
pub(crate) fn log_lost(shared: &Shared, lost: Lost, calls: Option<Calls>) {
    let Lost { id, worker, task, attempt, state, .. } = lost;
    let error = Some(Box::new(AttemptError::lost(worker.to_string(), attempt)));
    let outcome = match state {
        TaskState::Dead => Outcome::Dead(error),
        TaskState::Cancelled => Outcome::Cancelled(error),
        _ => Outcome::Retry { next_in: Duration::ZERO, why: Why::Lost, error },
    };
    for _ in 0..calls.as_ref().map_or(1, |calls| calls.count) {
        shared.tally.count_lost(&outcome);
        shared.task_tallies.count_without_attempt(shared, (&id, task.as_deref()), &outcome, 1);
    }
    log_ended(shared, outcome, (id, task, attempt), calls);
}

/// Runs on the log's thread.
fn log_ended(
    shared: &Shared,
    outcome: Outcome,
    (id, task, attempt): (TaskId, Option<String>, u32),
    calls: Option<Calls>,
) {
    if outcome.level() > LevelFilter::current() {
        return;
    }
    let bytes = outcome.error().map_or(0, str::len);
    shared.log.add_all(vec![outcome], bytes, move |outcome| {
        let (task, calls) = (task.as_deref(), calls.as_ref());
        outcome.log(&End { id: &id, task, attempt, run_ms: None, wait_ms: None, calls });
    });
}
