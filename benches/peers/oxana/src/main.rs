//! oxana: runs one task at a time, or in its batches, with a pool of connections.

use std::convert::Infallible;
use std::time::Duration;

use async_trait::async_trait;
use oxana::{
    BatchItem, FromContext, Job, JobContext, Queue, QueueConcurrency, QueueConfig, QueueKind,
    Storage, StorageBuilderTimeouts, Worker, WorkerBatchConfig,
};
use peer_runner::{Argument, Peer, Result, ran, run, setting};
use serde::{Deserialize, Serialize};

/// How long a batch waits for its last task.
const BATCH_WITHIN: Duration = Duration::from_millis(5);

#[derive(Clone)]
struct Oxana {
    storage: Storage,
}

/// The argument, as a job of the library.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct Noop(Argument);

impl Job for Noop {
    fn name() -> &'static str {
        "noop"
    }
}

struct Bench;

impl Queue for Bench {
    fn to_config() -> QueueConfig {
        let in_flight = setting("IN_FLIGHT", 50).expect("the harness sets a number");
        QueueConfig {
            kind: QueueKind::Static { key: "bench".into() },
            concurrency: QueueConcurrency::Fixed(in_flight),
            throttle: None,
        }
    }
}

struct NoopWorker;

impl FromContext<()> for NoopWorker {
    fn from_context((): &()) -> Self {
        Self
    }
}

#[async_trait]
impl Worker<Noop> for NoopWorker {
    type Error = Infallible;

    async fn process(&self, job: Noop, _: &JobContext) -> std::result::Result<(), Infallible> {
        ran(&job.0);
        Ok(())
    }

    async fn run_batch(&self, jobs: Vec<BatchItem<Noop>>) -> std::result::Result<(), Infallible> {
        for item in &jobs {
            ran(&item.job.0);
        }
        Ok(())
    }

    fn batch_config() -> Option<WorkerBatchConfig> {
        let batch = setting("BATCH", 1).expect("the harness sets a number");
        (batch > 1).then(|| WorkerBatchConfig::new(batch, BATCH_WITHIN))
    }
}

impl Peer for Oxana {
    const PACKAGE: &'static str = "oxana";

    async fn connect(url: &str) -> Result<Self> {
        let timeouts = StorageBuilderTimeouts::new(Duration::from_secs(30));
        let builder = Storage::builder().max_pool_size(setting("POOL", 60)?).timeouts(timeouts);
        Ok(Self { storage: builder.build_from_redis_url(url)? })
    }

    async fn submit(&mut self, argument: Argument) -> Result {
        self.storage.enqueue(Bench, Noop(argument)).await?;
        Ok(())
    }

    async fn submit_all(&mut self, arguments: Vec<Argument>) -> Result {
        self.storage.enqueue_list(Bench, arguments.into_iter().map(Noop)).await?;
        Ok(())
    }

    async fn work(self) -> Result {
        let runtime = self
            .storage
            .runtime(())
            .queue::<Bench>()
            .worker::<NoopWorker, Noop>()
            .dequeue_timeout(Duration::from_millis(setting("POLL_MS", 5)?));
        runtime.run().await?;
        Ok(())
    }
}

fn main() -> Result {
    run::<Oxana>()
}
