//! What layers are told of an attempt that has ended: [`Told`].
//!
//! They are the user's code, so they are called on the runtime of the handlers, once the report is
//! on its way. One that panics or does not return keeps no other from being told.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, PoisonError},
    time::Duration,
};

use futures_util::FutureExt;
use optimus_core::{
    AttemptError, End, Outcome,
    broker::{Give, Verdict},
    tell,
};
use tokio::time::timeout;

use crate::{
    attempts::Attempt,
    decide::{Decision, Report},
    outcome::millis,
    shared::Shared,
    user_code::{discard, panic_text},
};

/// How long a layer may take, while the slot is busy.
const ENDED_WITHIN: Duration = Duration::from_secs(5);

/// The end of an attempt, where there are layers to hear of it.
pub(crate) struct Told(Option<End>);

impl Told {
    /// Of what was judged.
    pub(crate) fn of(shared: &Shared, attempt: &Attempt, decision: Option<&Decision>) -> Self {
        Self((!shared.layers.is_empty()).then(|| {
            let ran = attempt.started_at.elapsed();
            End::new(outcome(attempt, ran, decision), ran, attempt.facts.wait)
        }))
    }

    /// Begins to tell the layers; on any thread.
    pub(crate) fn tell(self, shared: &Arc<Shared>, attempt: &Arc<Attempt>) {
        let Some(end) = self.0 else { return };
        let (shared, told) = (shared.clone(), attempt.clone());
        let runtime = shared.runtime.clone();
        let telling = runtime.spawn(async move { tell_all(&shared, &told, &end).await });
        *attempt.telling.lock().unwrap_or_else(PoisonError::into_inner) = Some(telling);
    }
}

/// Waits until the layers have been told, but no longer than the worker keeps its roles.
pub(crate) async fn finish(shared: &Shared, attempt: &Attempt) {
    if shared.layers.is_empty() {
        return;
    }
    let telling = attempt.telling.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut telling) = telling else { return };
    tokio::select! {
        biased;
        // It says of its panics itself.
        told = &mut telling => drop(told),
        () = shared.shutdown.roles().cancelled() => {
            telling.abort();
            drop(telling.await);
        }
    }
}

async fn tell_all(shared: &Shared, attempt: &Attempt, end: &End) {
    for told in shared.layers.ended(&attempt.ctx, end) {
        let told = shared.client.within(attempt.ctx.within(told));
        let mut told = Box::pin(AssertUnwindSafe(told).catch_unwind());
        let answer = timeout(ENDED_WITHIN, told.as_mut()).await;
        let id = attempt.lease.id.clone();
        match answer {
            Ok(Ok(())) => {}
            Ok(Err(panic)) => {
                let text = panic_text(&*panic);
                discard(panic);
                tell!(shared.log, ERROR, %id, text, "a layer panicked when it was told of an end");
            }
            Err(_) => {
                let within_ms = millis(ENDED_WITHIN);
                let text = "a layer did not return from `ended`, and is dropped";
                tell!(shared.log, ERROR, %id, within_ms, "{text}");
            }
        }
        discard(told);
    }
}

fn outcome(attempt: &Attempt, ran: Duration, decision: Option<&Decision>) -> Outcome {
    let Some(Decision { report, .. }) = decision else { return Outcome::Lost };
    let error = |json: &str| {
        let ran_ms = u64::try_from(ran.as_millis()).unwrap_or(u64::MAX);
        let at_ms = attempt.claimed_ms.saturating_add(ran_ms);
        let error: AttemptError = serde_json::from_str(json).expect("it was decision here");
        AttemptError { at_ms, ..error }
    };
    match report {
        Report::Complete(_) => Outcome::Success,
        Report::Fail(failure) => match failure.verdict {
            Verdict::Retry(wait) => Outcome::Retry { wait, error: error(&failure.error) },
            Verdict::Dead => Outcome::Dead(error(&failure.error)),
            Verdict::Cancelled => Outcome::Cancelled,
        },
        Report::Release(release) => match release.give {
            Give::Snooze(wait) => Outcome::Snoozed(wait),
            Give::Head | Give::Interrupted | Give::Misfit(_) => Outcome::GivenBack,
        },
    }
}
