//! Runs prepared attempts: runs the handler until its deadline, and reports the outcome.

use std::{
    iter,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use optimus_core::{
    Lease, ListError, Ran, RunError, Running, TaskDefinition, TaskId,
    broker::{BrokerError, Give, Release},
    log_event, platform,
};
use tokio::time::Instant;
use tracing::Span;

use crate::{
    answered_reports::{Answer, Answered},
    attempts::{Attempt, Stop},
    collect,
    decide_outcome::{self, Decision, Report},
    handler_end::HandlerEnd,
    layer_ended,
    on_thread::{OnThread, UntilSettled},
    outcome_log::Outcome,
    prepare::{Payload, Prepared},
    row_end, run_log, run_outcome,
    shared::Shared,
    slots::Slot,
    span::InSpan,
    user_code::{discard, guarded},
};

const FETCH_AGAIN: Duration = Duration::from_millis(200);

/// Starts attempts, each in its slot.
pub(crate) fn start(shared: &Arc<Shared>, prepared: Vec<Prepared>) {
    shared.attempts.insert(prepared.iter().map(|prepared| &prepared.attempt));
    shared.stops.attempts_begin(Instant::now());
    for mut prepared in prepared {
        let attempt = prepared.attempt.clone();
        // The future is large, and a spawn moves it several times.
        if shared.layers.is_empty() {
            let span = span(&prepared.attempt);
            let shared = shared.clone();
            let running = async move {
                if begins(&mut prepared) {
                    run(shared, prepared).await;
                }
            };
            tokio::spawn(OnThread::new(attempt, InSpan::new(span, Box::pin(running))));
        } else {
            let running = Box::pin(run_layered(shared.clone(), prepared));
            tokio::spawn(OnThread::new(attempt, running));
        }
    }
}

/// Runs an attempt in the span of a layer, if one has a span for it. Layers are user code, so they
/// are not asked in the tokio task that claims.
async fn run_layered(shared: Arc<Shared>, mut prepared: Prepared) {
    if !begins(&mut prepared) {
        return;
    }
    let attempt = prepared.attempt.clone();
    let of_layer = guarded(|| shared.layers.span(&attempt.ctx)).unwrap_or_else(|text| {
        let id = attempt.lease.id.clone();
        log_event!(shared.log, ERROR, %id, text, "a layer panicked in `span`");
        None
    });
    let span = of_layer.unwrap_or_else(|| span(&attempt));
    drop(attempt);
    InSpan::new(span, run(shared, prepared)).await;
}

/// Returns whether the handler may run. If so, its slot needs this runtime from now on, also while
/// a layer is asked for the span. The maintenance thread may have given the task back, or ended the
/// attempt by timeout, before this runtime came to it.
fn begins(prepared: &mut Prepared) -> bool {
    let may_run = prepared.attempt.begin() && !prepared.attempt.is_settled();
    if may_run {
        prepared.slot.begin();
    }
    may_run
}

/// Returns the span of an attempt. It has the level ERROR, because the handler's own events of any
/// level are inside it. A layer of the subscriber may panic, and the attempt must still begin.
fn span(attempt: &Attempt) -> Span {
    let span = guarded(|| {
        tracing::error_span!(
            target: "optimus::task",
            "task",
            task = attempt.facts.task,
            id = %attempt.lease.id,
            attempt = attempt.facts.attempt
        )
    });
    span.unwrap_or_else(|_| Span::none())
}

/// Gives back a task that was claimed and must not start.
pub(crate) fn give_back(shared: &Shared, lease: Lease) {
    release(shared, lease, Give::Head);
}

/// Gives back a task. It can be claimed again after this wait.
pub(crate) fn give_back_for(shared: &Shared, lease: Lease, wait: Duration) {
    release(shared, lease, Give::Snooze(wait));
}

/// Gives back the quarantined tasks that match. If a task was asked to stop, its release cancels
/// it.
pub(crate) fn give_back_quarantined(shared: &Shared, matches: impl Fn(&Lease) -> bool) {
    for lease in shared.quarantine.remove(matches) {
        give_back(shared, lease);
    }
}

/// Gives back all tasks that were claimed and have not begun, because their runtime may have no
/// thread for them.
pub(crate) fn give_back_all_waiting(shared: &Shared) {
    give_back_quarantined(shared, |_| true);
    for attempt in shared.attempts.snapshot() {
        if attempt.begin() && attempt.settle() {
            give_back(shared, attempt.lease.clone());
        }
    }
}

fn release(shared: &Shared, lease: Lease, give: Give) {
    shared.reporter.push(Report::Release(Release { lease, give }));
}

/// Runs one attempt, and reports it. The user's values are dropped after the report, because their
/// drops may panic or block.
async fn run(shared: Arc<Shared>, prepared: Prepared) {
    let Prepared { attempt, definition, payload, slot } = prepared;
    let unfinished = Unfinished { shared: &shared, attempt: &attempt };
    let mut running = None;
    let mut ended = tokio::select! {
        biased;
        ended = handle(&shared, &attempt, definition, payload, &mut running) => ended,
        ended = must_end(&shared, &attempt, &slot) => ended,
    };
    if attempt.ctx.is_blocking() {
        // The handler no longer waits for its thread, which still runs. At the deadline, the
        // maintenance thread logs the hang.
        let _waits = slot.leave_runtime();
        attempt.ctx.unblocked().await;
    }
    attempt.ctx.cancel();
    // This call runs user code. If the code does not return, the maintenance thread settles the
    // attempt at the deadline.
    let decision = decide_outcome::decide(&attempt, &mut ended, fastrand::f64());
    if attempt.settle() {
        report(&shared, &attempt, decision);
    }
    if !matches!(ended, HandlerEnd::Returned(Ok(_))) {
        // The claimer was just woken and is queued on this thread. A drop of the user's values may
        // block the thread.
        platform::yield_now().await;
    }
    discard(running);
    // A second panic during the drops of one value would end the process.
    if let HandlerEnd::Returned(Ok(Ran::Each(results))) = ended {
        results.into_iter().for_each(discard);
    } else {
        discard(ended);
    }
    layer_ended::finish(&shared, &attempt).await;
    drop(unfinished);
    drop(slot);
}

/// Reports the outcome of a settled attempt. The attempt is counted and logged, and its layers are
/// called, once Redis has answered.
pub(crate) fn report(shared: &Arc<Shared>, attempt: &Arc<Attempt>, decision: Option<Decision>) {
    if attempt.part.run().is_none() {
        report_one(shared, attempt, decision);
        return;
    }
    let followers = attempt.followers();
    let decisions = run_outcome::of_calls(decision, attempt, &followers);
    let calls = iter::once(attempt.clone()).chain(followers).zip(decisions);
    let is_open = |call: &Arc<Attempt>| !call.follows() || call.settle();
    let ends: Vec<_> = calls.filter(|(call, _)| is_open(call)).collect();
    layer_ended::start(shared, attempt, ends[0].1.as_ref());
    run_log::set_ended(&ends, shared.config.success_level);
    for (call, decision) in ends {
        send(shared, &call, decision);
    }
}

fn report_one(shared: &Arc<Shared>, attempt: &Arc<Attempt>, decision: Option<Decision>) {
    let decision = decision.map(|decision| row_end::decide(&shared.sources, attempt, decision));
    layer_ended::start(shared, attempt, decision.as_ref());
    attempt.set_ended(Outcome::of(decision.as_ref(), shared.config.success_level));
    send(shared, attempt, decision);
}

/// Pushes the report of an attempt; without one, the attempt needs none.
pub(crate) fn send(shared: &Shared, attempt: &Attempt, decision: Option<Decision>) {
    if let Some(decision) = decision {
        if let Some(because) = decision.because {
            // A task that waits again shows operators why, and how often it has.
            attempt.ctx.log(because.replace(['\n', '\r'], " "));
        }
        shared.reporter.push(decision.report);
    } else {
        let mut answered = Answered::default();
        shared.attempts.remove(iter::once(&attempt.lease), |_, attempt| {
            answered.end(shared, attempt, &Answer::Taken);
        });
        answered.log(&shared.log);
    }
}

/// Resolves when the handler may be dropped. If the handler blocks a thread, which can't be
/// stopped, this waits until the thread returns, because the task must not start again while it
/// runs. A handler whose time has passed while the process was stopped is interrupted: it had no
/// CPU for its time, and its lease may be over.
async fn must_end(shared: &Shared, attempt: &Attempt, slot: &Slot) -> HandlerEnd {
    let ended = tokio::select! {
        biased;
        () = tokio::time::sleep_until(attempt.ctx.deadline().into()) => {
            let (deadline, now) = (attempt.ctx.deadline(), Instant::now());
            if shared.stops.cover(attempt.started_at, deadline, now) {
                attempt.spare(now);
            }
            if attempt.limit() > deadline {
                HandlerEnd::Abandoned
            } else {
                attempt.stop(Stop::TimedOut);
                HandlerEnd::TimedOut
            }
        }
        () = attempt.abandon.notified() => HandlerEnd::Abandoned,
    };
    let _waits = slot.leave_runtime();
    attempt.ctx.unblocked().await;
    ended
}

/// Ends the attempt and drops its values. If the runtime ends before the handler, this drops the
/// handler and reports the attempt as interrupted.
struct Unfinished<'a> {
    shared: &'a Arc<Shared>,
    attempt: &'a Arc<Attempt>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let Self { shared, attempt } = self;
        // Otherwise the handler still runs on a separate thread, and the task must not start again
        // during that time.
        if !attempt.is_settled() && !attempt.ctx.is_blocking() && attempt.settle() {
            attempt.ctx.cancel();
            let decision = Decision::from(decide_outcome::interrupted(attempt));
            report(shared, attempt, Some(decision));
        }
        if !attempt.ctx.is_blocking() {
            discard(attempt.ctx.take_values());
        }
    }
}

/// Fetches the arguments if the record does not hold them, then runs the handler. The handler's
/// future stays in `running`.
async fn handle(
    shared: &Shared,
    attempt: &Arc<Attempt>,
    definition: TaskDefinition,
    payload: Payload,
    running: &mut Option<Running>,
) -> HandlerEnd {
    let payload = match payload {
        Payload::Here(payload) => payload,
        apart => match Box::pin(fetch(shared, &attempt.lease.id, apart)).await {
            Ok(payload) => payload,
            Err(problem) => return HandlerEnd::Returned(Err(problem)),
        },
    };
    let started = if let Some(run) = attempt.part.run() {
        Box::pin(collect::start(shared, attempt, run, definition, payload)).await
    } else {
        let keep = attempt.facts.result_needed();
        begin(shared, attempt, || definition.run(&payload, attempt.ctx.clone(), keep))
    };
    let handler = match started {
        Ok(handler) => running.insert(shared.layers.around(&attempt.ctx, handler)),
        Err(ended) => return ended,
    };
    let handler = UntilSettled::new(attempt, shared.client.within(attempt.ctx.within(handler)));
    match AssertUnwindSafe(handler).catch_unwind().await {
        Ok(output) => HandlerEnd::Returned(output),
        Err(panic) => HandlerEnd::panicked(panic),
    }
}

/// Calls user code that begins an attempt.
pub(crate) fn begin<T>(
    shared: &Shared,
    attempt: &Attempt,
    code: impl FnOnce() -> Result<T, RunError>,
) -> Result<T, HandlerEnd> {
    let code = AssertUnwindSafe(|| shared.client.enter(|| attempt.ctx.enter(code)));
    match catch_unwind(code) {
        Ok(begun) => begun.map_err(|problem| HandlerEnd::Returned(Err(problem))),
        Err(panic) => Err(HandlerEnd::panicked(panic)),
    }
}

/// Fetches what the record does not hold.
pub(crate) async fn fetch(
    shared: &Shared,
    id: &TaskId,
    payload: Payload,
) -> Result<Vec<u8>, RunError> {
    match payload {
        Payload::Here(payload) => Ok(payload),
        Payload::InBlobs => {
            let blobs = fetch_blobs(shared, std::slice::from_ref(id)).await;
            let blob = blobs.map_err(|problem| RunError::Failed(problem.into()))?.pop();
            Ok(blob.unwrap_or_default())
        }
        Payload::OfGroup(payload) => {
            let payload = Box::pin(fetch(shared, id, *payload)).await?;
            loop {
                match optimus_core::list_members(&shared.broker, &payload).await {
                    Ok(payload) => return Ok(payload),
                    Err(ListError::Unread(problem)) if problem.is_transient() => {
                        tokio::time::sleep(FETCH_AGAIN).await;
                    }
                    Err(problem) => return Err(RunError::Failed(problem.into())),
                }
            }
        }
    }
}

/// Fetches the arguments of tasks of one queue that their records do not hold.
pub(crate) async fn fetch_blobs(shared: &Shared, ids: &[TaskId]) -> Result<Vec<Vec<u8>>, String> {
    let Some(first) = ids.first() else { return Ok(Vec::new()) };
    let all: Vec<&TaskId> = ids.iter().collect();
    loop {
        match shared.broker.blobs(first.queue(), &all).await {
            Ok(found) => return Ok(found.into_iter().map(Option::unwrap_or_default).collect()),
            Err(problem) if problem.is_transient() => tokio::time::sleep(FETCH_AGAIN).await,
            Err(problem) => return Err(unreadable(&problem)),
        }
    }
}

fn unreadable(problem: &BrokerError) -> String {
    format!("the arguments can't be read: {problem}")
}

#[cfg(test)]
#[path = "executor_tests.rs"]
mod tests;
