//! Keeps every attempt's deadline, from outside the runtime that the handlers may block.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use optimus_core::TIMEOUT_GRACE;

use crate::{
    attempts::{Attempt, Stop},
    judge::{Ended, judge},
    role::Role,
    shared::Shared,
};

const LOOK_EVERY: Duration = Duration::from_millis(100);
const REST: Duration = Duration::from_secs(3600);
/// How long a handler that was told to stop may take before it is dropped.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// Looks over all attempts.
pub(crate) struct Deadlines(Arc<Shared>);

impl Deadlines {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    fn look(&self, attempt: &Attempt, now: Instant) {
        if attempt.is_settled() {
            return;
        }
        if now >= attempt.deadline + TIMEOUT_GRACE {
            self.time_out(attempt);
        } else if !self.lease_is_certain(attempt) {
            attempt.stop(Stop::Uncertain);
        }
        let stopped = attempt.stopped();
        let overdue = stopped.is_some_and(|(why, since)| {
            matches!(why, Stop::Cancelled | Stop::Lost) && now >= since + STOP_GRACE
        });
        if overdue {
            attempt.abandon.cancel();
        }
    }

    /// The executor would have done this itself, had its runtime let it.
    fn time_out(&self, attempt: &Attempt) {
        attempt.stop(Stop::TimedOut);
        if !attempt.settle() {
            return;
        }
        tracing::warn!(id = %attempt.lease.id, "timed out, and its handler blocks the runtime");
        match judge(attempt, Ended::TimedOut, fastrand::f64()) {
            Some(report) => self.0.reporter.push(report),
            None => self.0.attempts.remove(&attempt.lease),
        }
    }

    fn lease_is_certain(&self, attempt: &Attempt) -> bool {
        let queue = self.0.queues.iter().find(|queue| queue.name == *attempt.lease.id.queue());
        queue.is_none_or(|queue| {
            queue.worker() != attempt.lease.worker || queue.lease_is_certain(self.0.config.lease)
        })
    }
}

impl Role for Deadlines {
    async fn tick(&mut self) -> Duration {
        let attempts = self.0.attempts.snapshot();
        let now = Instant::now();
        for attempt in &attempts {
            self.look(attempt, now);
        }
        if attempts.is_empty() { REST } else { LOOK_EVERY }
    }
}
