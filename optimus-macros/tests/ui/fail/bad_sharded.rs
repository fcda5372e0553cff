//! A sharded function is async, takes a shard and data, and returns what a round has found.

use optimus::{Round, Shard};

#[optimus::sharded(shards = 2)]
fn blocking(_: Shard) -> Result<Round, String> {
    Ok(Round::Idle)
}

#[optimus::sharded(shards = 2)]
async fn without_shard() -> Result<Round, String> {
    Ok(Round::Idle)
}

#[optimus::sharded(shards = 2)]
async fn with_argument(_: Shard, order: u64) -> Result<Round, String> {
    Ok(Round::Idle)
}

#[optimus::sharded(shards = 2)]
async fn by_reference(_: &Shard) -> Result<Round, String> {
    Ok(Round::Idle)
}

#[optimus::sharded(shards = 2)]
async fn without_result(_: Shard) {}

#[optimus::sharded(shards = 2)]
async fn generic<T>(_: Shard) -> Result<Round, String> {
    Ok(Round::Idle)
}

struct Service;

impl Service {
    #[optimus::sharded(shards = 2)]
    async fn method(&self, _: Shard) -> Result<Round, String> {
        Ok(Round::Idle)
    }
}

#[optimus::sharded(shards = 2)]
struct NoFunction;

fn main() {
    let _ = (blocking(), without_shard());
}
