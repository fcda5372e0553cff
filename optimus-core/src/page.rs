//! One page of a source, as the function that reads it sees it: [`Page`].

use std::{
    fmt,
    ops::RangeInclusive,
    sync::{Arc, OnceLock},
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{found::read_key, shard::Shard, source::Tier};

/// One page of a pass over a table: which rows a source reads next. `K` is the type of their keys.
///
/// The function reads at most [`limit`](Self::limit) rows whose key is above
/// [`after`](Self::after), in the order of the key. So it misses no row, however many rows change
/// in the meantime, and the last page takes as long as the first one.
pub struct Page<K> {
    facts: Arc<PageFacts>,
    after: Option<K>,
}

/// What a worker knows about a page, without the type of the key.
#[doc(hidden)]
#[derive(Debug)]
pub struct PageFacts {
    /// The slice, as a shard.
    pub shard: Shard,
    pub table: Option<String>,
    /// The slice of the table, and how many the table has.
    pub slice: (u16, u16),
    pub tier: Tier,
    /// The key after which the page begins, as JSON.
    pub after: Option<String>,
    /// Why that key could not be read. The page is the first one of a pass then.
    pub unread: OnceLock<String>,
    pub limit: u32,
    /// What the tasks of the page need to know.
    pub stamp: Stamp,
}

/// What a source adds to each of its tasks.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct Stamp {
    pub source: &'static str,
    pub has_hooks: bool,
    /// Whether failures are stored in the table, so that the queue must not retry.
    pub keeps_failures: bool,
    pub remember: std::time::Duration,
    pub attempts: Option<u32>,
}

impl<K> fmt::Debug for Page<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PageFacts { table, slice, tier, after, limit, .. } = &*self.facts;
        f.debug_struct("Page")
            .field("table", table)
            .field("slice", slice)
            .field("tier", tier)
            .field("after", after)
            .field("limit", limit)
            .finish_non_exhaustive()
    }
}

impl<K: Serialize + DeserializeOwned> Page<K> {
    /// Makes a page for a worker. The stored key may be of another type, because a deploy has
    /// changed that of the table. Then the pass begins again.
    #[doc(hidden)]
    pub fn of(facts: Arc<PageFacts>) -> Self {
        let read = facts.after.as_deref().map(read_key).transpose();
        let after = read.unwrap_or_else(|problem| {
            facts.unread.get_or_init(|| problem);
            None
        });
        Self { facts, after }
    }

    /// Makes the page after a key of a table that is one slice, without a worker and without Redis,
    /// for unit tests of a source.
    pub fn local(after: Option<K>, limit: u32) -> Self {
        let text = after.as_ref().map(|key| serde_json::to_string(key).unwrap_or_default());
        let facts = PageFacts {
            shard: Shard::local(0, 1),
            table: None,
            slice: (0, 1),
            tier: Tier { least: 0, most: u32::MAX, every: std::time::Duration::from_secs(1) },
            after: text,
            unread: OnceLock::new(),
            limit,
            stamp: Stamp {
                source: "local",
                has_hooks: false,
                keeps_failures: false,
                remember: std::time::Duration::from_secs(1),
                attempts: None,
            },
        };
        Self { facts: Arc::new(facts), after }
    }
}

impl<K> Page<K> {
    /// Returns the key of the last row of the page before; `None` at the beginning of a pass.
    pub fn after(&self) -> Option<&K> {
        self.after.as_ref()
    }

    /// Returns how many rows to read at most.
    pub fn limit(&self) -> u32 {
        self.facts.limit
    }

    /// Returns the table, if the source has `over = …`.
    ///
    /// # Panics
    /// The source has no `over`.
    pub fn table(&self) -> &str {
        self.facts.table.as_deref().expect("the source names its tables with `over = …`")
    }

    /// Returns which slice of the table to read, from 0: the rows with `id % slices = slice`.
    pub fn slice(&self) -> u16 {
        self.facts.slice.0
    }

    /// Returns how many slices the table has. If the source has more tables than slices, this is 1,
    /// because a slice has several whole tables then.
    pub fn slices(&self) -> u16 {
        self.facts.slice.1
    }

    /// Returns how many failures the rows may have that this page is about. Rows with another
    /// number have a page of their own at another time; they are left out if they are found here.
    pub fn failures(&self) -> RangeInclusive<u32> {
        self.facts.tier.least..=self.facts.tier.most
    }

    /// Returns the part of the source that this worker holds, with its fence. No two workers hold
    /// it at the same time.
    pub fn shard(&self) -> &Shard {
        &self.facts.shard
    }

    /// Returns whether the page should end soon; see [`Shard::stopping`].
    pub fn is_stopping(&self) -> bool {
        self.facts.shard.is_stopping()
    }
}
