//! Receives the cancels of running tasks, and what operators ask of the process, at once. Without
//! this role, they would arrive with the next heartbeat, and when the process attends.

use std::{sync::Arc, time::Duration};

use optimus_core::{
    Lease, QueueName, WorkerId,
    broker::{Asked, Broker},
};

use crate::{executor, refused_wait::RefusedWait, role::Role, shared::Shared};

/// The longest wait on an idle connection. Some middleboxes close connections that are idle for a
/// minute.
const BLOCK_FOR: Duration = Duration::from_secs(50);
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

    /// Asks an attempt to stop. The request may be for an earlier attempt that has ended.
    fn stop(&self, lease: &Lease) {
        if let Some(attempt) = self.shared.attempts.of(lease) {
            attempt.cancel();
        }
        executor::give_back_quarantined(&self.shared, |held| held == lease);
    }
}

impl Role for CancelListener {
    async fn tick(&mut self) -> Duration {
        let queues = self.shared.queues.iter();
        let standings: Vec<(QueueName, WorkerId)> =
            queues.map(|queue| (queue.name.clone(), queue.worker())).collect();
        let process = (&Broker::fleet(), &self.shared.member);
        let answer = self.broker.wait_until_asked(&standings, process, BLOCK_FOR).await;
        self.refused.note(&self.shared.log, &answer);
        match answer {
            Ok(Some(Asked::Stop(lease))) => self.stop(&lease),
            Ok(Some(Asked::Attend)) => self.shared.wakeups.process_asked(),
            Ok(None) => {}
            Err(_) => return AFTER_ERROR,
        }
        AGAIN
    }
}
