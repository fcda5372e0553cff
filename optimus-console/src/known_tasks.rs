//! The names of tasks that workers can run, for the search by biz id: [`KnownTasks`].

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use optimus_core::{Error, Inspector, QueueName};

const KEPT: Duration = Duration::from_secs(60);
const REQUESTS_MAX: usize = 16;

/// The names of tasks by queue.
#[derive(Default)]
pub(crate) struct KnownTasks {
    read_at: Option<Instant>,
    names: BTreeMap<QueueName, BTreeSet<String>>,
}

impl KnownTasks {
    /// Returns the names, and the queues that Redis refuses to read. The names of a queue are read
    /// once a minute at most; those that could not be read are read each time.
    pub(crate) async fn read(
        &mut self,
        inspector: &Inspector,
        queues: &[QueueName],
    ) -> Result<(&BTreeMap<QueueName, BTreeSet<String>>, Vec<QueueName>), Error> {
        if self.read_at.is_none_or(|at| at.elapsed() >= KEPT) {
            self.names.clear();
            self.read_at = Some(Instant::now());
        }
        let missing: Vec<QueueName> =
            queues.iter().filter(|queue| !self.names.contains_key(*queue)).cloned().collect();
        let reads = missing.into_iter().map(|queue| {
            let inspector = inspector.clone();
            async move {
                let workers = inspector.workers(&queue).await;
                (queue, workers)
            }
        });
        let mut reads = stream::iter(reads).buffered(REQUESTS_MAX);
        let mut unread = Vec::new();
        while let Some((queue, workers)) = reads.next().await {
            match workers {
                Ok(workers) => {
                    let tasks = workers.into_iter().flat_map(|worker| worker.description.tasks);
                    self.names.insert(queue, tasks.collect());
                }
                Err(problem) if problem.is_unavailable() => return Err(problem),
                // Another program has written one of its keys, which hides no other queue.
                Err(_) => unread.push(queue),
            }
        }
        Ok((&self.names, unread))
    }
}
