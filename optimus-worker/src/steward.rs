//! Cleans up the queues of the namespace that this worker does not serve.

use std::{sync::Arc, time::Duration};

use optimus_core::{
    QueueName,
    broker::{BATCH_MAX, Broker, BrokerError},
    interval, log_event,
};

use crate::{
    janitor,
    reaper::{LostRuns, log_reaped},
    relay::{Unreachable, relay},
    role::Role,
    shared::Shared,
};

/// The workers of a queue together take one such turn in this time, for any number of workers.
const AVERAGE: Duration = Duration::from_secs(15);
/// How many queues one worker cleans up in a turn. The next turn begins at another queue.
const QUEUES_MAX: usize = 16;
/// The most calls for one queue in a turn.
const CALLS_MAX: usize = 100;

/// The role that cleans up queues without a live worker. It takes back the tasks that the last
/// worker of a queue held when it died, purges the queue, and removes the queue if it is unused.
/// Queues with live workers have their own reaper and janitor, so the steward finds nothing to do
/// there.
pub(crate) struct Steward {
    shared: Arc<Shared>,
    broker: Broker,
    unreachable: Unreachable,
}

impl Steward {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let broker = shared.maintenance.clone();
        Self { shared, broker, unreachable: Unreachable::default() }
    }

    /// Returns the queues that this worker does not serve, from a random one on.
    async fn others(&self) -> Result<Vec<QueueName>, BrokerError> {
        let mut names = self.broker.queues().await?;
        names.retain(|name| self.shared.queues.place(name).is_none());
        if !names.is_empty() {
            let first = fastrand::usize(..names.len());
            names.rotate_left(first);
            names.truncate(QUEUES_MAX);
        }
        Ok(names)
    }

    /// Relays what its tasks have caused in other queues, reaps the queue, purges it unless a live
    /// worker of the queue does so, and removes it if it is unused.
    async fn clean_up(&mut self, queue: &QueueName) -> Result<(), BrokerError> {
        relay(&self.shared, &self.broker, queue, &mut self.unreachable).await;
        let (lease, caller) = (self.shared.config.lease, self.shared.member.clone());
        for _ in 0..CALLS_MAX {
            let reaped = self.broker.reap(queue, &caller, lease, BATCH_MAX).await?;
            let (next_expiry, more) = (reaped.next_expiry, reaped.more);
            log_reaped(&mut LostRuns::of(&self.shared), queue, reaped);
            if next_expiry.is_some_and(|left| !left.is_zero()) {
                return Ok(());
            }
            if !more {
                break;
            }
        }
        let workers = janitor::purge(&self.shared, &self.broker, queue).await?.workers;
        if workers == 0 && self.broker.retire(queue, self.shared.config.unused_for).await? {
            let queue = queue.clone();
            log_event!(self.shared.log, INFO, %queue, "removed an unused queue");
        }
        Ok(())
    }
}

impl Role for Steward {
    async fn tick(&mut self) -> Duration {
        let shared = self.shared.clone();
        let log = &shared.log;
        match self.others().await {
            Ok(names) => {
                for queue in &names {
                    if let Err(problem) = self.clean_up(queue).await {
                        let queue = queue.clone();
                        let text = "could not clean up a queue that this worker does not serve";
                        log_event!(log, DEBUG, %queue, error = %problem, "{text}");
                    }
                }
            }
            Err(problem) => log_event!(log, DEBUG, error = %problem, "could not list the queues"),
        }
        interval(AVERAGE, self.shared.queues.peers(), fastrand::f64())
    }
}

#[cfg(test)]
mod tests {
    use optimus_core::{Client, Round, Sharded, ShardedOptions, Walk};

    use super::*;
    use crate::Worker;

    const SHORT: Duration = Duration::from_millis(1);

    fn shards() -> Sharded {
        let options = ShardedOptions { shards: 1, idle: AVERAGE, walk: Walk::Forever };
        let round = |_| Ok(Box::pin(std::future::ready(Ok(Round::Idle))) as _);
        Sharded::new(("shards", "here"), options, Vec::new, round)
    }

    #[tokio::test]
    async fn a_worker_without_queues_of_its_own_cleans_up_those_of_others() {
        let url = "memory://steward-without-queues";
        let client = Client::builder(url).connect().await.unwrap();
        client.broker().announce(&QueueName::new("old").unwrap()).await.unwrap();
        let worker = Worker::builder(url).quiet().only_named_tasks().sharded(shards);
        let worker = worker.keep_unused_queues(SHORT).build().unwrap();
        let mut steward = Steward::new(worker.idle_worker().await);
        tokio::time::sleep(2 * SHORT).await;
        steward.tick().await;
        assert_eq!(client.inspector().queues().await.unwrap(), []);
    }
}
