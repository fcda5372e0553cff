//! What the end of a run means for each of its calls: [`of_call`].
//!
//! The end is decided once, for the attempt that leads. All calls get the same result, wait or
//! error, but each has its own retries and its own options.

use std::{sync::Arc, time::Duration};

use optimus_core::{
    AttemptError, Reason,
    broker::{Completion, Failure, FailureOutcome, Give, Release},
};

use crate::{
    attempts::{Attempt, Stop},
    decide_outcome::{self, Decision, Report},
    success,
};

/// Returns the attempt and the calls that follow it in its run.
pub(crate) fn calls(attempt: &Attempt) -> impl Iterator<Item = CallOf<'_>> {
    let followers = attempt.followers().into_iter().map(CallOf::Follower);
    std::iter::once(CallOf::Leader(attempt)).chain(followers)
}

/// One call of a run.
pub(crate) enum CallOf<'a> {
    Leader(&'a Attempt),
    Follower(Arc<Attempt>),
}

impl std::ops::Deref for CallOf<'_> {
    type Target = Attempt;

    fn deref(&self) -> &Attempt {
        match self {
            Self::Leader(attempt) => attempt,
            Self::Follower(attempt) => attempt,
        }
    }
}

/// Returns what is reported of a call, after the decision about its run.
pub(crate) fn of_call(run: Option<&Decision>, call: &Attempt) -> Option<Decision> {
    if call.follows() && matches!(call.stopped(), Some((Stop::Lost, _))) {
        return None;
    }
    let Some(Decision { report, asked, is_fatal, because, .. }) = run else {
        // The lease of the attempt that leads is lost. This call is given back if it is still held.
        return call.follows().then(|| decide_outcome::interrupted(call).into());
    };
    let report = match report {
        Report::Complete(done) => completed(done, call),
        Report::Fail(failure) => failed(failure, asked.as_deref(), call),
        Report::Release(Release { give: Give::Interrupted, .. }) => {
            decide_outcome::interrupted(call)
        }
        Report::Release(release) => {
            Report::Release(Release { lease: call.lease.clone(), give: release.give })
        }
    };
    Some(Decision {
        report,
        asked: asked.clone(),
        is_fatal: *is_fatal,
        because: because.clone(),
        followers: None,
    })
}

/// Returns what is reported of each call: of the attempt that leads, and of those that follow it.
pub(crate) fn of_calls(
    run: Option<Decision>,
    leader: &Attempt,
    followers: &[Arc<Attempt>],
) -> Vec<Option<Decision>> {
    let mut run = run;
    if let Some(own) = run.as_mut().and_then(|decision| decision.followers.take()) {
        let lost = |call: &Attempt| matches!(call.stopped(), Some((Stop::Lost, _)));
        let of_followers = own.into_iter().zip(followers);
        let of_followers = of_followers.map(|(own, call)| own.filter(|_| !lost(call)));
        return std::iter::once(run).chain(of_followers).collect();
    }
    let of_followers = followers.iter().map(|call| of_call(run.as_ref(), call));
    std::iter::once(of_call(run.as_ref(), leader)).chain(of_followers).collect()
}

/// Returns how many retries the call has left that has the fewest.
pub(crate) fn retries_left(leader: &Attempt) -> u32 {
    let left = |call: CallOf<'_>| call.facts.max_retry.saturating_sub(call.facts.failures);
    calls(leader).map(left).min().unwrap_or_default()
}

fn completed(done: &Completion, call: &Attempt) -> Report {
    let result = done.result.as_ref().filter(|_| call.facts.takes_result());
    let result = result.map(|(bytes, _)| bytes.clone());
    Report::Complete(success::completion(call, (done.took, done.ended_ms), result))
}

/// `asked`: the text of the error if the handler asked for a retry and the call has none left.
fn failed(failure: &Failure, asked: Option<&str>, call: &Attempt) -> Report {
    let lease = call.lease.clone();
    let Ok(entry) = serde_json::from_str::<AttemptError>(&failure.error) else {
        // A cancelled call has no error.
        return Report::Fail(Failure { lease, shut: None, ..failure.clone() });
    };
    if failure.outcome == FailureOutcome::Lost {
        return decide_outcome::interrupted_by(Some(Stop::Frozen), call);
    }
    if entry.reason == Reason::Lost {
        return decide_outcome::interrupted(call);
    }
    let outcome = match failure.outcome {
        FailureOutcome::Retry(wait) if decide_outcome::has_retries_left(&call.facts) => {
            FailureOutcome::Retry(wait)
        }
        FailureOutcome::Retry(_) => FailureOutcome::Dead,
        other => other,
    };
    let error = if let Some(text) = asked.filter(|_| outcome == FailureOutcome::Dead) {
        decide_outcome::error(call, entry.reason, text)
    } else {
        let error = AttemptError { attempt: call.facts.attempt, ..entry };
        serde_json::to_string(&error).expect("plain fields")
    };
    // One pause is enough.
    let shut = failure.shut.clone().filter(|_| !call.follows());
    Report::Fail(Failure { lease, outcome, shut, error })
}

/// Returns how long the longest result of a call is needed; zero if nobody gets it.
pub(crate) fn result_needed(attempt: &Attempt) -> Duration {
    calls(attempt).map(|call| call.facts.result_needed()).max().unwrap_or_default()
}

#[cfg(test)]
#[path = "run_outcome_tests.rs"]
pub(crate) mod run_tests;
