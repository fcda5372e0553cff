//! The report of an attempt that succeeded: [`success`].

use std::time::Duration;

use optimus_core::{
    Reason,
    broker::{Completion, FailureOutcome, SizeLimit},
};

use crate::{
    attempts::Attempt,
    decide_outcome::{Report, error, fail},
    run_outcome,
};

/// The most bytes of results that the calls of a run may keep together.
const RESULTS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Returns the report of an attempt that succeeded.
pub(crate) fn success(attempt: &Attempt, result: Option<Vec<u8>>) -> Report {
    let limit = attempt.facts.result_limit;
    let result =
        result.filter(|_| run_outcome::calls(attempt).any(|call| call.facts.takes_result()));
    let problem = result.as_ref().map(Vec::len).and_then(|bytes| {
        let is_too_large = bytes > limit.bytes();
        let alone = is_too_large.then(|| too_large(bytes, limit));
        alone.or_else(|| too_large_for_all(attempt, bytes))
    });
    report(attempt, result, problem)
}

/// Returns the report of a call that succeeded with its own result.
pub(crate) fn of_one(call: &Attempt, result: Option<Vec<u8>>) -> Report {
    let limit = call.facts.result_limit;
    let result = result.filter(|_| call.facts.takes_result());
    let bytes = result.as_ref().map(Vec::len).filter(|bytes| *bytes > limit.bytes());
    report(call, result, bytes.map(|bytes| too_large(bytes, limit)))
}

fn report(attempt: &Attempt, result: Option<Vec<u8>>, problem: Option<String>) -> Report {
    if let Some(message) = problem {
        let error = error(attempt, Reason::ResultTooLarge, &message);
        return fail(attempt, FailureOutcome::Dead, error);
    }
    let took = attempt.started_at.elapsed();
    let ended_ms = attempt.claimed_ms + u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    Report::Complete(completion(attempt, (took, ended_ms), result))
}

/// Returns the report of a call that ran for this time, and succeeded at this time of Redis.
pub(crate) fn completion(
    attempt: &Attempt,
    (took, ended_ms): (Duration, u64),
    result: Option<Vec<u8>>,
) -> Completion {
    let facts = &attempt.facts;
    Completion {
        lease: attempt.lease.clone(),
        task: facts.task,
        biz_id: facts.biz_id.clone(),
        attempt: facts.attempt,
        took,
        lane: facts.lane.clone(),
        outcome_ttl: facts.outcome_ttl,
        member: facts.member.clone(),
        ended_ms,
        result: result.map(|bytes| {
            let keep = facts.keep(bytes.len(), attempt.lease.id.queue());
            (bytes, keep)
        }),
        has_sides: facts.has_sides,
    }
}

/// Returns the error of a result that is too large. Another attempt would not help.
fn too_large(bytes: usize, limit: SizeLimit) -> String {
    format!(
        "the task succeeded, but its result has {bytes} bytes, above the limit of {}; store the \
         result elsewhere and return a reference, set result_ttl to zero, or {}",
        limit.bytes(),
        limit.remedy()
    )
}

/// Returns why the calls of a run can't keep a result of this many bytes, if they can't.
fn too_large_for_all(attempt: &Attempt, bytes: usize) -> Option<String> {
    let calls = attempt.part.calls().unwrap_or(1);
    (calls > 1 && bytes.saturating_mul(calls) > RESULTS_BYTES_MAX).then(|| {
        format!(
            "the run succeeded, but its result has {bytes} bytes, and each of its {calls} calls \
             would keep it: more than {RESULTS_BYTES_MAX} bytes together; return `Each`, which \
             has a result for each call, store the result elsewhere and return a reference, set \
             result_ttl to zero, or gather fewer calls"
        )
    })
}
