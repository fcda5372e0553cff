//! Sends reports that the claimer does not come to send, because handlers block its runtime.

use std::{sync::Arc, time::Duration};

use optimus_core::broker::Broker;

use crate::{reporter::take_in_reports, role::Role, shared::Shared};

const LOOK_EVERY: Duration = Duration::from_millis(100);
const REST: Duration = Duration::from_secs(1);
/// A claimer that runs takes a report at once, unless Redis keeps it waiting.
const OVERDUE: Duration = Duration::from_millis(200);
const CALLS_MAX: usize = 8;
/// Tasks often follow each other; only after so many looks at nothing it sleeps.
const IDLE_LOOKS: u32 = 10;

/// The maintenance thread's second pair of hands.
pub(crate) struct FallbackReporter {
    shared: Arc<Shared>,
    broker: Broker,
    idle_looks: u32,
}

impl FallbackReporter {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let broker = shared.maintenance.clone();
        Self { shared, broker, idle_looks: 0 }
    }
}

impl Role for FallbackReporter {
    async fn tick(&mut self) -> Duration {
        for _ in 0..CALLS_MAX {
            if self.shared.reporter.waited() <= OVERDUE {
                break;
            }
            // One at a time: a heartbeat may have to wait behind large results.
            let batches = self.shared.reporter.take(1);
            let calls =
                batches.iter().map(|report_batch| report_batch.call(&self.broker)).collect();
            let mut answers = self.broker.run_all(calls).await.into_iter();
            take_in_reports(&self.shared, batches, &mut answers);
            // The claimer may wait for what these reports held up.
            self.shared.wakeups.fallback_reported();
        }
        let table = &self.shared.attempts;
        let idle = table.is_empty() && self.shared.reporter.len() == 0;
        self.idle_looks = if idle { self.idle_looks + 1 } else { 0 };
        let sleeper = &self.shared.wakeups.fallback_reporter;
        if self.idle_looks > IDLE_LOOKS && sleeper.fall_asleep(|| table.is_empty()) {
            return REST;
        }
        LOOK_EVERY
    }
}
