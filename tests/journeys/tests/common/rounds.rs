//! Sharded functions for tests, and what their rounds have seen: [`Rounds`].

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use optimus_core::{BoxError, DataKey, Round, RunningRound, Shard, Sharded, ShardedOptions, Walk};
use optimus_testkit::eventually;

/// A round, as it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub worker: &'static str,
    pub index: u16,
    pub count: u16,
    pub generation: u64,
    pub fence: u64,
}

/// The rounds of all workers of a test. Each worker has a copy with its own name.
#[derive(Debug, Clone, Default)]
pub struct Rounds {
    worker: &'static str,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Rounds {
    /// Returns the same rounds, for a worker of this name.
    pub fn of(&self, worker: &'static str) -> Self {
        Self { worker, seen: self.seen.clone() }
    }

    pub fn note(&self, shard: &Shard) {
        let (index, count) = (shard.index(), shard.count());
        let (generation, fence) = (shard.generation(), shard.fence());
        let seen = Seen { worker: self.worker, index, count, generation, fence };
        self.seen.lock().unwrap().push(seen);
    }

    pub fn all(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn clear(&self) {
        self.seen.lock().unwrap().clear();
    }

    /// Returns the numbers of the shards that were seen since the last clear.
    pub fn indexes(&self) -> BTreeSet<u16> {
        self.all().iter().map(|seen| seen.index).collect()
    }

    /// Waits until each of so many shards has begun a round from now on.
    pub async fn cover(&self, count: u16) {
        self.clear();
        eventually("each shard has a round", Duration::from_secs(20), async || {
            self.indexes() == (0..count).collect()
        })
        .await;
    }
}

/// Returns a sharded function with short rests.
pub const fn sharded(
    name: &'static str,
    shards: u16,
    walk: Walk,
    run: fn(Shard) -> Result<RunningRound, BoxError>,
) -> Sharded {
    let idle = Duration::from_millis(80);
    Sharded::new((name, name), ShardedOptions { shards, idle, walk }, needed, run)
}

fn needed() -> Vec<DataKey> {
    vec![DataKey::of::<Rounds>()]
}

/// A function that notes its rounds and finds nothing.
pub fn idle() -> Sharded {
    sharded("idle", 6, Walk::Forever, |shard| {
        Ok(Box::pin(async move {
            shard.data::<Rounds>().ok_or("no rounds")?.note(&shard);
            Ok(Round::Idle)
        }))
    })
}
