//! The options of a sharded function have bounds.

use optimus::{Round, Shard};

#[optimus::sharded]
async fn no_number(_: Shard) -> Result<Round, String> {
    Ok(Round::Idle)
}

#[optimus::sharded(shards = 0)]
async fn none(_: Shard) -> Result<Round, String> {
    Ok(Round::Idle)
}

#[optimus::sharded(shards = 1025)]
async fn too_many(_: Shard) -> Result<Round, String> {
    Ok(Round::Idle)
}

#[optimus::sharded(shards = 2, idle = 0)]
async fn restless(_: Shard) -> Result<Round, String> {
    Ok(Round::Idle)
}

#[optimus::sharded(shards = 2, walk = "twice")]
async fn twice(_: Shard) -> Result<Round, String> {
    Ok(Round::Idle)
}

#[optimus::sharded(partitions = 2)]
async fn synonym(_: Shard) -> Result<Round, String> {
    Ok(Round::Idle)
}

#[optimus::sharded(10)]
async fn bare(_: Shard) -> Result<Round, String> {
    Ok(Round::Idle)
}

#[optimus::sharded(shards = 2, shards = 3)]
async fn again(_: Shard) -> Result<Round, String> {
    Ok(Round::Idle)
}

fn main() {}
