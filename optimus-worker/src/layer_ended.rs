//! Calls `ended` of the layers after an attempt has ended: [`EndedCalls`].
//!
//! Layers are user code, so they run on the handlers' runtime, after Redis has answered the report:
//! a cancel or the end of the lease may have come before the report. If one layer panics or does
//! not return, the other layers are still called.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, PoisonError},
    time::Duration,
};

use futures_util::FutureExt;
use optimus_core::{
    AttemptError, End, Outcome,
    broker::{FailureOutcome, Give},
    log_event, panic_sentence, platform,
};
use tokio::{sync::oneshot, task::JoinHandle, time::timeout};

use crate::{
    answered_reports::Answer,
    attempts::Attempt,
    decide_outcome::{Decision, Report},
    outcome_log::millis,
    shared::Shared,
    user_code::discard,
};

/// How long a layer may run. The slot is busy until then.
const ENDED_WITHIN: Duration = Duration::from_secs(5);

/// How long the calls wait for the answer of Redis. Without it, the outcome is the one that was
/// reported. The time is shorter than that in which a worker ends its roles.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

/// The calls of an attempt that has ended. Without layers, there are none.
#[derive(Debug, Default)]
pub(crate) struct EndedCalls {
    calls: Option<JoinHandle<()>>,
    /// Receives what Redis did, if that differs from what was reported.
    answer: Option<oneshot::Sender<Option<Outcome>>>,
}

/// Starts the calls that follow this decision. They wait for the answer to its report, so this is
/// called before the report is sent. It works on any thread.
pub(crate) fn start(shared: &Arc<Shared>, attempt: &Arc<Attempt>, decision: Option<&Decision>) {
    if shared.layers.is_empty() {
        return;
    }
    let ran = attempt.started_at.elapsed();
    let mut end = End::new(outcome(attempt, ran, decision), ran, attempt.facts.wait);
    let (answer, answered) = oneshot::channel();
    let (shared, ended, runtime) = (shared.clone(), attempt.clone(), shared.runtime.clone());
    let threads = shared.config.user_threads.clone();
    let calls = runtime.spawn(threads.run(|| async move {
        if let Ok(Ok(Some(instead))) = timeout(ANSWERED_WITHIN, answered).await {
            end.outcome = instead;
        }
        call_all(&shared, &ended, &end).await;
    }));
    *attempt.ended_calls.lock().unwrap_or_else(PoisonError::into_inner) =
        EndedCalls { calls: Some(calls), answer: Some(answer) };
}

/// Passes the answer of Redis to the calls.
pub(crate) fn answered(attempt: &Attempt, answer: &Answer<'_>) {
    let mut calls = attempt.ended_calls.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(waiting) = calls.answer.take() else { return };
    drop(calls);
    let instead = match answer {
        Answer::Taken | Answer::Unanswered => None,
        Answer::Stale => Some(Outcome::Stale),
        Answer::Cancelled(_) => Some(Outcome::Cancelled),
        Answer::Dead(failure) => {
            let ran = attempt.ended().map_or(Duration::ZERO, |ended| ended.run);
            Some(Outcome::Dead(error(attempt, ran, &failure.error)))
        }
    };
    // The calls may have waited too long.
    drop(waiting.send(instead));
}

/// Waits until the calls have returned, but no longer than the worker keeps its roles.
pub(crate) async fn finish(shared: &Shared, attempt: &Attempt) {
    if shared.layers.is_empty() {
        return;
    }
    let calls = attempt.ended_calls.lock().unwrap_or_else(PoisonError::into_inner).calls.take();
    let Some(mut calls) = calls else { return };
    tokio::select! {
        biased;
        // `call_all` logs the panics of layers.
        joined = &mut calls => drop(joined),
        () = shared.shutdown.roles().cancelled() => {
            calls.abort();
            drop(calls.await);
        }
    }
}

async fn call_all(shared: &Shared, attempt: &Attempt, end: &End) {
    for call in shared.layers.ended(&attempt.ctx, end) {
        let call = shared.client.within(attempt.ctx.within(call));
        let mut call = Box::pin(AssertUnwindSafe(call).catch_unwind());
        let answer = timeout(ENDED_WITHIN, call.as_mut()).await;
        let id = attempt.lease.id.clone();
        match answer {
            Ok(Ok(())) => {}
            Ok(Err(panic)) => {
                let text = panic_sentence(&*panic);
                discard(panic);
                log_event!(shared.log, ERROR, %id, text, "a layer panicked in `ended`");
            }
            Err(_) => {
                let within_ms = millis(ENDED_WITHIN);
                let text = "a layer did not return from `ended`, and is dropped";
                log_event!(shared.log, ERROR, %id, within_ms, "{text}");
            }
        }
        discard(call);
    }
}

fn outcome(attempt: &Attempt, ran: Duration, decision: Option<&Decision>) -> Outcome {
    let Some(Decision { report, .. }) = decision else { return Outcome::Stale };
    let error = |json: &str| error(attempt, ran, json);
    match report {
        Report::Complete(_) => Outcome::Success,
        Report::Fail(failure) => match failure.outcome {
            FailureOutcome::Retry(wait) => Outcome::Retry { wait, error: error(&failure.error) },
            FailureOutcome::Lost => {
                Outcome::Retry { wait: Duration::ZERO, error: error(&failure.error) }
            }
            FailureOutcome::Dead | FailureOutcome::Expired => Outcome::Dead(error(&failure.error)),
            FailureOutcome::Cancelled | FailureOutcome::Unstarted => Outcome::Cancelled,
        },
        Report::Release(release) => match release.give {
            Give::Snooze(wait) => Outcome::Snoozed(wait),
            Give::Head | Give::Interrupted | Give::Misfit(_) => Outcome::GivenBack,
        },
    }
}

/// Reads the error of an attempt that has run for this time from its report.
fn error(attempt: &Attempt, ran: Duration, json: &str) -> AttemptError {
    let ran_ms = u64::try_from(ran.as_millis()).unwrap_or(u64::MAX);
    let at = platform::instant(attempt.claimed_ms.saturating_add(ran_ms));
    let error: AttemptError = serde_json::from_str(json).expect("the report has a valid entry");
    AttemptError { at, ..error }
}
