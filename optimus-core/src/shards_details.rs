//! What an operator sees of the shards of a sharded function: [`ShardsDetails`].

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::{
    broker::{MemberSeen, Positions, RosterSeen},
    id::WorkerId,
    inspect::WorkerDescription,
    limit::Shut,
    platform::instant,
    roster::Post,
    shard_failure::ShardFailure,
    shard_position::has_ended,
};

/// The shards of a sharded function at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ShardsDetails {
    /// The name of the function.
    pub name: String,
    /// How many shards there are; 0 if no worker has ever served them.
    pub count: u16,
    /// The present generation; 0 if nothing was given out yet, at the first start or after Redis
    /// has lost its data.
    pub generation: u64,
    /// Since when all shards are paused, by whom and why.
    pub paused: Option<Shut>,
    /// Each shard, by its number.
    pub shards: Vec<ShardDetails>,
    /// The shards of earlier counts that are not given back yet. The new ones wait for them.
    pub old: Vec<ShardHolder>,
    /// The workers that take part, also those that hold nothing, and those that are lost until
    /// another one notices it.
    pub workers: Vec<ShardWorker>,
}

/// One shard.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ShardDetails {
    /// Its number, from 0.
    pub index: u16,
    /// Who holds it.
    pub holder: Option<ShardHolder>,
    /// Since when this shard is paused, by whom and why.
    pub paused: Option<Shut>,
    /// How far it has come, as it was stored last; `None` if nothing was stored since the number of
    /// shards has changed.
    pub position: Option<Value>,
    /// Whether the pass over it has ended, with `walk = "once"`.
    pub has_ended: bool,
}

/// Who holds a shard.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ShardHolder {
    /// The worker.
    pub worker: WorkerId,
    /// The name of its machine.
    pub host: String,
    /// Since when, by Redis' clock.
    pub since: DateTime<Utc>,
    /// The fence of the shard's writes.
    pub fence: u64,
    /// Its last rounds, if they have failed. It is told with a heartbeat, for 32 shards of a worker
    /// at most.
    pub failing: Option<ShardFailure>,
    /// Whether its lease is over: it has died, or can't reach Redis. Nobody works on the shard,
    /// and another worker may take it.
    pub is_lost: bool,
}

/// A worker that takes part.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ShardWorker {
    /// The worker.
    pub worker: WorkerId,
    /// What it has said of itself.
    pub description: WorkerDescription,
    /// How many shards it holds, also those that it must give back.
    pub holds: usize,
    /// When its lease is over unless it is renewed, by Redis' clock.
    pub lease_until: DateTime<Utc>,
    /// Whether its lease is over: it has died, or can't reach Redis.
    pub is_lost: bool,
}

/// Returns what was read, for people.
pub(crate) fn details(name: &str, seen: &RosterSeen, positions: &Positions) -> ShardsDetails {
    let workers: Vec<ShardWorker> =
        seen.members.iter().map(|member| worker(member, seen)).collect();
    let failing: BTreeMap<&WorkerId, BTreeMap<Post, ShardFailure>> =
        seen.members.iter().map(|(id, of)| (id, ShardFailure::read(&of.description))).collect();
    let holder = |post: &Post, (worker, fence, since): &(WorkerId, u64, u64)| {
        let known = workers.iter().find(|known| known.worker == *worker);
        ShardHolder {
            failing: failing.get(worker).and_then(|of| of.get(post)).cloned(),
            worker: worker.clone(),
            host: known.map_or_else(String::new, |known| known.description.host.clone()),
            since: instant(*since),
            fence: *fence,
            is_lost: known.is_none_or(|known| known.is_lost),
        }
    };
    let generation = seen.generation;
    let holder_of = |post: &Post| seen.holders.get(post).map(|found| holder(post, found));
    let shard = |index| ShardDetails {
        index,
        holder: holder_of(&Post { generation, index }),
        paused: seen.suspended.get(&index.to_string()).map(|text| read_pause(text)),
        position: positions
            .posts
            .get(&Post { generation, index })
            .and_then(|text| serde_json::from_str(text).ok()),
        has_ended: has_ended(None, positions, (generation, index)),
    };
    let old = seen.holders.iter().filter(|(post, _)| post.generation != generation);
    let old = old.map(|(post, found)| holder(post, found)).collect();
    ShardsDetails {
        name: name.to_owned(),
        count: seen.count,
        generation,
        paused: seen.suspended.get("*").map(|text| read_pause(text)),
        shards: (0..seen.count).map(shard).collect(),
        old,
        workers,
    }
}

fn worker((worker, member): (&WorkerId, &MemberSeen), seen: &RosterSeen) -> ShardWorker {
    ShardWorker {
        worker: worker.clone(),
        description: serde_json::from_str(&member.description).unwrap_or_default(),
        holds: seen.holders.values().filter(|(holder, ..)| holder == worker).count(),
        lease_until: instant(member.lease_until_ms),
        is_lost: member.lease_until_ms <= seen.now_ms,
    }
}

/// Reads `<ms since when> <who>`, a line break, why.
fn read_pause(text: &str) -> Shut {
    let (first, why) = text.split_once('\n').unwrap_or((text, ""));
    let (since, by) = first.split_once(' ').unwrap_or((first, ""));
    Shut {
        since: instant(since.parse().unwrap_or(0)),
        until: None,
        by: by.to_owned(),
        why: why.to_owned(),
    }
}
