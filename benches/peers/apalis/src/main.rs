//! apalis: the storage of apalis-redis, with its locks or without.

use std::time::Duration;

use apalis::layers::WorkerBuilderExt as _;
use apalis::prelude::{BoxDynError, TaskSink as _, WorkerBuilder};
use apalis_redis::{Config, RedisStorage};
use peer_runner::{Argument, Peer, Result, ran, run, setting};

#[derive(Clone)]
struct Apalis {
    storage: RedisStorage<Argument>,
}

impl Peer for Apalis {
    const PACKAGE: &'static str = "apalis-redis";

    async fn connect(url: &str) -> Result<Self> {
        let safe = setting("LOCKS", true)?;
        let config = Config::default()
            .queue("bench")
            .batch_size(setting("BATCH", 10)?)
            .heartbeat_interval(Duration::from_millis(setting("HEARTBEAT_MS", 100)?))
            .lock_tasks(safe)
            .emit_events(safe);
        let connection = apalis_redis::connect(url).await?;
        Ok(Self { storage: RedisStorage::new(connection).with_config(config) })
    }

    async fn submit(&mut self, argument: Argument) -> Result {
        Ok(self.storage.push(argument).await?)
    }

    async fn submit_all(&mut self, arguments: Vec<Argument>) -> Result {
        Ok(self.storage.push_bulk(arguments).await?)
    }

    async fn work(self) -> Result {
        let worker = WorkerBuilder::new(format!("bench-{}", std::process::id()))
            .backend(self.storage)
            .concurrency(setting("IN_FLIGHT", 100)?)
            .build(noop);
        Ok(worker.run().await?)
    }
}

async fn noop(argument: Argument) -> std::result::Result<(), BoxDynError> {
    ran(&argument);
    Ok(())
}

fn main() -> Result {
    run::<Apalis>()
}
