//! Hears at once when a running task is cancelled; the heartbeat would tell it later.

use std::{sync::Arc, time::Duration};

use optimus_core::{QueueName, broker::Broker};

use crate::{attempts::Stop, role::Role, shared::Shared};

const BLOCK_FOR: Duration = Duration::from_secs(20);
const AFTER_ERROR: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::ZERO;

/// Waits on this worker's own doorbell in one queue, for its id may differ from queue to queue.
pub(crate) struct StopBell {
    shared: Arc<Shared>,
    broker: Broker,
    queue: usize,
    names: [QueueName; 1],
}

impl StopBell {
    pub(crate) fn new(shared: Arc<Shared>, queue: usize) -> Self {
        let broker = shared.broker.blocking("stop bell");
        let names = [shared.queues[queue].name.clone()];
        Self { shared, broker, queue, names }
    }
}

impl Role for StopBell {
    async fn tick(&mut self) -> Duration {
        let worker = self.shared.queues[self.queue].worker();
        match self.broker.wait_for_stop(&self.names, &worker, BLOCK_FOR).await {
            // It may tell of an earlier attempt, which has ended.
            Ok(Some(lease)) => {
                for attempt in self.shared.attempts.snapshot() {
                    if attempt.lease == lease {
                        attempt.stop(Stop::Cancelled);
                    }
                }
                AGAIN
            }
            Ok(None) => AGAIN,
            Err(_) => AFTER_ERROR,
        }
    }
}
