//! Reads how many slots the workers of a queue use. Each read is bounded.

use redis::Cmd;

use super::{
    Broker, BrokerError,
    explain::text,
    inspect::{get, size, texts, whole},
};
use crate::id::{QueueName, WorkerId};

/// At most this many workers are read.
const WORKERS_MAX: usize = 1_000;
/// The workers of a queue are read so many at once.
const WORKERS_AT_ONCE: usize = 100;

/// A worker's slots.
#[derive(Debug)]
pub struct WorkerLoad {
    /// Its id.
    pub id: WorkerId,
    /// The ms at which its lease ends unless it is renewed.
    pub lease_until_ms: u64,
    /// The description that the worker registered, as JSON.
    pub description: String,
    /// How many tasks of the queue it holds.
    pub working: u64,
}

impl Broker {
    /// Reads the load of up to 1,000 workers of a queue, those whose leases are the longest, and
    /// how many others there are.
    pub async fn worker_loads(
        &self,
        queue: &QueueName,
    ) -> Result<(Vec<WorkerLoad>, u64), BrokerError> {
        let (all, first) = (self.keys(queue).of("workers"), format!("-{WORKERS_MAX}"));
        let range = get(&["ZRANGE", &all, &first, "-1", "WITHSCORES"]);
        // One read of all ids: while pages are read, leases are renewed and places change.
        let ids = texts("ZRANGE", self.read_one(range).await?)?;
        let others = if ids.len() < 2 * WORKERS_MAX {
            0
        } else {
            size(&self.read_one(get(&["ZCARD", &all])).await?).saturating_sub(WORKERS_MAX as u64)
        };
        let mut workers = Vec::with_capacity(ids.len() / 2);
        for some in ids.chunks(2 * WORKERS_AT_ONCE) {
            workers.extend(self.loads_of(queue, some).await?);
        }
        Ok((workers, others))
    }

    /// Reads the load of some workers, given by their ids and the ends of their leases.
    async fn loads_of(
        &self,
        queue: &QueueName,
        ids: &[String],
    ) -> Result<Vec<WorkerLoad>, BrokerError> {
        let keys = self.keys(queue);
        let loads = |pair: &[String]| {
            let description = get(&["HGET", &keys.worker(&pair[0]), "description"]);
            [description, get(&["HLEN", &keys.working(&pair[0])])]
        };
        let commands: Vec<Cmd> = ids.chunks_exact(2).flat_map(loads).collect();
        let mut answers = self.read(commands).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let mut workers = Vec::new();
        for pair in ids.chunks_exact(2) {
            let description = text(next()?)?.unwrap_or_default();
            // One field holds the worker's last claim.
            let working = size(&next()?).saturating_sub(1);
            let id = WorkerId::from_stored(&pair[0]);
            let lease_until_ms = pair[1].parse().map_or(0, whole);
            workers.push(WorkerLoad { id, lease_until_ms, description, working });
        }
        Ok(workers)
    }

    /// Reads the load of one worker; `None` if the queue does not know it.
    pub async fn worker_load(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
    ) -> Result<Option<WorkerLoad>, BrokerError> {
        let (keys, id) = (self.keys(queue), worker.as_str());
        let commands = vec![
            get(&["ZSCORE", &keys.of("workers"), id]),
            get(&["HGET", &keys.worker(id), "description"]),
            get(&["HLEN", &keys.working(id)]),
        ];
        let mut answers = self.read(commands).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let lease_until = text(next()?)?;
        let description = text(next()?)?.unwrap_or_default();
        let working = size(&next()?).saturating_sub(1);
        Ok(lease_until.map(|at| {
            let lease_until_ms = at.parse().map_or(0, whole);
            WorkerLoad { id: worker.clone(), lease_until_ms, description, working }
        }))
    }
}
