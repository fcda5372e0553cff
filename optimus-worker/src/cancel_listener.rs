//! Receives the cancels of running tasks at once. Without this role, they would arrive with the
//! next heartbeat.

use std::{sync::Arc, time::Duration};

use optimus_core::{QueueName, WorkerId, broker::Broker};

use crate::{executor, refused_wait::RefusedWait, role::Role, shared::Shared};

/// The longest wait on an idle connection. Some middleboxes close connections that are idle for a
/// minute.
const BLOCK_FOR: Duration = Duration::from_secs(40);
const AFTER_ERROR: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::ZERO;

/// The role that waits for cancels. It waits on this worker's own wakeup lists in all queues at
/// once, because the worker's id may differ from queue to queue. The wait for work is separate,
/// because that wait ends at each wakeup, and Redis would then have to enter and remove these lists
/// each time.
pub(crate) struct CancelListener {
    shared: Arc<Shared>,
    broker: Broker,
    refused: RefusedWait,
}

impl CancelListener {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let broker = shared.broker.blocking("cancel listener");
        let refused = RefusedWait::new(
            "can't wait for cancels with BLPOP; this worker receives them with its heartbeats",
        );
        Self { shared, broker, refused }
    }
}

impl Role for CancelListener {
    async fn tick(&mut self) -> Duration {
        let queues = self.shared.queues.iter();
        let standings: Vec<(QueueName, WorkerId)> =
            queues.map(|queue| (queue.name.clone(), queue.worker())).collect();
        let answer = self.broker.wait_for_stop(&standings, BLOCK_FOR).await;
        self.refused.note(&self.shared.log, &answer);
        match answer {
            Ok(asked) => {
                // The request may be for an earlier attempt that has ended.
                if let Some(lease) = asked {
                    if let Some(attempt) = self.shared.attempts.of(&lease) {
                        attempt.cancel();
                    }
                    executor::give_back_quarantined(&self.shared, |held| *held == lease);
                }
                AGAIN
            }
            Err(_) => AFTER_ERROR,
        }
    }
}
