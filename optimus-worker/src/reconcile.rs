//! Compares the tasks that the worker holds according to Redis with those that it knows:
//! [`reconcile`].

use std::{collections::HashSet, sync::Arc};

use optimus_core::{
    Lease, TaskId, Token, WorkerId,
    broker::{Give, Release, Renewed},
    log_event,
};

use crate::{
    attempts::{Attempt, Stop},
    decide_outcome::Report,
    executor,
    served_queue::Served,
    shared::Shared,
};

/// The tasks that the worker held in one queue before the heartbeat was sent.
pub(crate) struct Before {
    pub(crate) worker: WorkerId,
    pub(crate) received_seq: u64,
    pub(crate) grants: u64,
    /// The position of the queue.
    place: usize,
    pub(crate) attempts: Vec<Arc<Attempt>>,
}

/// Returns one record for each queue. The attempts are read last, so the answer to a later claim
/// can only add tasks, and no task is missed.
pub(crate) fn befores(shared: &Shared) -> Vec<Before> {
    let before = |(place, queue): (usize, &Served)| {
        let (worker, received_seq, grants) = (queue.worker(), queue.received_seq(), queue.grants());
        Before { worker, received_seq, grants, place, attempts: Vec::new() }
    };
    let mut befores: Vec<Before> = shared.queues.iter().enumerate().map(before).collect();
    for attempt in shared.attempts.snapshot() {
        let place = shared.queues.place(attempt.lease.id.queue());
        let Some(before) = place.map(|place| &mut befores[place]) else { continue };
        if before.worker == attempt.lease.worker {
            before.attempts.push(attempt);
        } else if !attempt.is_settled() {
            // The attempt began while a heartbeat replaced the id because the lease was over.
            attempt.stop(Stop::Lost);
        }
    }
    befores
}

/// Gives back tasks that the worker never received, and stops the attempts that it lost or must
/// stop.
pub(crate) fn reconcile(shared: &Shared, before: &Before, renewed: &Renewed) {
    let moment = shared.collects.moment();
    let is_unknown = |(id, token): &&(TaskId, Token)| {
        let known = shared.attempts.holds(id, token.fence)
            || shared.quarantine.holds(id, token.fence)
            || shared.marked_dead.holds(id, token.fence);
        !known && token.seq <= before.received_seq
    };
    let unknown = renewed.held.iter().filter(is_unknown).cloned().collect();
    for (id, token) in shared.collects.never_come(before.place, moment, unknown) {
        // Either the answer did not arrive, or the task has just been reported. In the second case,
        // Redis refuses this release.
        let lease = Lease { id, worker: before.worker.clone(), token };
        shared.reporter.push(Report::Release(Release { lease, give: Give::Head }));
    }
    let held: HashSet<(&TaskId, Token)> =
        renewed.held.iter().map(|(id, token)| (id, *token)).collect();
    let stopping: HashSet<&TaskId> = renewed.stopping.iter().collect();
    executor::give_back_quarantined(shared, |lease| stopping.contains(&lease.id));
    for attempt in &before.attempts {
        let id = &attempt.lease.id;
        if stopping.contains(id) {
            attempt.cancel();
        }
        if !attempt.is_settled() && !held.contains(&(id, attempt.lease.token)) {
            if !attempt.follows() {
                let id = id.clone();
                let text = "the lease is over; the worker asks the handler to stop";
                log_event!(shared.log, WARN, %id, "{text}");
            }
            attempt.stop(Stop::Lost);
        }
    }
}
