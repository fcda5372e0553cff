//! Takes tasks back from workers whose lease is over.

use std::{sync::Arc, time::Duration};

use optimus_core::{
    QueueName, TaskState,
    broker::{BATCH_MAX, Broker, Reaped},
    log_event,
};
use tokio::time::Instant;

use crate::{outcome_log, role::Role, served_queue::Served, shared::Shared};

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
            log_reaped(&self.shared, &queue.name, reaped);
            if !more {
                return;
            }
        }
    }
}

/// Logs workers whose lease is over, and each attempt that is lost with them.
pub(crate) fn log_reaped(shared: &Shared, queue: &QueueName, reaped: Reaped) {
    let Reaped { lapsed: workers, lost, tasks, .. } = reaped;
    if workers.is_empty() {
        return;
    }
    let queue = queue.clone();
    let died = lost.iter().filter(|lost| lost.state == TaskState::Dead).count();
    if tasks > 0 {
        let text = "took back the tasks of workers whose lease is over";
        log_event!(shared.log, WARN, %queue, ?workers, tasks, died, "{text}");
    } else {
        let text = "removed workers whose lease is over; they held no tasks";
        log_event!(shared.log, INFO, %queue, ?workers, "{text}");
    }
    for lost in lost {
        outcome_log::log_lost(shared, lost);
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
