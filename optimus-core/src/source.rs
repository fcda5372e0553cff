//! Sources: functions that find the rows of a database that need a task, [`Source`].

use std::{pin::Pin, sync::Arc, time::Duration};

use crate::{
    Error,
    archive::Archive,
    control_words::BoxError,
    data::DataKey,
    found::FoundPage,
    id::validate_name,
    page::PageFacts,
    roster::POSTS_MAX,
    source_row::{RowFacts, Standing},
};

/// The most rows of a page.
pub const PAGE_ROWS_MAX: u32 = 10_000;
/// The most tables of a source.
pub const TABLES_MAX: usize = 4096;
/// The most bytes of a table's name.
const TABLE_BYTES_MAX: usize = 128;
/// The most tiers of a source.
const TIERS_MAX: usize = 16;

/// How often rows with a number of failures are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    /// The fewest failures.
    pub least: u32,
    /// The most failures.
    pub most: u32,
    /// The time from the beginning of one pass over the rows to that of the next.
    pub every: Duration,
}

impl Tier {
    /// Returns the range of failures for messages, such as `0..=4`.
    #[doc(hidden)]
    pub fn failures(&self) -> String {
        match (self.least, self.most) {
            (least, u32::MAX) => format!("{least}.."),
            (least, most) => format!("{least}..={most}"),
        }
    }
}

/// The options of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceOptions {
    /// The tiers, the one without failures first.
    pub tiers: &'static [Tier],
    /// A table without rows is looked at more and more rarely, but once in this time.
    pub idle: Duration,
    /// Into how many slices the source is cut at first. An operator may change it.
    pub slices: u16,
    /// How many rows a page has at most.
    pub page: u32,
    /// No page is read while this many tasks wait in the queue of its tasks.
    pub high_water: u64,
    /// A row that has failed this often is given up; `None` if rows are never given up.
    pub attempts: Option<u32>,
    /// How long after its submit a task that has succeeded still keeps a repeat of its row out.
    pub remember: Duration,
    /// How long one page may take.
    pub timeout: Duration,
    /// Rows are archived this long after their end.
    pub archive_after: Option<Duration>,
}

/// A page that is being read.
pub type RunningScan = Pin<Box<dyn Future<Output = Result<FoundPage, BoxError>> + Send>>;
/// A check whether a row still needs its task.
pub type RunningCheck = Pin<Box<dyn Future<Output = Result<Standing, BoxError>> + Send>>;
/// A function that stores the failure of a row.
pub type RunningNote = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;
/// An archival; it returns how many rows it has moved.
pub type RunningArchive = Pin<Box<dyn Future<Output = Result<u64, BoxError>> + Send>>;

/// The functions of a source.
#[derive(Debug, Clone, Copy)]
pub struct SourceParts {
    /// The tables; empty if the source does not name its table.
    pub tables: fn() -> Vec<String>,
    /// The data that the function needs.
    pub data: fn() -> Vec<DataKey>,
    /// Reads a page.
    pub scan: fn(Arc<PageFacts>) -> Result<RunningScan, BoxError>,
    /// Checks a row before its task starts.
    pub before: Option<fn(RowFacts) -> Result<RunningCheck, BoxError>>,
    /// Stores the failure of a row.
    pub on_failure: Option<fn(RowFacts) -> Result<RunningNote, BoxError>>,
    /// Archives rows.
    pub archive: Option<fn(Archive) -> Result<RunningArchive, BoxError>>,
}

/// A function that finds the rows of a database that need a task. `#[source]` makes it from a
/// function, and registers it through `inventory`.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    name: &'static str,
    place: &'static str,
    options: SourceOptions,
    parts: SourceParts,
}

inventory::collect!(Source);

impl Source {
    /// Makes a definition. `place` is where the function is written.
    #[doc(hidden)]
    pub const fn new(
        (name, place): (&'static str, &'static str),
        options: SourceOptions,
        parts: SourceParts,
    ) -> Self {
        Self { name, place, options, parts }
    }

    /// Returns every definition that `#[source]` registered in the crates that are linked in.
    pub fn registered() -> impl Iterator<Item = Self> {
        inventory::iter::<Self>.into_iter().copied()
    }

    /// Returns the name, by which [`Client::source`](crate::Client::source) finds it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns where the function is written, for messages.
    pub fn place(&self) -> &'static str {
        self.place
    }

    /// Returns the options.
    pub fn options(&self) -> SourceOptions {
        self.options
    }

    /// Returns the data that the function needs.
    pub fn required_data(&self) -> Vec<DataKey> {
        (self.parts.data)()
    }

    /// Returns the functions.
    #[doc(hidden)]
    pub fn parts(&self) -> SourceParts {
        self.parts
    }

    /// Returns whether its tasks need this definition where they run.
    #[doc(hidden)]
    pub fn has_hooks(&self) -> bool {
        self.parts.before.is_some() || self.parts.on_failure.is_some()
    }

    /// Returns the names of its tables.
    ///
    /// # Errors
    /// [`Error::is_invalid`] for too many, long or equal names.
    #[doc(hidden)]
    pub fn tables(&self) -> Result<Vec<String>, Error> {
        let tables = (self.parts.tables)();
        if tables.len() > TABLES_MAX {
            return self.refuse(&format!("it has {} tables; use up to {TABLES_MAX}", tables.len()));
        }
        let is_wrong = |name: &&String| {
            name.is_empty() || name.len() > TABLE_BYTES_MAX || name.contains(char::is_control)
        };
        if let Some(name) = tables.iter().find(is_wrong) {
            return self.refuse(&format!(
                "the name of a table takes 1 to {TABLE_BYTES_MAX} bytes without control \
                 characters; {name:?} does not"
            ));
        }
        let mut sorted = tables.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => self.refuse(&format!("the table {:?} is named twice", pair[0])),
            None => Ok(tables),
        }
    }

    /// Refuses options that no worker can use.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Error> {
        let SourceOptions { tiers, slices, page, high_water, remember, timeout, .. } = self.options;
        if let Err(problem) = validate_name(self.name) {
            return self.refuse(&format!("the name: {problem}"));
        }
        if slices == 0 || slices > POSTS_MAX {
            return self.refuse(&format!("it has {slices} slices; use 1 to {POSTS_MAX}"));
        }
        if page == 0 || page > PAGE_ROWS_MAX {
            return self.refuse(&format!("a page has {page} rows; use 1 to {PAGE_ROWS_MAX}"));
        }
        if high_water == 0 {
            return self.refuse("high_water is 0, so no page would ever be read");
        }
        if remember.is_zero() || timeout.is_zero() {
            return self.refuse("`remember` and `timeout` must be above 0");
        }
        let first = tiers.first().map(|tier| tier.least);
        let joined =
            tiers.windows(2).all(|pair| pair[0].most.checked_add(1) == Some(pair[1].least));
        let sound = tiers.iter().all(|tier| !tier.every.is_zero() && tier.least <= tier.most);
        if first != Some(0) || !joined || !sound || tiers.len() > TIERS_MAX {
            return self.refuse(&format!(
                "its tiers must be 1 to {TIERS_MAX} ranges of failures, from 0 without a gap, each \
                 with a time above 0"
            ));
        }
        Ok(())
    }

    fn refuse<T>(&self, what: &str) -> Result<T, Error> {
        Err(Error::invalid(format!("source {:?}: {what}", self.name)))
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
