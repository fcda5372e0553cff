//! Decides how the calls of a run are reported whose handler returned a result for each of them:
//! [`decide`].

use std::cmp::Reverse;

use optimus_core::{
    CallOutput, OnLost, Reason, RunError,
    broker::{Failure, FailureOutcome, Shutting},
    miscounted,
};

use crate::{
    attempts::{Attempt, Stop},
    decide_outcome::{self, Decision, Report},
    run_outcome::{self, CallOf},
    success,
};

/// Returns what is reported of the attempt that leads, and with it of the others. `None` if the
/// lease of the one that leads is lost, and its own result is an error.
pub(crate) fn decide(
    leader: &Attempt,
    results: &mut [CallOutput],
    random: f64,
) -> Option<Decision> {
    let calls: Vec<CallOf<'_>> = run_outcome::calls(leader).collect();
    if calls.len() != results.len() {
        let problem = RunError::Failed(miscounted(calls.len(), results.len()).into());
        return Some(decide_outcome::of_error(leader, &problem, random));
    }
    let stop = leader.stopped().map(|(why, _)| why);
    let mut decisions: Vec<_> = calls
        .iter()
        .zip(results)
        .map(|(call, result)| of_result(call, result, stop, random))
        .collect();
    pause_once(&mut decisions);
    let followers = decisions.split_off(1);
    let first = decisions.pop().flatten()?;
    Some(Decision { followers: Some(followers), ..first })
}

/// Returns what is reported of one call. The calls that fail have the same wait, so that they run
/// together again.
fn of_result(
    call: &Attempt,
    result: &mut CallOutput,
    stop: Option<Stop>,
    random: f64,
) -> Option<Decision> {
    let report = match (result, stop) {
        (Ok(bytes), _) => success::of_one(call, bytes.take()),
        (Err(_), Some(Stop::Lost)) => return None,
        (Err(_), Some(Stop::Cancelled)) => decide_outcome::cancelled(call),
        (Err(_), Some(Stop::Shutdown | Stop::Uncertain | Stop::Frozen))
            if call.facts.on_lost == OnLost::Retry =>
        {
            decide_outcome::interrupted_by(stop, call)
        }
        (Err(problem), _) => {
            let mut decision = decide_outcome::of_error(call, problem, random);
            keep_own_retries(call, &mut decision);
            return Some(decision);
        }
    };
    Some(report.into())
}

/// The one that leads is retried for the others of a failed run, but here it fails alone.
fn keep_own_retries(call: &Attempt, decision: &mut Decision) {
    if let Report::Fail(Failure { outcome, error, .. }) = &mut decision.report
        && matches!(outcome, FailureOutcome::Retry(_))
        && !decide_outcome::has_retries_left(&call.facts)
    {
        *outcome = FailureOutcome::Dead;
        if let Some(text) = &decision.asked {
            *error = decide_outcome::error(call, Reason::Failed, text);
        }
    }
}

/// Several calls may ask for a pause of the same gate: the longest one is enough.
fn pause_once(decisions: &mut [Option<Decision>]) {
    let mut pauses: Vec<&mut Option<Shutting>> =
        decisions.iter_mut().flatten().filter_map(pause_of).collect();
    pauses.sort_by_key(|pause| Reverse(pause.as_ref().map(|pause| pause.wait)));
    let mut scopes = Vec::new();
    for pause in pauses {
        let Some(scope) = pause.as_ref().map(|pause| pause.scope) else { continue };
        if scopes.contains(&scope) {
            *pause = None;
        } else {
            scopes.push(scope);
        }
    }
}

/// Returns the pause that a call asks for, if it fails.
fn pause_of(decision: &mut Decision) -> Option<&mut Option<Shutting>> {
    match &mut decision.report {
        Report::Fail(failure) => Some(&mut failure.shut),
        Report::Complete(_) | Report::Release(_) => None,
    }
}

#[cfg(test)]
#[path = "each_call_tests.rs"]
mod tests;
