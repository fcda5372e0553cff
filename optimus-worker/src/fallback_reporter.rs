//! Sends the reports that the claimer can't send because handlers block its runtime.

use std::{sync::Arc, time::Duration};

use optimus_core::broker::Broker;

use crate::{reporter::take_in_reports, role::Role, shared::Shared};

const CHECK_EVERY: Duration = Duration::from_millis(100);
const REST: Duration = Duration::from_secs(1);
/// The wait after which a report is overdue. A claimer with a thread sends a report at once, unless
/// it waits for Redis.
const OVERDUE: Duration = Duration::from_millis(200);
const CALLS_MAX: usize = 8;
/// Tasks often follow each other, so the role sleeps only after this many checks that found no
/// attempt.
const IDLE_CHECKS: u32 = 10;

/// The role that sends overdue reports from the maintenance thread.
pub(crate) struct FallbackReporter {
    shared: Arc<Shared>,
    broker: Broker,
    idle_checks: u32,
}

impl FallbackReporter {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let broker = shared.maintenance.clone();
        Self { shared, broker, idle_checks: 0 }
    }
}

impl Role for FallbackReporter {
    async fn tick(&mut self) -> Duration {
        for _ in 0..CALLS_MAX {
            if self.shared.reporter.waited() <= OVERDUE {
                break;
            }
            // The role sends one batch at a time, because a heartbeat may have to wait behind large
            // results.
            let batches = self.shared.reporter.take(1);
            let calls =
                batches.iter().map(|report_batch| report_batch.call(&self.broker)).collect();
            let mut answers = self.broker.run_all(calls).await.into_iter();
            take_in_reports(&self.shared, batches, &mut answers);
            // The claimer may have stopped its claims because of these reports.
            self.shared.wakeups.fallback_reported();
        }
        let table = &self.shared.attempts;
        let idle = table.is_empty() && self.shared.reporter.len() == 0;
        self.idle_checks = if idle { self.idle_checks + 1 } else { 0 };
        let sleeper = &self.shared.wakeups.fallback_reporter;
        if self.idle_checks > IDLE_CHECKS && sleeper.fall_asleep(|| table.is_empty()) {
            return REST;
        }
        CHECK_EVERY
    }
}
