//! rusty-sidekiq: Sidekiq's format, written and read by Rust.

use async_trait::async_trait;
use peer_runner::{Argument, Peer, Result, ran, run, setting};
use sidekiq::{Processor, ProcessorConfig, RedisConnectionManager, RedisPool, Worker, WorkerOpts};

const QUEUE: &str = "bench";

#[derive(Clone)]
struct RustySidekiq {
    pool: RedisPool,
}

#[derive(Clone)]
struct Noop;

#[async_trait]
impl Worker<Argument> for Noop {
    fn opts() -> WorkerOpts<Argument, Self> {
        WorkerOpts::new().queue(QUEUE)
    }

    async fn perform(&self, argument: Argument) -> sidekiq::Result<()> {
        ran(&argument);
        Ok(())
    }
}

impl Peer for RustySidekiq {
    const PACKAGE: &'static str = "rusty-sidekiq";

    async fn connect(url: &str) -> Result<Self> {
        let pool = RedisPool::builder().max_size(setting("POOL", 15)?);
        Ok(Self { pool: pool.build(RedisConnectionManager::new(url)?).await? })
    }

    async fn submit(&mut self, argument: Argument) -> Result {
        Ok(Noop::perform_async(&self.pool, argument).await?)
    }

    async fn work(self) -> Result {
        let config = ProcessorConfig::default().num_workers(setting("IN_FLIGHT", 10)?);
        let mut processor = Processor::new(self.pool, vec![QUEUE.to_owned()]).with_config(config);
        processor.register(Noop);
        processor.run().await;
        Ok(())
    }
}

fn main() -> Result {
    run::<RustySidekiq>()
}
