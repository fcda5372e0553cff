//! What an operator sees of a source: [`SourceDetails`].

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    broker::{RosterSeen, SourceSeen},
    limit::Shut,
    platform::instant,
    shards_details::{ShardDetails, ShardHolder, ShardWorker, ShardsDetails},
};

/// A source at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SourceDetails {
    /// Its name.
    pub name: String,
    /// Since when it is paused, by whom and why.
    pub paused: Option<Shut>,
    /// Since when it reads only probes, because half of the last attempts of its tasks have failed.
    pub slow_since: Option<DateTime<Utc>>,
    /// The part of the last hundred attempts of its tasks that has failed, from 0 to 1.
    pub failed: f64,
    /// Each slice, by its number; empty if no worker has ever served the source.
    pub slices: Vec<SliceDetails>,
    /// The workers that take part, also those that hold nothing, and those that are lost until
    /// another one notices it.
    pub workers: Vec<ShardWorker>,
}

/// One slice of a source.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SliceDetails {
    /// Its number, from 0.
    pub index: u16,
    /// Who holds it.
    pub holder: Option<ShardHolder>,
    /// Since when this slice is paused, by whom and why.
    pub paused: Option<Shut>,
    /// What it has read.
    pub scans: SliceScans,
}

/// What a slice has read since it was first held. A worker that was killed has not told its last
/// second.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(default)]
pub struct SliceScans {
    /// When a page was last read, in ms; 0 for never.
    pub at_ms: u64,
    /// How many pages were read.
    pub pages: u64,
    /// How many passes over a table have found rows and ended.
    pub passes: u64,
    /// How many rows were read.
    pub rows: u64,
    /// How many tasks were submitted.
    pub submitted: u64,
    /// How many rows still had their task, or one that has just succeeded.
    pub known: u64,
    /// How often a row was read that has failed too often.
    pub given_up: u64,
    /// How often a row was read whose task could not be submitted.
    pub refused: u64,
    /// The key of the row that was refused last, and why; empty if the last passes refused none.
    pub refusal: String,
    /// How many rows were archived.
    pub archived: u64,
    /// How many pages have failed.
    pub failed: u64,
    /// Why the last page failed; empty if it did not.
    pub error: String,
}

impl SliceScans {
    /// Reads the stored form. What a newer program has added is left out.
    #[doc(hidden)]
    pub fn read(json: &str) -> Self {
        serde_json::from_str(json).unwrap_or_default()
    }

    /// Returns the stored form.
    #[doc(hidden)]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("plain fields")
    }

    /// Returns when a page was last read.
    pub fn at(&self) -> Option<DateTime<Utc>> {
        (self.at_ms > 0).then(|| instant(self.at_ms))
    }
}

/// Returns what was read, for people.
pub(crate) fn details(seen: &SourceSeen, shards: ShardsDetails) -> SourceDetails {
    let ShardsDetails { name, paused, shards, workers, .. } = shards;
    let slice = |shard: ShardDetails| SliceDetails {
        index: shard.index,
        holder: shard.holder,
        paused: shard.paused,
        scans: seen.scans.get(&shard.index).map(|json| SliceScans::read(json)).unwrap_or_default(),
    };
    let (ok, failed) = seen.ended;
    SourceDetails {
        name,
        paused,
        slow_since: (seen.slow_since_ms > 0).then(|| instant(seen.slow_since_ms)),
        failed: if ok + failed > 0.0 { failed / (ok + failed) } else { 0.0 },
        slices: shards.into_iter().map(slice).collect(),
        workers,
    }
}

/// Returns the roster of a source as that of a sharded function.
pub(crate) fn shards(name: &str, seen: &RosterSeen) -> ShardsDetails {
    crate::shards_details::details(name, seen, &crate::broker::Positions::default())
}
