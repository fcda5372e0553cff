//! Purges the ended tasks that are too old or too many.

use std::{sync::Arc, time::Duration};

use optimus_core::{
    QueueName,
    broker::{Broker, BrokerError},
    interval, log_event,
};

use crate::{role::Role, shared::Shared};

/// All workers of a queue together purge it once in this time, for any number of workers.
const AVERAGE: Duration = Duration::from_secs(15);
/// The most calls for one queue in a turn.
const CALLS_MAX: usize = 1_000;
/// The wait for the next turn if more tasks remain, because tasks may die faster than one turn
/// purges.
const MORE_AFTER: Duration = Duration::from_millis(100);

/// The role that limits how much of Redis' memory the ended tasks use.
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

/// Purges one queue.
pub(crate) async fn purge(
    shared: &Shared,
    broker: &Broker,
    queue: &QueueName,
) -> Result<Seen, BrokerError> {
    let mut sum = Sum::default();
    let seen = sum.purge(shared, broker, queue).await;
    // This is logged even if a later call failed.
    sum.log(shared, queue);
    seen
}

/// The result of a turn in one queue.
pub(crate) struct Seen {
    pub(crate) workers: usize,
    /// Whether there is more to purge.
    more: bool,
}

/// The tasks that a turn has purged from a queue, and the reasons.
#[derive(Default)]
struct Sum {
    tasks: usize,
    above_count: usize,
    above_bytes: usize,
}

impl Sum {
    async fn purge(
        &mut self,
        shared: &Shared,
        broker: &Broker,
        queue: &QueueName,
    ) -> Result<Seen, BrokerError> {
        let mut seen = Seen { workers: 0, more: false };
        for _ in 0..CALLS_MAX {
            let idle = shared.ledgers.idle(broker);
            let purged = broker.purge(queue, shared.config.keep_ended, idle).await?;
            self.tasks += purged.tasks;
            self.above_count += purged.above_count;
            self.above_bytes += purged.above_bytes;
            seen = Seen { workers: purged.workers, more: purged.more };
            if !seen.more {
                break;
            }
        }
        Ok(seen)
    }

    fn log(&self, shared: &Shared, queue: &QueueName) {
        let Self { tasks, above_count, above_bytes } = *self;
        let (queue, past_age) = (queue.clone(), tasks - above_count - above_bytes);
        if above_bytes > 0 {
            log_event!(
                shared.log,
                WARN,
                %queue,
                tasks,
                past_age,
                above_count,
                above_bytes,
                "removed ended tasks before their maximum age, because the dead or the cancelled \
                 tasks have more bytes than keep_ended_bytes"
            );
        } else if tasks > 0 {
            log_event!(
                shared.log,
                INFO,
                %queue,
                tasks,
                past_age,
                above_count,
                "removed ended tasks because they were too many or too old"
            );
        }
    }
}

impl Role for Janitor {
    async fn tick(&mut self) -> Duration {
        let (mut workers, mut more) = (1, false);
        for queue in &self.shared.queues {
            if let Ok(seen) = purge(&self.shared, &self.broker, &queue.name).await {
                workers = workers.max(seen.workers);
                more |= seen.more;
            }
        }
        self.shared.queues.set_peers(workers);
        let pause = interval(AVERAGE, workers, fastrand::f64());
        if more { pause.min(MORE_AFTER) } else { pause }
    }
}
