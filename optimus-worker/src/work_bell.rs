//! Waits for work to come to an idle worker: doorbells, and a poll in case one was lost.

use std::{sync::Arc, time::Duration};

use optimus_core::{QueueName, broker::Broker};

use crate::{role::Role, shared::Shared};

const AFTER_ERROR: Duration = Duration::from_millis(500);
const UNTIL_WOKEN: Duration = Duration::from_secs(3600);
const AGAIN: Duration = Duration::ZERO;

/// Waits on the doorbells of the queues that were found empty, while there are idle slots.
pub(crate) struct WorkBell {
    shared: Arc<Shared>,
    broker: Broker,
}

impl WorkBell {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let broker = shared.broker.blocking("work bell");
        Self { shared, broker }
    }

    fn mark(&self, queues: &[QueueName]) {
        for queue in self.shared.queues.iter().filter(|queue| queues.contains(&queue.name)) {
            queue.set_work(true);
        }
        self.shared.turn.notify_one();
    }
}

impl Role for WorkBell {
    async fn tick(&mut self) -> Duration {
        let empty: Vec<QueueName> = self
            .shared
            .queues
            .iter()
            .filter(|queue| !queue.may_have_work())
            .map(|queue| queue.name.clone())
            .collect();
        if empty.is_empty() || self.shared.slots.idle() == 0 {
            return UNTIL_WOKEN;
        }
        match self.broker.wait_for_work(&empty, self.shared.config.poll).await {
            Ok(Some(queue)) => {
                self.mark(std::slice::from_ref(&queue));
                if self.shared.slots.idle() == 0 {
                    // Somebody else may have a slot; a lost ring costs that worker its poll only.
                    drop(self.broker.ring(&queue).await);
                }
                AGAIN
            }
            Ok(None) => {
                self.mark(&empty);
                AGAIN
            }
            Err(problem) => {
                // One foreign key must not make the worker deaf for its other queues.
                if !problem.is_transient() {
                    self.mark(&empty);
                }
                AFTER_ERROR
            }
        }
    }
}
