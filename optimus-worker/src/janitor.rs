//! Drops what is past its age or above its cap.

use std::{sync::Arc, time::Duration};

use optimus_core::{
    QueueName,
    broker::{Broker, BrokerError},
    interval, tell,
};

use crate::{role::Role, shared::Shared};

/// The *cluster* cleans up this often, however many workers it has.
const AVERAGE: Duration = Duration::from_secs(15);
/// Calls for one queue in a turn.
const CALLS_MAX: usize = 1_000;

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

/// Purges one queue; answers how many workers it has.
pub(crate) async fn purge(
    shared: &Shared,
    broker: &Broker,
    queue: &QueueName,
) -> Result<usize, BrokerError> {
    let (keep, age) = (shared.config.ended_max, shared.config.ended_for);
    let (mut tasks, mut workers) = (0, 0);
    for _ in 0..CALLS_MAX {
        let purged = broker.purge(queue, keep, age, shared.ledgers.idle(broker)).await?;
        (tasks, workers) = (tasks + purged.tasks, purged.workers);
        if !purged.more {
            break;
        }
    }
    if tasks > 0 {
        let queue = queue.clone();
        tell!(shared.log, INFO, %queue, tasks, "purged");
    }
    Ok(workers)
}

impl Role for Janitor {
    async fn tick(&mut self) -> Duration {
        let mut workers = 1;
        for queue in &self.shared.queues {
            if let Ok(here) = purge(&self.shared, &self.broker, &queue.name).await {
                workers = workers.max(here);
            }
        }
        self.shared.queues.set_peers(workers);
        interval(AVERAGE, workers, fastrand::f64())
    }
}
