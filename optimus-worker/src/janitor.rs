//! Drops what is past its age or above its cap.

use std::{sync::Arc, time::Duration};

use optimus_core::{broker::Broker, interval};

use crate::{role::Role, shared::Shared};

/// The *cluster* cleans up this often, however many workers it has.
const AVERAGE: Duration = Duration::from_secs(15);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Dead and cancelled tasks that a queue keeps of each.
const KEEP_MAX: usize = 10_000;
const KEEP_FOR: Duration = DAY.saturating_mul(180);
const LEDGER_IDLE: Duration = DAY;

/// The role that keeps Redis' memory bounded.
pub(crate) struct Janitor {
    shared: Arc<Shared>,
    broker: Broker,
}

impl Janitor {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let broker = shared.maintenance.clone();
        Self { shared, broker }
    }
}

impl Role for Janitor {
    async fn tick(&mut self) -> Duration {
        let mut workers = 1;
        for queue in &self.shared.queues {
            loop {
                let purged = self.broker.purge(&queue.name, KEEP_MAX, KEEP_FOR, LEDGER_IDLE).await;
                let Ok(purged) = purged else { break };
                workers = workers.max(purged.workers);
                if purged.tasks > 0 {
                    tracing::info!(queue = %queue.name, tasks = purged.tasks, "purged");
                }
                if !purged.more {
                    break;
                }
            }
        }
        interval(AVERAGE, workers, fastrand::f64())
    }
}
