//! Runs prepared attempts: handler under its deadline → report.

use std::{any::Any, iter, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use optimus_core::{
    Lease, RunError, RunOutput, TaskDefinition,
    broker::{BrokerError, Give, Release},
};
use tracing::Instrument;

use crate::{
    attempts::Attempt,
    judge::{self, Ended, Report},
    prepare::{Payload, Prepared},
    shared::Shared,
};

const FETCH_AGAIN: Duration = Duration::from_millis(200);

/// Starts attempts, each in its slot.
pub(crate) fn start(shared: &Arc<Shared>, prepared: Vec<Prepared>) {
    shared.attempts.insert(prepared.iter().map(|prepared| &prepared.attempt));
    for prepared in prepared {
        let span = tracing::info_span!(
            "task",
            task = prepared.attempt.facts.task,
            id = %prepared.attempt.lease.id,
            attempt = prepared.attempt.facts.attempt
        );
        tokio::spawn(run(shared.clone(), prepared).instrument(span));
    }
}

/// Gives back a task that was claimed and must not start.
pub(crate) fn give_back(shared: &Shared, lease: Lease) {
    shared.reporter.push(Report::Release(Release { lease, give: Give::Head }));
    shared.turn.notify_one();
}

/// One attempt, to its report.
async fn run(shared: Arc<Shared>, prepared: Prepared) {
    let Prepared { attempt, definition, payload, slot } = prepared;
    let handler = AssertUnwindSafe(handle(&shared, &attempt, definition, payload));
    let ended = tokio::select! {
        biased;
        returned = handler.catch_unwind() => match returned {
            Ok(output) => Ended::Returned(output),
            Err(panic) => Ended::Panicked(panic_text(&*panic)),
        },
        () = tokio::time::sleep_until(attempt.ctx.deadline().into()) => Ended::TimedOut,
        () = attempt.abandon.notified() => Ended::Abandoned,
    };
    attempt.ctx.cancel();
    if attempt.settle() {
        log(&ended);
        match judge::judge(&attempt, ended, fastrand::f64()) {
            Some(report) => shared.reporter.push(report),
            None => shared.attempts.remove(iter::once(&attempt.lease)),
        }
    }
    // A free slot wakes the claimer, which takes the report along.
    drop(slot);
}

/// Fetches what the record alone doesn't hold, then runs the handler.
async fn handle(
    shared: &Shared,
    attempt: &Attempt,
    definition: TaskDefinition,
    payload: Payload,
) -> RunOutput {
    let payload = match payload {
        Payload::Here(payload) => payload,
        Payload::InBlobs => Box::pin(fetch_blob(shared, attempt)).await?,
    };
    let running = definition.run(&payload, attempt.ctx.clone())?;
    drop(payload);
    running.await
}

async fn fetch_blob(shared: &Shared, attempt: &Attempt) -> Result<Vec<u8>, RunError> {
    let id = &attempt.lease.id;
    loop {
        match shared.broker.blobs(id.queue(), &[id]).await {
            Ok(mut found) => return Ok(found.pop().flatten().unwrap_or_default()),
            Err(problem) if problem.is_transient() => tokio::time::sleep(FETCH_AGAIN).await,
            Err(problem) => return Err(RunError::Failed(unreadable(&problem).into())),
        }
    }
}

fn unreadable(problem: &BrokerError) -> String {
    format!("the arguments can't be read: {problem}")
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned())
}

fn log(ended: &Ended) {
    match ended {
        Ended::Returned(Ok(_)) => tracing::debug!("done"),
        Ended::Returned(Err(problem)) => tracing::warn!(%problem, "failed"),
        Ended::Panicked(text) => tracing::error!(text, "panicked"),
        Ended::TimedOut => tracing::warn!("timed out"),
        Ended::Abandoned => tracing::warn!("dropped before it ended"),
    }
}
