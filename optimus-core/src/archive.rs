//! A request to archive the old rows of a source: [`Archive`].

use std::fmt;

use chrono::{DateTime, Utc};

use crate::shard::Shard;

/// A request to move old rows away, late and a few at a time. A source makes it for each table
/// after its pages, so rows that have ended stay for a while where people look for them.
pub struct Archive {
    shard: Shard,
    table: Option<String>,
    slice: (u16, u16),
    before: DateTime<Utc>,
    limit: u32,
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive")
            .field("table", &self.table)
            .field("slice", &self.slice)
            .field("before", &self.before)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl Archive {
    /// Makes a request for a worker.
    #[doc(hidden)]
    pub fn of(
        shard: Shard,
        table: Option<String>,
        slice: (u16, u16),
        before: DateTime<Utc>,
        limit: u32,
    ) -> Self {
        Self { shard, table, slice, before, limit }
    }

    /// Returns the table, if the source has `over = …`.
    ///
    /// # Panics
    /// The source has no `over`.
    pub fn table(&self) -> &str {
        self.table.as_deref().expect("the source names its tables with `over = …`")
    }

    /// Returns which slice of the table to archive, from 0.
    pub fn slice(&self) -> u16 {
        self.slice.0
    }

    /// Returns how many slices the table has.
    pub fn slices(&self) -> u16 {
        self.slice.1
    }

    /// Returns before which time the rows have ended that may be moved.
    pub fn before(&self) -> DateTime<Utc> {
        self.before
    }

    /// Returns how many rows to move at most. If so many were moved, the next request follows soon.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns the part of the source that this worker holds, with its fence.
    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    /// Returns a value that the worker was given with `.data(…)`.
    ///
    /// # Errors
    /// Names the type if the worker has no such value.
    pub fn data<T: Clone + Send + Sync + 'static>(&self) -> Result<T, crate::Error> {
        self.shard.data().ok_or_else(|| {
            let name = std::any::type_name::<T>();
            crate::Error::invalid(format!(
                "no data of type {name}: add it to the worker with `.data(…)`"
            ))
        })
    }
}
