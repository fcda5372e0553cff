//! Calls `ended` of the layers after an attempt has ended: [`EndedCalls`].
//!
//! Layers are user code, so they run on the handlers' runtime, after the report was handed over. If
//! one layer panics or does not return, the other layers are still called.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, PoisonError},
    time::Duration,
};

use futures_util::FutureExt;
use optimus_core::{
    AttemptError, End, Outcome,
    broker::{FailureOutcome, Give},
    log_event, platform,
};
use tokio::time::timeout;

use crate::{
    attempts::Attempt,
    decide_outcome::{Decision, Report},
    outcome_log::millis,
    shared::Shared,
    user_code::{discard, panic_text},
};

/// How long a layer may run. The slot is busy until then.
const ENDED_WITHIN: Duration = Duration::from_secs(5);

/// The end of an attempt that has layers.
pub(crate) struct EndedCalls(Option<End>);

impl EndedCalls {
    /// Returns the calls that follow this decision.
    pub(crate) fn of(shared: &Shared, attempt: &Attempt, decision: Option<&Decision>) -> Self {
        Self((!shared.layers.is_empty()).then(|| {
            let ran = attempt.started_at.elapsed();
            End::new(outcome(attempt, ran, decision), ran, attempt.facts.wait)
        }))
    }

    /// Starts the calls. This works on any thread.
    pub(crate) fn start(self, shared: &Arc<Shared>, attempt: &Arc<Attempt>) {
        let Some(end) = self.0 else { return };
        let (shared, ended) = (shared.clone(), attempt.clone());
        let runtime = shared.runtime.clone();
        let calls = runtime.spawn(async move { call_all(&shared, &ended, &end).await });
        *attempt.ended_calls.lock().unwrap_or_else(PoisonError::into_inner) = Some(calls);
    }
}

/// Waits until the calls have returned, but no longer than the worker keeps its roles.
pub(crate) async fn finish(shared: &Shared, attempt: &Attempt) {
    if shared.layers.is_empty() {
        return;
    }
    let calls = attempt.ended_calls.lock().unwrap_or_else(PoisonError::into_inner).take();
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
                let text = panic_text(&*panic);
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
    let error = |json: &str| {
        let ran_ms = u64::try_from(ran.as_millis()).unwrap_or(u64::MAX);
        let at = platform::instant(attempt.claimed_ms.saturating_add(ran_ms));
        let error: AttemptError = serde_json::from_str(json).expect("the report has a valid entry");
        AttemptError { at, ..error }
    };
    match report {
        Report::Complete(_) => Outcome::Success,
        Report::Fail(failure) => match failure.outcome {
            FailureOutcome::Retry(wait) => Outcome::Retry { wait, error: error(&failure.error) },
            FailureOutcome::Dead => Outcome::Dead(error(&failure.error)),
            FailureOutcome::Cancelled => Outcome::Cancelled,
        },
        Report::Release(release) => match release.give {
            Give::Snooze(wait) => Outcome::Snoozed(wait),
            Give::Head | Give::Interrupted | Give::Misfit(_) => Outcome::GivenBack,
        },
    }
}
