//! Keeps every attempt's deadline, from outside the runtime that the handlers may block.

use std::{collections::HashMap, sync::Arc, time::Duration};

use optimus_core::{QueueName, TIMEOUT_GRACE, WorkerId, tell};
use tokio::time::Instant;

use crate::{
    attempts::{Attempt, Stop},
    decide::{self, Decision},
    executor,
    role::Role,
    shared::Shared,
};

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often all attempts are looked at while no deadline has passed and every lease is certain:
/// then only handlers that were told to stop can be overdue.
const LOOK_AT_ALL_EVERY: Duration = Duration::from_secs(1);
const REST: Duration = Duration::from_secs(3600);
/// Tasks often follow each other; only after so many looks at nothing it sleeps.
const IDLE_LOOKS: u32 = 10;
/// So long after its timeout a blocking handler is said to hang.
const HUNG_AFTER: Duration = Duration::from_secs(10);
/// How long a handler that was told to stop may take before it is dropped.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// Looks over all attempts.
pub(crate) struct Deadlines {
    shared: Arc<Shared>,
    idle_looks: u32,
    looked_at_all: Instant,
}

impl Deadlines {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, idle_looks: 0, looked_at_all: Instant::now() }
    }

    /// Looks at all attempts, or at none where a look could not find anything.
    fn look_at_all(&mut self, now: Instant) {
        let shared = self.shared.clone();
        let (table, doubtful) = (&shared.attempts, doubtful(&shared));
        let is_due =
            table.earliest_deadline().is_some_and(|first| now.into_std() >= first + TIMEOUT_GRACE);
        if !is_due && doubtful.is_empty() && now < self.looked_at_all + LOOK_AT_ALL_EVERY {
            return;
        }
        self.looked_at_all = now;
        let attempts = table.all_for_deadlines();
        for attempt in attempts.iter().filter(|attempt| !attempt.is_settled()) {
            self.look(attempt, now, &doubtful);
        }
    }

    fn look(&self, attempt: &Arc<Attempt>, now: Instant, doubtful: &HashMap<&QueueName, WorkerId>) {
        let lease = &attempt.lease;
        if now.into_std() >= attempt.ctx.deadline() + TIMEOUT_GRACE {
            if attempt.ctx.is_blocking() {
                attempt.stop(Stop::TimedOut);
                self.tell_of_hung(attempt, now);
            } else {
                self.time_out(attempt);
            }
        } else if doubtful.get(lease.id.queue()) == Some(&lease.worker) {
            attempt.stop(Stop::Uncertain);
        }
        let stopped = attempt.stopped();
        let overdue = stopped.is_some_and(|(why, since)| {
            matches!(why, Stop::Cancelled | Stop::Lost) && now >= since + STOP_GRACE
        });
        if overdue {
            attempt.abandon.notify_one();
        }
    }

    /// Nothing can be done about a thread that does not return, but to say so once.
    fn tell_of_hung(&self, attempt: &Attempt, now: Instant) {
        if now.into_std() < attempt.ctx.deadline() + HUNG_AFTER || attempt.hung_is_told() {
            return;
        }
        let (id, task) = (attempt.lease.id.clone(), attempt.facts.task);
        let (slots, hung) = (self.shared.config.concurrency, self.shared.attempts.hung());
        tell!(
            self.shared.log,
            ERROR,
            %id,
            task,
            slots,
            hung,
            "a blocking handler has not returned since its timeout; it keeps its slot and its \
             task until it returns or the worker is started again"
        );
    }

    /// The executor would have done this itself, had its runtime let it.
    fn time_out(&self, attempt: &Arc<Attempt>) {
        if attempt.begin() {
            // The runtime had no thread for it until now, so another worker may.
            if attempt.settle() {
                executor::give_back(&self.shared, attempt.lease.clone());
            }
            return;
        }
        attempt.stop(Stop::TimedOut);
        if !attempt.settle() {
            return;
        }
        let decision = decide::time_out(attempt, fastrand::f64()).map(Decision::from);
        executor::report(&self.shared, attempt, decision);
        let (id, task) = (attempt.lease.id.clone(), attempt.facts.task);
        tell!(
            self.shared.log,
            WARN,
            %id,
            task,
            "the handler has timed out and blocks a thread of its runtime: make it a `fn`, or use \
             Context::run_blocking"
        );
    }
}

/// Under which ids of this worker a lease may be over, by queue.
fn doubtful(shared: &Shared) -> HashMap<&QueueName, WorkerId> {
    let queues = shared.queues.iter().filter(|queue| !queue.lease_is_certain());
    queues.map(|queue| (&queue.name, queue.worker())).collect()
}

impl Role for Deadlines {
    async fn tick(&mut self) -> Duration {
        self.look_at_all(Instant::now());
        self.idle_looks = if self.shared.attempts.is_empty() { self.idle_looks + 1 } else { 0 };
        let table = &self.shared.attempts;
        let sleeper = &self.shared.wakeups.deadlines;
        if self.idle_looks > IDLE_LOOKS && sleeper.fall_asleep(|| table.is_empty()) {
            return REST;
        }
        LOOK_EVERY
    }
}
