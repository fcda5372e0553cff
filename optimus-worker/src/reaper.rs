//! Takes tasks back from workers whose lease is over.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use optimus_core::{
    QueueName, TaskState, WorkerId,
    broker::{BATCH_MAX, Broker, Lost, Reaped},
    log_event,
};
use tokio::time::Instant;

use crate::{outcome_log, role::Role, run_log::Calls, served_queue::Served, shared::Shared};

/// The longest random wait, so that several workers don't reap at the same instant.
const JITTER_MAX: Duration = Duration::from_millis(200);
const REST: Duration = Duration::from_secs(3600);
const AGAIN: Duration = Duration::from_secs(1);
/// A live worker has more than this fraction of its lease left, because it renews the lease after
/// each third.
const LATE_PART: f64 = 0.6;

/// The role that reaps. Every worker has it. It acts when the earliest lease that it knows is over.
pub(crate) struct Reaper {
    shared: Arc<Shared>,
    broker: Broker,
}

impl Reaper {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let broker = shared.maintenance.clone();
        Self { shared, broker }
    }

    async fn reap(&self, queue: &Served) {
        let lease = self.shared.config.lease;
        // Logs when it is dropped.
        let mut runs = LostRuns::of(&self.shared);
        loop {
            let reaped =
                match self.broker.reap(&queue.name, &queue.worker(), lease, BATCH_MAX).await {
                    Ok(reaped) => reaped,
                    Err(problem) => {
                        let name = queue.name.clone();
                        log_event!(
                            self.shared.log,
                            DEBUG,
                            queue = %name,
                            error = %problem,
                            "could not take back the tasks of workers whose lease is over"
                        );
                        queue.set_next_expiry(Some(AGAIN));
                        return;
                    }
                };
            queue.set_next_expiry(reaped.next_expiry);
            let is_late = |left: Duration| left < lease.mul_f64(LATE_PART);
            if queue.lease() > lease && !reaped.next_expiry.is_some_and(is_late) {
                // The heartbeats of the queue's many workers return later expiries in time.
                queue.set_next_expiry(None);
            }
            if !reaped.lapsed.is_empty() {
                queue.hint();
            }
            let more = reaped.more;
            if reaped.lost.iter().any(|lost| lost.state == TaskState::Dead) {
                queue.effects_posted();
            }
            log_reaped(&mut runs, &queue.name, reaped);
            if !more {
                return;
            }
        }
    }
}

/// Logs workers whose lease is over, and each attempt that is lost with them.
pub(crate) fn log_reaped(runs: &mut LostRuns<'_>, queue: &QueueName, reaped: Reaped) {
    let shared = runs.shared;
    let Reaped { lapsed: workers, lost, tasks, .. } = reaped;
    if workers.is_empty() {
        return;
    }
    let queue = queue.clone();
    // As a list, the ids would be quoted twice in a log of JSON.
    let workers = workers.join(", ");
    let died = lost.iter().filter(|lost| lost.state == TaskState::Dead).count();
    if tasks > 0 {
        let text = "took back the tasks of workers whose lease is over";
        log_event!(shared.log, WARN, %queue, workers, tasks, died, "{text}");
    } else {
        let text = "removed workers whose lease is over; they held no tasks";
        log_event!(shared.log, INFO, %queue, workers, "{text}");
    }
    for lost in lost {
        match lost.run.clone() {
            Some(run) => runs.add(run, lost),
            None => outcome_log::log_lost(shared, lost, None),
        }
    }
}

/// The calls of runs that were lost with their workers: those of a run have one event, though
/// several requests take them back.
pub(crate) struct LostRuns<'a> {
    shared: &'a Shared,
    runs: HashMap<(WorkerId, String, u32, TaskState), (Lost, Calls)>,
}

impl<'a> LostRuns<'a> {
    pub(crate) fn of(shared: &'a Shared) -> Self {
        Self { shared, runs: HashMap::new() }
    }

    fn add(&mut self, run: String, lost: Lost) {
        let key = (lost.worker.clone(), run, lost.attempt, lost.state);
        match self.runs.entry(key) {
            Entry::Occupied(mut run) => run.get_mut().1.add(&lost.id),
            Entry::Vacant(none) => {
                none.insert((lost, Calls::one()));
            }
        }
    }
}

impl Drop for LostRuns<'_> {
    fn drop(&mut self) {
        for (lost, calls) in self.runs.drain().map(|(_, run)| run) {
            outcome_log::log_lost(self.shared, lost, Some(calls));
        }
    }
}

impl Role for Reaper {
    async fn tick(&mut self) -> Duration {
        let mut rest = REST;
        for queue in &self.shared.queues {
            if queue.next_expiry().is_some_and(|expiry| expiry <= Instant::now()) {
                self.reap(queue).await;
            }
            if let Some(expiry) = queue.next_expiry() {
                rest = rest.min(expiry.saturating_duration_since(Instant::now()));
            }
        }
        rest + JITTER_MAX.min(self.shared.config.lease / 10).mul_f64(fastrand::f64())
    }
}
