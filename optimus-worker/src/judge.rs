//! How an attempt ended → what is reported of it. Pure: no clock, no Redis.

use std::{error::Error, fmt, time::Duration};

use optimus_core::{
    AttemptError, Backoff, Chain, Control, Lease, Reason, RunError, RunOutput,
    broker::{Completion, Failure, Give, Release, Verdict},
};

use crate::attempts::{Attempt, Stop};

/// The longest message that the error history keeps, in bytes.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;

/// What must be known of a task to judge an attempt at it.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) task: &'static str,
    /// From 1; failures and losses so far, and this one.
    pub(crate) attempt: u32,
    pub(crate) failures: u32,
    pub(crate) max_retry: u32,
    pub(crate) backoff: Backoff,
    pub(crate) result_ttl: Duration,
    pub(crate) biz_id: Option<String>,
}

/// How the handler came to an end.
#[derive(Debug)]
pub(crate) enum Ended {
    /// It returned.
    Returned(RunOutput),
    /// It panicked with this text.
    Panicked(String),
    /// Its deadline passed.
    TimedOut,
    /// It was asked to stop, did not, and was dropped.
    Abandoned,
}

/// A report that waits to be sent.
#[derive(Debug, Clone)]
pub(crate) enum Report {
    Complete(Completion),
    Fail(Failure),
    Release(Release),
}

impl Report {
    pub(crate) fn lease(&self) -> &Lease {
        match self {
            Self::Complete(completion) => &completion.lease,
            Self::Fail(failure) => &failure.lease,
            Self::Release(release) => &release.lease,
        }
    }
}

/// A panic or a timeout, as back-off functions see it.
#[derive(Debug)]
struct NoError(String);

impl fmt::Display for NoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for NoError {}

/// The report of an attempt; none if its lease is lost and nobody would hear it.
pub(crate) fn judge(attempt: &Attempt, ended: Ended, random: f64) -> Option<Report> {
    let stop = attempt.stopped().map(|(why, _)| why);
    match (ended, stop) {
        (Ended::Returned(Ok(result)), _) => Some(success(attempt, result)),
        (_, Some(Stop::Lost)) => None,
        (Ended::TimedOut, _) => {
            let message = format!("still running after {:?}", attempt.started_at.elapsed());
            Some(failure(attempt, Reason::TimedOut, &NoError(message), random))
        }
        (_, Some(Stop::Cancelled)) => Some(fail(attempt, Verdict::Cancelled, String::new())),
        // It stopped because it was asked to, for a reason that is not its own.
        (Ended::Returned(Err(_)) | Ended::Abandoned, Some(Stop::Shutdown | Stop::Uncertain)) => {
            Some(give_back(attempt))
        }
        (Ended::Abandoned, _) => Some(give_back(attempt)),
        (Ended::Panicked(text), _) => {
            Some(failure(attempt, Reason::Panicked, &NoError(text), random))
        }
        (Ended::Returned(Err(RunError::Undecodable(problem))), _) => {
            let message = RunError::Undecodable(problem).to_string();
            Some(fail(attempt, Verdict::Dead, error(attempt, Reason::Undecodable, &message)))
        }
        (Ended::Returned(Err(RunError::Failed(problem))), _) => {
            Some(failed(attempt, &*problem, random))
        }
        (Ended::Returned(Err(problem)), _) => {
            Some(failure(attempt, Reason::Failed, &problem, random))
        }
    }
}

fn success(attempt: &Attempt, result: Option<Vec<u8>>) -> Report {
    let facts = &attempt.facts;
    let took = attempt.started_at.elapsed();
    Report::Complete(Completion {
        lease: attempt.lease.clone(),
        task: facts.task,
        biz_id: facts.biz_id.clone(),
        attempt: facts.attempt,
        took,
        ended_ms: attempt.claimed_ms + u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        result: result.filter(|_| !facts.result_ttl.is_zero()).map(|r| (r, facts.result_ttl)),
    })
}

/// The handler's own error, which may say what it wants.
fn failed(attempt: &Attempt, problem: &(dyn Error + 'static), random: f64) -> Report {
    let message = Chain(problem).to_string();
    match Control::of(problem) {
        Control::RetryAfter(wait) if retries_left(&attempt.facts) => fail(
            attempt,
            Verdict::Retry(wait.min(optimus_core::BACKOFF_MAX)),
            error(attempt, Reason::Failed, &message),
        ),
        Control::RetryAfter(_) | Control::Fatal => {
            fail(attempt, Verdict::Dead, error(attempt, Reason::Failed, &message))
        }
        Control::Cancel => {
            fail(attempt, Verdict::Cancelled, error(attempt, Reason::Failed, &message))
        }
        Control::Snooze(wait) => Report::Release(Release {
            lease: attempt.lease.clone(),
            give: Give::Snooze(wait.min(optimus_core::BACKOFF_MAX)),
        }),
        _ => failure(attempt, Reason::Failed, problem, random),
    }
}

/// Retry while retries are left, after the back-off's wait.
fn failure(
    attempt: &Attempt,
    reason: Reason,
    problem: &(dyn Error + 'static),
    random: f64,
) -> Report {
    let facts = &attempt.facts;
    let verdict = if retries_left(facts) {
        Verdict::Retry(facts.backoff.wait(facts.failures + 1, problem, random))
    } else {
        Verdict::Dead
    };
    fail(attempt, verdict, error(attempt, reason, &Chain(problem).to_string()))
}

fn retries_left(facts: &Facts) -> bool {
    facts.failures < facts.max_retry
}

fn fail(attempt: &Attempt, verdict: Verdict, error: String) -> Report {
    Report::Fail(Failure { lease: attempt.lease.clone(), verdict, error })
}

/// To the head of the line, without spending an attempt.
pub(crate) fn give_back(attempt: &Attempt) -> Report {
    Report::Release(Release { lease: attempt.lease.clone(), give: Give::Head })
}

fn error(attempt: &Attempt, reason: Reason, message: &str) -> String {
    error_entry(&attempt.lease, attempt.facts.attempt, reason, message)
}

/// A task that is buried without an attempt.
pub(crate) fn bury(lease: Lease, attempt: u32, reason: Reason, message: &str) -> Report {
    let error = error_entry(&lease, attempt, reason, message);
    Report::Fail(Failure { lease, verdict: Verdict::Dead, error })
}

/// An entry of the error history: JSON without line breaks.
fn error_entry(lease: &Lease, attempt: u32, reason: Reason, message: &str) -> String {
    let mut message = message.to_owned();
    if message.len() > MESSAGE_BYTES_MAX {
        let end = (0..=MESSAGE_BYTES_MAX).rev().find(|at| message.is_char_boundary(*at));
        message.truncate(end.unwrap_or(0));
    }
    let entry =
        AttemptError { reason, message, attempt, worker: lease.worker.to_string(), at_ms: 0 };
    serde_json::to_string(&entry).expect("plain fields")
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
