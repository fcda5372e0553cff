//! Reads whose leases are not over, and what they hold.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Broker, BrokerError,
    inspect::{get, size, texts},
    reply::plain_bytes,
};
use crate::id::{QueueName, WorkerId};

impl Broker {
    /// Reads the ids of the workers of these queues whose leases are not over: one command a queue.
    /// A queue that Redis can't read, because a key has another type, is left out.
    ///
    /// # Errors
    /// Those that are about all queues, such as an outage.
    pub async fn live_workers(
        &self,
        queues: &BTreeSet<QueueName>,
    ) -> Result<BTreeMap<QueueName, BTreeSet<String>>, BrokerError> {
        if queues.is_empty() {
            return Ok(BTreeMap::new());
        }
        let after = format!("({}", self.now_ms().await?);
        let live = |queue| get(&["ZRANGEBYSCORE", &self.keys(queue).of("workers"), &after, "+inf"]);
        let mut found = BTreeMap::new();
        let answers = self.read(queues.iter().map(live).collect()).await;
        for (queue, answer) in queues.iter().zip(answers) {
            match answer.and_then(|ids| texts("ZRANGEBYSCORE", ids)) {
                Ok(ids) => drop(found.insert(queue.clone(), ids.into_iter().collect())),
                Err(BrokerError::Rejected(_)) => {}
                Err(problem) => return Err(problem),
            }
        }
        Ok(found)
    }

    /// Counts the tasks that workers hold: one command for each pair. What Redis can't read,
    /// because the key has another type, counts as none.
    pub async fn held(&self, pairs: &[(QueueName, WorkerId)]) -> Result<Vec<u64>, BrokerError> {
        let held = |(queue, id): &(QueueName, WorkerId)| {
            get(&["HLEN", &self.keys(queue).working(id.as_str())])
        };
        let answers = self.read(pairs.iter().map(held).collect()).await.into_iter();
        answers
            .map(|answer| match answer {
                // One field holds the worker's last claim.
                Ok(fields) => Ok(size(&fields).saturating_sub(1)),
                Err(BrokerError::Rejected(_)) => Ok(0),
                Err(problem) => Err(problem),
            })
            .collect()
    }

    /// Reads the descriptions of workers, as JSON; empty for one that is not there.
    pub async fn worker_descriptions(
        &self,
        workers: &[(QueueName, String)],
    ) -> Result<Vec<String>, BrokerError> {
        let told = |(queue, id): &(QueueName, String)| {
            get(&["HGET", &self.keys(queue).worker(id), "description"])
        };
        let answers = self.read(workers.iter().map(told).collect()).await.into_iter();
        answers
            .map(|answer| {
                let bytes = plain_bytes("HGET", answer?)?.unwrap_or_default();
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            })
            .collect()
    }
}
