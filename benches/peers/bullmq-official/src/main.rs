//! bullmq-official: `BullMQ`'s own scripts, called from Rust over one connection.

use std::sync::Arc;

use bullmq::options::{QueueOptions, RedisConnectionOptions, WorkerOptions};
use bullmq::types::RemoveOnFinish;
use bullmq::{BulkJob, Job, Queue, Worker};
use peer_runner::{Argument, Peer, Result, ran, run, setting};
use serde_json::Value;

#[derive(Clone)]
struct BullMq {
    url: String,
    queue: Arc<Queue>,
}

impl Peer for BullMq {
    const PACKAGE: &'static str = "bullmq-official";

    async fn connect(url: &str) -> Result<Self> {
        let options = QueueOptions::new().connection(RedisConnectionOptions::new().url(url));
        let queue = Arc::new(Queue::with_options("bench", options).await?);
        Ok(Self { url: url.to_owned(), queue })
    }

    async fn submit(&mut self, argument: Argument) -> Result {
        self.queue.add("noop", argument).await?;
        Ok(())
    }

    async fn submit_all(&mut self, arguments: Vec<Argument>) -> Result {
        let jobs = arguments.into_iter().map(|argument| BulkJob::new("noop", argument));
        self.queue.add_bulk(jobs.collect()).await?;
        Ok(())
    }

    async fn work(self) -> Result {
        let options = WorkerOptions::new()
            .connection(RedisConnectionOptions::new().url(self.url))
            .concurrency(setting("IN_FLIGHT", 100)?)
            .remove_on_complete(RemoveOnFinish::Bool(true))
            .remove_on_fail(RemoveOnFinish::Bool(true));
        let noop = |job: Job, _| async move {
            ran(&serde_json::from_value(job.data().clone())?);
            Ok(Value::Null)
        };
        let worker = Worker::with_options("bench", noop, options).await?;
        // The channel of the library's events has no bound, so it must be read.
        while worker.next_event().await.is_some() {}
        Ok(())
    }
}

fn main() -> Result {
    run::<BullMq>()
}
