//! Reads whose leases are not over.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Broker, BrokerError,
    inspect::{get, texts},
    reply::plain_bytes,
};
use crate::id::QueueName;

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
