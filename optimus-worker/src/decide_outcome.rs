//! Decides how an attempt is reported, from the way in which it ended: [`decide`]. This code does
//! not call Redis.

use std::{
    error::Error,
    fmt::{Display, Write},
    time::Duration,
};

use optimus_core::{
    AttemptError, BLOB_BYTES_MIN, Backoff, Bounded, Chain, Control, DateTime, Fingerprint,
    Interrupted, Lane, LastChain, Lease, Member, OnLost, PanicPlace, QueueName, Ran, Reason,
    RunError, ShutScope, TEXT_BYTES_MAX,
    broker::{Completion, Failure, FailureOutcome, Give, Release, Shutting, SizeLimit},
    cut, with_place,
};

use crate::{
    attempts::{Attempt, Stop},
    each_call,
    handler_end::HandlerEnd,
    outcome_log::one_line,
    run_outcome,
    success::success,
    user_code::{guarded, panic_text},
};

/// The longest reason of a pause that a handler asks for.
const WHY_CHARS_MAX: usize = 200;
/// How much time a relay has to fetch a large result for the group of the task.
const FETCHED_WITHIN: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const INTERRUPTED: &str = "the worker ended and dropped the handler after it had begun; \
                           on_lost = \"dead\" forbids another start";

const FROZEN: &str = "the worker's process was stopped for about a lease or longer";

/// What [`decide`] must know of a task.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) task: &'static str,
    /// The number of the attempt, from 1: the failures and losses before it, plus one.
    pub(crate) attempt: u32,
    pub(crate) failures: u32,
    pub(crate) max_retry: u32,
    pub(crate) backoff: Backoff,
    pub(crate) result_ttl: Duration,
    /// The most bytes of a result that is kept.
    pub(crate) result_limit: SizeLimit,
    pub(crate) biz_id: Option<String>,
    pub(crate) lane: Option<Lane>,
    pub(crate) outcome_ttl: Option<Duration>,
    pub(crate) member: Option<Member>,
    pub(crate) on_lost: OnLost,
    /// How long the task waited for this attempt, if this is its first.
    pub(crate) wait: Option<Duration>,
    /// Whether Redis keeps more of the task than its record: tries, a blob, or a priority.
    pub(crate) has_sides: bool,
}

impl Facts {
    /// Returns whether anything needs the result: clients, tasks that take it, or its group.
    pub(crate) fn takes_result(&self) -> bool {
        !self.result_ttl.is_zero() || self.outcome_ttl.is_some() || self.member.is_some()
    }

    /// Returns how long the handler's result is needed; zero if nothing needs it.
    pub(crate) fn result_needed(&self) -> Duration {
        if self.takes_result() {
            self.result_ttl.max(Duration::from_millis(1))
        } else {
            self.result_ttl
        }
    }

    /// Returns how long a result of this many bytes is kept. Tasks that take it find it as long as
    /// its outcome is remembered. A group of another queue fetches a large one.
    pub(crate) fn keep(&self, bytes: usize, queue: &QueueName) -> Duration {
        let keep = self.result_ttl.max(self.outcome_ttl.unwrap_or_default());
        let is_fetched = self.member.as_ref().is_some_and(|member| member.group.queue() != queue)
            && bytes > BLOB_BYTES_MIN;
        if is_fetched { keep.max(FETCHED_WITHIN) } else { keep }
    }
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

    /// Returns the bytes of the report without its lease.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Complete(done) => done.result.as_ref().map_or(0, |(bytes, _)| bytes.len()),
            Self::Fail(failure) => failure.error.len(),
            Self::Release(_) => 0,
        }
    }
}

/// What is reported of an attempt.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) report: Report,
    /// The text of the error for a call without a retry, if the handler itself asked for the retry.
    pub(crate) asked: Option<Box<str>>,
    /// Whether the handler itself gave the task up.
    pub(crate) is_fatal: bool,
    /// Why the handler asked for a snooze.
    pub(crate) because: Option<Box<str>>,
    /// What is reported of the calls that follow this one in its run, if the handler returned a
    /// result for each call. Otherwise they end as this one does.
    pub(crate) followers: Option<Vec<Option<Self>>>,
}

impl From<Report> for Decision {
    fn from(report: Report) -> Self {
        Self { report, asked: None, is_fatal: false, because: None, followers: None }
    }
}

/// Returns the report of an attempt. Returns `None` if the lease is lost, because Redis would
/// refuse the report.
pub(crate) fn decide(attempt: &Attempt, ended: &mut HandlerEnd, random: f64) -> Option<Decision> {
    let stop = attempt.stopped().map(|(why, _)| why);
    let failure = |reason, problem: &(dyn Error + 'static)| {
        Some(failure(attempt, attempt.facts.backoff, reason, problem, random))
    };
    let report = match (ended, stop) {
        // This includes a handler that could not be dropped and returned later.
        (_, Some(Stop::TimedOut)) => failure(Reason::TimedOut, &attempt.timed_out()),
        (HandlerEnd::Returned(Ok(Ran::All(result))), _) => Some(success(attempt, result.take())),
        (HandlerEnd::Returned(Ok(Ran::Each(results))), _) => {
            return each_call::decide(attempt, results, random);
        }
        (_, Some(Stop::Lost)) => None,
        (_, Some(Stop::Cancelled)) => Some(cancelled(attempt)),
        (HandlerEnd::TimedOut, _) => failure(Reason::TimedOut, &attempt.timed_out()),
        (HandlerEnd::Abandoned, stop) => Some(interrupted_by(stop, attempt)),
        // The handler stopped because it was asked to, and not for a reason of its own.
        (HandlerEnd::Returned(Err(_)), Some(Stop::Shutdown | Stop::Uncertain | Stop::Frozen))
            if attempt.facts.on_lost == OnLost::Retry =>
        {
            Some(interrupted_by(stop, attempt))
        }
        (HandlerEnd::Panicked(panic, place), _) => {
            Some(panicked(attempt, panic_text(&**panic), place.as_ref(), random))
        }
        (HandlerEnd::Returned(Err(problem)), _) => {
            return Some(of_error(attempt, problem, random));
        }
    };
    report.map(Decision::from)
}

/// Returns the report of a handler that returned an error.
pub(crate) fn of_error(attempt: &Attempt, problem: &RunError, random: f64) -> Decision {
    match problem {
        RunError::Failed(problem) => failed(attempt, &**problem, random),
        RunError::Undecodable(_) => {
            let error = error(attempt, Reason::Undecodable, &text(problem));
            fail(attempt, FailureOutcome::Dead, error).into()
        }
        RunError::Unencodable(_) => {
            failure(attempt, attempt.facts.backoff, Reason::Failed, problem, random).into()
        }
    }
}

/// Returns the report of an attempt that its runtime did not end at the deadline, with a note for
/// the text of its error. The maintenance thread makes this report, so it does not call the user's
/// own back-off.
pub(crate) fn time_out(attempt: &Attempt, note: &str, random: f64) -> Option<Report> {
    match attempt.stopped() {
        Some((Stop::Lost, _)) => return None,
        Some((Stop::Cancelled, _)) => return Some(cancelled(attempt)),
        _ => {}
    }
    let backoff = match attempt.facts.backoff {
        Backoff::Custom(_) => Backoff::default(),
        built_in => built_in,
    };
    let problem = attempt.timed_out();
    let outcome = after_failure(attempt, backoff, &problem, random);
    let message = format!("{problem}{note}");
    Some(fail(attempt, outcome, error(attempt, Reason::TimedOut, &message)))
}

/// Returns the report of a panic. The back-off gets its text alone.
fn panicked(attempt: &Attempt, text: String, place: Option<&PanicPlace>, random: f64) -> Report {
    let message = with_place(place, &text);
    let problem = Interrupted::Panicked(text);
    let outcome = after_failure(attempt, attempt.facts.backoff, &problem, random);
    fail(attempt, outcome, error(attempt, Reason::Panicked, &message))
}

/// Returns the text of an error and the texts of its sources, cut at [`TEXT_BYTES_MAX`]. The
/// error may write any amount of text.
pub(crate) fn text(problem: &(dyn Error + 'static)) -> String {
    bounded(Chain(problem))
}

fn bounded(error: impl Display) -> String {
    let mut text = Bounded::default();
    // Text that does not fit is left out.
    let written = guarded(|| write!(text, "{error}").is_ok());
    let Bounded(mut text) = text;
    if let Err(panic) = written {
        drop(guarded(|| tracing::error!(panic, "the text of an error panicked")));
        text.push_str("(the text of the error panicked: ");
        text.push_str(&panic);
        text.push(')');
    }
    text
}

/// Returns the report of a handler's own error, which may be a control word.
fn failed(attempt: &Attempt, problem: &(dyn Error + 'static), random: f64) -> Decision {
    let message = text(problem);
    // An error whose source panics is not a control word.
    let word = guarded(|| Control::of(problem)).unwrap_or(Control::Fail);
    let asked = matches!(word, Control::RetryAfter(..));
    let asked = asked.then(|| bounded(LastChain(problem)).into_boxed_str());
    let report = match word {
        Control::RetryAfter(wait, scope) => {
            let wait = wait.min(optimus_core::BACKOFF_MAX);
            let (outcome, stored) = if retries_left(attempt) {
                (FailureOutcome::Retry(wait), &*message)
            } else {
                (FailureOutcome::Dead, asked.as_deref().unwrap_or(&message))
            };
            // Without a lane, only this task waits: the others may be those of other tenants.
            let has_gate =
                |scope: &ShutScope| *scope != ShutScope::Lane || attempt.facts.lane.is_some();
            let scope = scope.filter(has_gate);
            Report::Fail(Failure {
                lease: attempt.lease.clone(),
                outcome,
                // The others wait even if this task has no retry left.
                shut: scope.map(|scope| Shutting { scope, wait, why: short(&message) }),
                error: error(attempt, Reason::Failed, stored),
            })
        }
        Control::Fatal => {
            fail(attempt, FailureOutcome::Dead, error(attempt, Reason::Failed, &message))
        }
        Control::Cancel => {
            fail(attempt, FailureOutcome::Cancelled, error(attempt, Reason::Failed, &message))
        }
        Control::Snooze(wait) => Report::Release(Release {
            lease: attempt.lease.clone(),
            give: Give::Snooze(wait.min(optimus_core::BACKOFF_MAX)),
        }),
        _ => failure(attempt, attempt.facts.backoff, Reason::Failed, problem, random),
    };
    // The text of a snooze without a reason has one line, which only repeats the wait.
    let because = matches!(word, Control::Snooze(_)) && message.contains('\n');
    let because = because.then(|| one_line(&message).into());
    Decision { report, asked, is_fatal: word == Control::Fatal, because, followers: None }
}

/// Returns the beginning of an error's text, on one line.
fn short(message: &str) -> String {
    let line = one_line(message).replace(['\n', '\r'], " ");
    line.chars().take(WHY_CHARS_MAX).collect()
}

/// Returns the report of a failure.
fn failure(
    attempt: &Attempt,
    backoff: Backoff,
    reason: Reason,
    problem: &(dyn Error + 'static),
    random: f64,
) -> Report {
    let outcome = after_failure(attempt, backoff, problem, random);
    fail(attempt, outcome, error(attempt, reason, &text(problem)))
}

/// Returns what follows a failure. If retries are left, the task is retried after the wait of its
/// back-off.
fn after_failure(
    attempt: &Attempt,
    backoff: Backoff,
    problem: &(dyn Error + 'static),
    random: f64,
) -> FailureOutcome {
    if retries_left(attempt) {
        let n = attempt.facts.failures + 1;
        let wait = guarded(|| backoff.wait(n, problem, random)).unwrap_or_else(|panic| {
            let text = "the back-off function panicked; the default back-off is used";
            drop(guarded(|| tracing::error!(panic, "{text}")));
            Backoff::default().wait(n, problem, random)
        });
        FailureOutcome::Retry(wait)
    } else {
        FailureOutcome::Dead
    }
}

/// Returns the report of an attempt that was asked to stop and did not succeed.
pub(crate) fn cancelled(attempt: &Attempt) -> Report {
    fail(attempt, FailureOutcome::Cancelled, String::new())
}

/// Returns whether a call of the run may be tried again.
fn retries_left(attempt: &Attempt) -> bool {
    run_outcome::calls(attempt).any(|call| has_retries_left(&call.facts))
}

pub(crate) fn has_retries_left(facts: &Facts) -> bool {
    facts.failures < facts.max_retry
}

pub(crate) fn fail(attempt: &Attempt, outcome: FailureOutcome, error: String) -> Report {
    Report::Fail(Failure { lease: attempt.lease.clone(), outcome, shut: None, error })
}

/// Returns the report of an attempt that the worker interrupted for this reason. It is lost if its
/// process was stopped for so long that another worker may have taken the task back.
pub(crate) fn interrupted_by(stop: Option<Stop>, attempt: &Attempt) -> Report {
    if stop != Some(Stop::Frozen) || attempt.facts.on_lost == OnLost::Dead {
        return interrupted(attempt);
    }
    fail(attempt, FailureOutcome::Lost, error(attempt, Reason::Lost, FROZEN))
}

/// Returns the report of an attempt that the worker interrupted. The task goes back to the front of
/// the ready list, and the attempt does not count. A task that may start only once is marked Dead.
pub(crate) fn interrupted(attempt: &Attempt) -> Report {
    let lease = attempt.lease.clone();
    match attempt.facts.on_lost {
        OnLost::Retry => Report::Release(Release { lease, give: Give::Interrupted }),
        OnLost::Dead => {
            fail(attempt, FailureOutcome::Dead, error(attempt, Reason::Lost, INTERRUPTED))
        }
    }
}

pub(crate) fn error(attempt: &Attempt, reason: Reason, message: &str) -> String {
    error_entry(&attempt.lease, (Some(attempt.facts.task), attempt.facts.attempt), reason, message)
}

/// Returns the report of a task that is marked Dead without an attempt.
pub(crate) fn mark_dead(
    lease: Lease,
    (task, attempt): (Option<&str>, u32),
    reason: Reason,
    message: &str,
) -> Report {
    let error = error_entry(&lease, (task, attempt), reason, message);
    let outcome =
        if reason == Reason::Expired { FailureOutcome::Expired } else { FailureOutcome::Dead };
    Report::Fail(Failure { lease, outcome, shut: None, error })
}

/// Returns an entry of the error history: JSON without line breaks.
fn error_entry(
    lease: &Lease,
    (task, attempt): (Option<&str>, u32),
    reason: Reason,
    message: &str,
) -> String {
    let message = cut(message, TEXT_BYTES_MAX).to_owned();
    let (worker, at) = (lease.worker.to_string(), DateTime::UNIX_EPOCH);
    let fingerprint = Some(Fingerprint::of(task.unwrap_or_default(), reason, &message));
    let entry = AttemptError { reason, message, attempt, worker, at, fingerprint };
    serde_json::to_string(&entry).expect("plain fields")
}

#[cfg(test)]
#[path = "decide_outcome_tests.rs"]
mod tests;
