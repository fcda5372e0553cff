//! Runs one claimed task: record → definition → handler under its deadline → report.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use optimus_core::{
    Backoff, Context, Lease, Reason, RecordError, RunError, TaskDefinition, TaskRecord,
    broker::{BrokerError, Give, Grant, Release},
};
use tracing::Instrument;

use crate::{
    attempts::Attempt,
    judge::{self, Ended, Facts, Report},
    misfit,
    shared::Shared,
    slots::Slot,
};

const FETCH_AGAIN: Duration = Duration::from_millis(200);

/// Starts a claimed task in its slot; or reports at once why it can't be run here.
pub(crate) fn start(shared: &Arc<Shared>, lease: Lease, grant: Grant, now_ms: u64, slot: Slot) {
    match prepare(shared, &lease, &grant, now_ms) {
        Ok((record, definition)) => {
            let attempt = Arc::new(attempt_at(lease, grant, &record, &definition));
            shared.attempts.insert(attempt.clone());
            let span = tracing::info_span!(
                "task",
                task = %record.task,
                id = %attempt.lease.id,
                attempt = attempt.facts.attempt
            );
            let run = run(shared.clone(), attempt, record, definition, slot);
            tokio::spawn(run.instrument(span));
        }
        Err(report) => {
            drop(slot);
            shared.reporter.push(*report);
            shared.turn.notify_one();
        }
    }
}

/// Gives back a task that was claimed and must not start.
pub(crate) fn give_back(shared: &Shared, lease: Lease, stamp: String) {
    let give = Give::Head(stamp);
    shared.reporter.push(Report::Release(Release { lease, give }));
    shared.turn.notify_one();
}

/// Finds what the task needs; the error is the report of one that can't be run.
fn prepare(
    shared: &Shared,
    lease: &Lease,
    grant: &Grant,
    now_ms: u64,
) -> Result<(TaskRecord, TaskDefinition), Box<Report>> {
    let (failures, losses, misfits) = grant.tries;
    let attempt = 1 + failures + losses;
    let bury = |reason, why: &str| Box::new(judge::bury(lease.clone(), attempt, reason, why));
    let misfit = |why: &str| {
        tracing::warn!(id = %lease.id, why, "can't be run by this worker, and waits");
        if misfit::is_over(misfits, shared.config.misfit_grace) {
            return bury(Reason::Unknown, why);
        }
        let give = Give::Misfit(misfit::wait(misfits + 1));
        Box::new(Report::Release(Release { lease: lease.clone(), give }))
    };
    let record = TaskRecord::decode(&grant.record).map_err(|problem| match problem {
        RecordError::Newer(_) => misfit(&problem.to_string()),
        _ => bury(Reason::Undecodable, &problem.to_string()),
    })?;
    let definition = shared
        .registry
        .get(&record.task)
        .ok_or_else(|| misfit(&format!("no task {:?} is known here", record.task)))?;
    let expired = record.expires_in.filter(|expires_in| {
        u128::from(now_ms.saturating_sub(record.submitted_ms)) > expires_in.as_millis()
    });
    if let Some(expires_in) = expired {
        return Err(bury(Reason::Expired, &format!("not started within {expires_in:?}")));
    }
    Ok((record, *definition))
}

fn attempt_at(
    lease: Lease,
    grant: Grant,
    record: &TaskRecord,
    definition: &TaskDefinition,
) -> Attempt {
    let (failures, losses, _) = grant.tries;
    let custom = match definition.options().backoff_formula() {
        formula @ Backoff::Custom(_) => formula,
        _ => Backoff::Sidekiq,
    };
    let facts = Facts {
        task: record.task.clone(),
        attempt: 1 + failures + losses,
        failures,
        max_retry: record.max_retry,
        backoff: record.backoff.unwrap_or(custom),
        result_ttl: record.result_ttl,
        biz_id: record.biz_id.clone(),
    };
    Attempt::new(lease, grant.stamp, facts, Instant::now() + record.timeout)
}

/// One attempt, to its report.
async fn run(
    shared: Arc<Shared>,
    attempt: Arc<Attempt>,
    record: TaskRecord,
    definition: TaskDefinition,
    slot: Slot,
) {
    let ctx = Context::new(
        attempt.lease.id.clone(),
        attempt.facts.attempt,
        attempt.lease.token.fence,
        attempt.deadline,
        attempt.cancel.clone(),
        shared.data.clone(),
    );
    let handler = AssertUnwindSafe(handle(&shared, &attempt, record, definition, ctx));
    let ended = tokio::select! {
        biased;
        returned = handler.catch_unwind() => match returned {
            Ok(output) => Ended::Returned(output),
            Err(panic) => Ended::Panicked(panic_text(&*panic)),
        },
        () = tokio::time::sleep_until(attempt.deadline.into()) => Ended::TimedOut,
        () = attempt.abandon.cancelled() => Ended::Abandoned,
    };
    attempt.cancel.cancel();
    if attempt.settle() {
        log(&ended);
        match judge::judge(&attempt, ended, fastrand::f64()) {
            Some(report) => shared.reporter.push(report),
            None => shared.attempts.remove(&attempt.lease),
        }
    }
    // A free slot wakes the claimer, which takes the report along.
    drop(slot);
}

/// Fetches what the record alone doesn't hold, then runs the handler.
async fn handle(
    shared: &Shared,
    attempt: &Attempt,
    mut record: TaskRecord,
    definition: TaskDefinition,
    ctx: Context,
) -> Result<Option<Vec<u8>>, RunError> {
    if record.has_blob {
        record.payload = fetch_blob(shared, attempt).await?;
    }
    definition.run(&record.payload, ctx).await
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
