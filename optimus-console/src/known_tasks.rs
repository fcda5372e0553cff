//! The names of tasks that workers can run, for the search by biz id: [`KnownTasks`].

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use futures_util::{StreamExt, TryStreamExt, stream};
use optimus_core::{Error, Inspector, QueueName};

const KEPT: Duration = Duration::from_secs(60);
const REQUESTS_MAX: usize = 16;

/// The names of tasks by queue.
#[derive(Default)]
pub(crate) struct KnownTasks(Option<(Instant, BTreeMap<QueueName, BTreeSet<String>>)>);

impl KnownTasks {
    /// Returns the names. They are read once a minute at most.
    pub(crate) async fn read(
        &mut self,
        inspector: &Inspector,
        queues: &[QueueName],
    ) -> Result<&BTreeMap<QueueName, BTreeSet<String>>, Error> {
        if self.0.as_ref().is_none_or(|(at, _)| at.elapsed() >= KEPT) {
            let reads = queues.iter().cloned().map(|queue| {
                let inspector = inspector.clone();
                async move {
                    let workers = inspector.workers(&queue).await?;
                    let names = workers.into_iter().flat_map(|worker| worker.description.tasks);
                    Ok::<_, Error>((queue, names.collect()))
                }
            });
            let names = stream::iter(reads).buffered(REQUESTS_MAX).try_collect().await?;
            self.0 = Some((Instant::now(), names));
        }
        let (_, names) = self.0.get_or_insert_with(|| (Instant::now(), BTreeMap::new()));
        Ok(names)
    }
}
