//! Collects the calls of a run, for the attempt that leads it, and starts the run: [`start`].
//!
//! The calls have leases of their own. Each is in the table of attempts before the request that
//! brought it counts as ended, so no heartbeat gives it back. A call that can't run, such as one
//! that has expired, ends by itself.

use std::{sync::Arc, time::Duration};

use optimus_core::{
    Lease, RunError, Running, RunningCalls, TaskDefinition,
    broker::{BrokerError, Collected, Give, Grant, Release},
    log_event,
};

use crate::{
    attempts::{Attempt, Stop},
    decide_outcome::{self, Report},
    executor,
    handler_end::HandlerEnd,
    outcome_log::Outcome,
    prepare::{self, Claim, Payload},
    run_outcome,
    run_part::Run,
    shared::Shared,
};

/// A run takes no more calls once their arguments have this many bytes.
const RUN_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How many arguments that are stored apart one request fetches: each may have a MiB or more.
const BLOBS_MAX: usize = 16;
/// The wait before a request that was not answered is sent again.
const AGAIN: Duration = Duration::from_millis(200);

/// The calls of a run whose arguments are here, in the order of the run.
struct Calls {
    payloads: Vec<Vec<u8>>,
    /// The calls that follow the first one.
    followers: Vec<Arc<Attempt>>,
}

/// Collects the calls that run with this one, whose arguments are `payload`, and starts the
/// handler. The error is the end of this call: its arguments do not fit, or its lease is over.
pub(crate) async fn start(
    shared: &Shared,
    leader: &Arc<Attempt>,
    run: &Run,
    definition: TaskDefinition,
    payload: Vec<u8>,
) -> Result<Running, HandlerEnd> {
    // If it can't be decoded, its report makes the next call lead at once.
    executor::begin(shared, leader, || definition.check(&payload))?;
    let Calls { payloads, followers } = collect(shared, leader, run.most, payload).await?;
    leader.complete_run();
    let keep = run_outcome::result_needed(leader);
    let begin = || Ok(definition.run_all(&payloads, leader.ctx.clone(), keep));
    let RunningCalls { running, undecodable } = executor::begin(shared, leader, begin)?;
    let mut leading = None;
    for (position, problem) in undecodable {
        match position.checked_sub(1).and_then(|at| followers.get(at)) {
            Some(call) => end_alone(shared, leader, call, problem),
            None => leading = Some(problem),
        }
    }
    let ids = run_outcome::calls(leader).map(|call| call.lease.id.clone());
    leader.ctx.set_calls(ids.collect(), run_outcome::retries_left(leader));
    match (leading, running) {
        (None, Some(running)) => Ok(running),
        (problem, _) => {
            let problem = problem.unwrap_or_else(|| RunError::Failed("a run without calls".into()));
            Err(HandlerEnd::Returned(Err(problem)))
        }
    }
}

/// Collects the calls that run with this one.
async fn collect(
    shared: &Shared,
    leader: &Arc<Attempt>,
    most: usize,
    payload: Vec<u8>,
) -> Result<Calls, HandlerEnd> {
    let mut calls = Calls { payloads: vec![payload], followers: Vec::new() };
    let mut bytes = calls.payloads[0].len();
    loop {
        let is_full = bytes > RUN_BYTES_MAX;
        let want = if is_full { 0 } else { most - calls.payloads.len() };
        let Some((page, more)) = next_page(shared, leader, want).await else {
            leader.stop(Stop::Lost);
            return Err(HandlerEnd::Abandoned);
        };
        for (call, payload) in fetch_blobs(shared, page).await {
            let payload = match payload {
                Ok(payload) => executor::fetch(shared, &call.lease.id, payload).await,
                Err(problem) => Err(problem),
            };
            match payload {
                Ok(payload) => {
                    bytes += payload.len();
                    calls.payloads.push(payload);
                    calls.followers.push(call);
                }
                Err(problem) => end_alone(shared, leader, &call, problem),
            }
        }
        if !more || want == 0 {
            return Ok(calls);
        }
    }
}

/// Fetches the arguments that records do not hold, those of several calls at once.
async fn fetch_blobs(
    shared: &Shared,
    page: Page,
) -> Vec<(Arc<Attempt>, Result<Payload, RunError>)> {
    let mut fetched: Vec<_> = page.into_iter().map(|(call, payload)| (call, Ok(payload))).collect();
    let is_apart = |(_, payload): &&mut (_, Result<Payload, RunError>)| {
        matches!(payload, Ok(Payload::InBlobs))
    };
    let mut apart: Vec<_> = fetched.iter_mut().filter(is_apart).collect();
    for some in apart.chunks_mut(BLOBS_MAX) {
        let ids: Vec<_> = some.iter().map(|(call, _)| call.lease.id.clone()).collect();
        match executor::fetch_blobs(shared, &ids).await {
            Ok(blobs) => {
                for ((_, payload), blob) in some.iter_mut().zip(blobs) {
                    *payload = Ok(Payload::Here(blob));
                }
            }
            Err(problem) => {
                for (_, payload) in some {
                    *payload = Err(RunError::Failed(problem.clone().into()));
                }
            }
        }
    }
    fetched
}

/// Ends a call of the run that can't run with the others.
fn end_alone(shared: &Shared, leader: &Attempt, call: &Arc<Attempt>, problem: RunError) {
    leader.remove_follower(call);
    let mut ended = HandlerEnd::Returned(Err(problem));
    let decision = decide_outcome::decide(call, &mut ended, fastrand::f64());
    if call.settle() {
        call.set_ended(Outcome::of(decision.as_ref(), shared.config.success_level));
        executor::send(shared, call, decision);
    }
}

type Page = Vec<(Arc<Attempt>, Payload)>;

/// Collects the calls of one request, and returns whether there are more. `None`: the worker no
/// longer holds the leader.
async fn next_page(shared: &Shared, leader: &Arc<Attempt>, want: usize) -> Option<(Page, bool)> {
    loop {
        let under_way = shared.collects.begin();
        match shared.broker.collect(&leader.lease, want).await {
            Ok(collected) => {
                let Collected { token, now_ms, grants, more } = collected?;
                let lease = |grant: &Grant| Lease {
                    id: grant.id.clone(),
                    worker: leader.lease.worker.clone(),
                    token,
                };
                let page = grants.into_iter().filter_map(|grant| {
                    let lease = lease(&grant);
                    take_in(shared, leader, grant, lease, now_ms)
                });
                let page = add(shared, leader, page.collect());
                drop(under_way);
                return Some((page, more));
            }
            // A later heartbeat gives back what a lost answer has brought.
            Err(problem) if problem.is_transient() => drop(under_way),
            Err(problem) => {
                log_uncollected(shared, leader, &problem);
                return Some((Vec::new(), false));
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

fn take_in(
    shared: &Shared,
    leader: &Arc<Attempt>,
    grant: Grant,
    lease: Lease,
    now_ms: u64,
) -> Option<(Arc<Attempt>, Payload)> {
    let Grant { record, tries, was_tried, start_by, .. } = grant;
    let claim = Claim { lease, record, tries, was_tried, start_by, now_ms, alone: false };
    let (attempt, payload) = prepare::prepare_call(shared, leader, claim)?;
    // It never begins by itself, so no other role may give it back as one that has not begun.
    attempt.begin();
    Some((attempt, payload))
}

/// Adds the calls to the run, or gives them back if the run has ended.
fn add(shared: &Shared, leader: &Arc<Attempt>, page: Page) -> Page {
    let calls: Vec<Arc<Attempt>> = page.iter().map(|(call, _)| call.clone()).collect();
    shared.attempts.insert(calls.iter());
    let Err(late) = leader.add_followers(calls) else { return page };
    for call in late {
        if call.settle() {
            call.set_ended(Outcome::GivenBack);
            let lease = call.lease.clone();
            shared.reporter.push(Report::Release(Release { lease, give: Give::Head }));
        }
    }
    Vec::new()
}

/// Returns how many calls a run may have: one if the definition of this program gathers none.
pub(crate) fn most(shared: &Shared, task: &str, max: u32) -> usize {
    if !shared.registry.gathers(task) {
        return 1;
    }
    usize::try_from(max).unwrap_or(1).max(1)
}

fn log_uncollected(shared: &Shared, leader: &Attempt, problem: &BrokerError) {
    let (id, problem) = (leader.lease.id.clone(), problem.clone());
    let text = "Redis refuses to name the calls of a run; the run has those that are here";
    log_event!(shared.log, ERROR, %id, error = %problem, "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        run_part::Part,
        test_worker::{attempt_of, idle_worker},
    };

    #[tokio::test]
    async fn a_lost_call_that_can_not_run_leaves_the_table() {
        let (_client, shared) = idle_worker("lost-follower").await;
        let (mut leader, mut call) = (attempt_of(&shared), attempt_of(&shared));
        leader.part = Part::leads(2);
        let leader = Arc::new(leader);
        call.part = Part::after(&leader);
        let call = Arc::new(call);
        assert_eq!(add(&shared, &leader, vec![(call.clone(), Payload::InBlobs)]).len(), 1);
        assert!(shared.attempts.of(&call.lease).is_some());
        call.stop(Stop::Lost);
        end_alone(&shared, &leader, &call, RunError::Failed("no arguments".into()));
        assert!(shared.attempts.of(&call.lease).is_none() && leader.followers().is_empty());
        assert_eq!(shared.reporter.len(), 0, "its lease is over, so nothing is reported");
    }
}
