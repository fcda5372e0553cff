//! Keeps every attempt's deadline, from outside the runtime that the handlers may block.

use std::{iter, sync::Arc, time::Duration};

use optimus_core::TIMEOUT_GRACE;
use tokio::time::Instant;

use crate::{
    attempts::{Attempt, Stop},
    judge::{Ended, judge},
    role::Role,
    shared::Shared,
};

const LOOK_EVERY: Duration = Duration::from_millis(100);
const REST: Duration = Duration::from_secs(3600);
/// Tasks often follow each other; only after so many looks at nothing it sleeps.
const IDLE_LOOKS: u32 = 10;
/// How long a handler that was told to stop may take before it is dropped.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// Looks over all attempts.
pub(crate) struct Deadlines {
    shared: Arc<Shared>,
    idle_looks: u32,
}

impl Deadlines {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, idle_looks: 0 }
    }

    fn look(&self, attempt: &Attempt, now: Instant) {
        if attempt.is_settled() {
            return;
        }
        if now.into_std() >= attempt.ctx.deadline() + TIMEOUT_GRACE {
            self.time_out(attempt);
        } else if !self.lease_is_certain(attempt) {
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

    /// The executor would have done this itself, had its runtime let it.
    fn time_out(&self, attempt: &Attempt) {
        attempt.stop(Stop::TimedOut);
        if !attempt.settle() {
            return;
        }
        tracing::warn!(id = %attempt.lease.id, "timed out, and its handler blocks the runtime");
        match judge(attempt, Ended::TimedOut, fastrand::f64()) {
            Some(report) => self.shared.reporter.push(report),
            None => self.shared.attempts.remove(iter::once(&attempt.lease)),
        }
    }

    fn lease_is_certain(&self, attempt: &Attempt) -> bool {
        let queue = self.shared.queues.iter().find(|queue| queue.name == *attempt.lease.id.queue());
        queue.is_none_or(|queue| {
            queue.worker() != attempt.lease.worker
                || queue.lease_is_certain(self.shared.config.lease)
        })
    }
}

impl Role for Deadlines {
    async fn tick(&mut self) -> Duration {
        let attempts = self.shared.attempts.snapshot();
        let now = Instant::now();
        for attempt in &attempts {
            self.look(attempt, now);
        }
        self.idle_looks = if attempts.is_empty() { self.idle_looks + 1 } else { 0 };
        let table = &self.shared.attempts;
        if self.idle_looks > IDLE_LOOKS && table.let_sleep(&table.deadlines) {
            return REST;
        }
        LOOK_EVERY
    }
}
