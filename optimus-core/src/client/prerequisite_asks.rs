//! Carries what the submits of a client have asked of other queues: [`Asks`].

use std::{collections::BTreeSet, time::Duration};

use futures_util::future::BoxFuture;
use tokio::time::timeout;

use super::Client;
use crate::{broker::Broker, id::QueueName, log_event};

/// The most turns for one queue. A worker of the queue relays the rest.
const TURNS_MAX: usize = 64;
/// How long a closing client tries to carry its last asks.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

/// The queues with asks for prerequisites in other queues. Workers carry them, too, but only after
/// a while, and a queue may have no worker.
pub(super) struct Asks {
    broker: Broker,
    waiting: BTreeSet<QueueName>,
    under_way: Option<BoxFuture<'static, ()>>,
}

impl Asks {
    pub(super) fn new(broker: Broker) -> Self {
        Self { broker, waiting: BTreeSet::new(), under_way: None }
    }

    /// Notes that a submit to this queue has asked something of another queue.
    pub(super) fn add(&mut self, queue: QueueName) {
        self.waiting.insert(queue);
    }

    /// Returns whether nothing is left to carry.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_none()
    }

    /// Carries the asks of one queue. The future can be dropped and the method called again.
    pub(super) async fn carry(&mut self) {
        if self.under_way.is_none()
            && let Some(queue) = self.waiting.pop_first()
        {
            self.under_way = Some(Box::pin(relay(self.broker.clone(), queue)));
        }
        if let Some(under_way) = &mut self.under_way {
            under_way.await;
            self.under_way = None;
        }
    }

    /// Carries all asks, for a limited time.
    pub(super) async fn finish(mut self) {
        let all = async {
            while !self.is_empty() {
                self.carry().await;
            }
        };
        drop(timeout(LEAVE_WITHIN, all).await);
    }
}

impl Client {
    /// Carries effects to other queues at once. If that fails, a worker does it soon.
    pub(super) async fn carry(&self, queue: &QueueName) {
        relay(self.0.broker.clone(), queue.clone()).await;
    }
}

/// Carries effects of a queue to others.
pub(super) async fn relay(broker: Broker, queue: QueueName) {
    for _ in 0..TURNS_MAX {
        match broker.relay(&queue).await {
            Ok(turn) if turn.more => {}
            Ok(_) => return,
            Err(problem) => {
                let text = "could not pass on what a submit asks of other queues; a worker will";
                log_event!(broker.log(), DEBUG, %queue, error = %problem, "{text}");
                return;
            }
        }
    }
}
