//! Waits for work to come to an idle worker: doorbells, and a poll in case one was lost.

use std::{pin::pin, sync::Arc, time::Duration};

use optimus_core::{
    QueueName,
    broker::{Broker, BrokerError, Woken},
};

use crate::{queues::Served, role::Role, shared::Shared};

const AFTER_ERROR: Duration = Duration::from_millis(500);
const UNTIL_WOKEN: Duration = Duration::from_secs(3600);
/// So soon a claim that a ring brought about is answered. If it leaves the queue empty, one wait
/// serves for all queues; else there is one for the others, which is made to return later.
const CLAIM_FIRST: Duration = Duration::from_millis(2);
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

    fn empty_queues(&self) -> impl Iterator<Item = &Served> {
        self.shared.queues.iter().filter(|queue| !queue.may_have_work())
    }

    /// Until a bell rings. A queue that is found empty meanwhile is waited for, too: a blocking
    /// command can't be given up without losing what it may have popped, so it is made to return.
    async fn wait(&self, empty: &[QueueName]) -> Result<Option<Woken>, BrokerError> {
        let home = &self.shared.queues[0];
        let worker = home.worker();
        let waiter = (&home.name, &worker);
        let mut rung = pin!(self.broker.wait_for_work(empty, waiter, self.shared.config.poll));
        loop {
            tokio::select! {
                biased;
                answer = &mut rung => return answer,
                () = self.shared.listen.notified() => {}
            }
            if self.empty_queues().any(|queue| !empty.contains(&queue.name)) {
                // Where this fails, Redis is away, and the wait fails with it.
                drop(self.shared.broker.rouse(&home.name, &worker).await);
                return rung.await;
            }
        }
    }

    fn mark(&self, queues: &[QueueName]) {
        for queue in self.shared.queues.iter().filter(|queue| queues.contains(&queue.name)) {
            queue.hint();
        }
        self.shared.turn.notify_one();
    }
}

impl Role for WorkBell {
    async fn tick(&mut self) -> Duration {
        let empty: Vec<QueueName> = self.empty_queues().map(|queue| queue.name.clone()).collect();
        if empty.is_empty() {
            return UNTIL_WOKEN;
        }
        if self.shared.slots.idle() == 0 {
            // Another queue may fill each slot anew and leave the claimer nothing to tell.
            self.shared.slots.await_idle();
            return UNTIL_WOKEN;
        }
        match self.wait(&empty).await {
            Ok(Some(Woken::Roused)) => AGAIN,
            Ok(Some(Woken::Work(queue))) => {
                self.mark(std::slice::from_ref(&queue));
                if self.shared.slots.idle() == 0 || self.shared.suspects.any() {
                    // Somebody else may have a slot; a lost ring costs that worker its poll only.
                    drop(self.broker.ring(&queue).await);
                }
                if self.shared.queues.len() == 1 { AGAIN } else { CLAIM_FIRST }
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
