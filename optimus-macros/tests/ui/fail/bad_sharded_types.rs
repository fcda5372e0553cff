//! The types of a sharded function: data that can be given to each round, a `Round`, and the shard
//! of Optimus.

use std::cell::Cell;

use optimus::{Round, Shard};

#[optimus::sharded(shards = 2)]
async fn bad_data(_: Shard, #[data] _: Cell<u8>) -> Result<Round, String> {
    Ok(Round::Idle)
}

#[optimus::sharded(shards = 2)]
async fn no_round(_: Shard) -> Result<u8, String> {
    Ok(1)
}

mod other {
    pub struct Shard;
}

#[optimus::sharded(shards = 2)]
async fn other_shard(_: other::Shard) -> Result<Round, String> {
    Ok(Round::Idle)
}

fn main() {}
