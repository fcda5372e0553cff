//! A table in memory, a source that reads it, and the task of its rows: [`Rows`].

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use optimus_core::{
    Backoff, BoxError, Context, Found, Page, PageFacts, RunningScan, Source, SourceOptions,
    SourceParts, Task, TaskOptions, Tier, found_rows,
};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::queues::QUEUE;
use crate::sources::Work;
use crate::tasks::{Desk, LOSSES_MAX};
use crate::world::LEASE;

/// The name of the source.
pub const ROWS: &str = "rows";
/// How many slices it has at first.
pub const SLICES: u16 = 2;
const EVERY: Duration = Duration::from_millis(500);
/// How long a page takes.
const READS: Duration = Duration::from_millis(20);
const RETRY: Duration = Duration::from_millis(200);

/// Rows that need a task, and how often their tasks have run.
#[derive(Debug, Default)]
pub struct Rows {
    rows: Mutex<BTreeMap<u64, Row>>,
    is_away: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    is_done: bool,
    /// How often a task has found the row done.
    again: u32,
}

impl Rows {
    fn rows(&self) -> MutexGuard<'_, BTreeMap<u64, Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, keys: Range<u64>) {
        self.rows().extend(keys.map(|key| (key, Row::default())));
    }

    /// Lets all tasks fail from now on.
    pub(crate) fn go_away(&self) {
        self.is_away.store(true, Ordering::Relaxed);
    }

    pub(crate) fn come_back(&self) {
        self.is_away.store(false, Ordering::Relaxed);
    }

    /// Returns the rows that still need a task.
    pub(crate) fn open(&self) -> Vec<u64> {
        let rows = self.rows();
        rows.iter().filter(|(_, row)| !row.is_done).map(|(key, _)| *key).collect()
    }

    /// Returns how often tasks have found their row done.
    pub(crate) fn again(&self) -> u32 {
        self.rows().values().map(|row| row.again).sum()
    }

    fn page(&self, page: &Page<u64>) -> Vec<u64> {
        let is_next = |key: &u64| {
            page.after().is_none_or(|after| key > after)
                && key % u64::from(page.slices()) == u64::from(page.slice())
        };
        let limit = usize::try_from(page.limit()).unwrap_or(usize::MAX);
        self.open().into_iter().filter(is_next).take(limit).collect()
    }

    fn run(&self, key: u64) -> Result<(), BoxError> {
        if self.is_away.load(Ordering::Relaxed) {
            return Err("the target is away".into());
        }
        let mut rows = self.rows();
        let row = rows.entry(key).or_default();
        row.again += u32::from(row.is_done);
        row.is_done = true;
        Ok(())
    }
}

/// The task of a row.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Rowed {
    /// The key of the row.
    pub key: u64,
}

impl Task for Rowed {
    const NAME: &'static str = "rowed";
    type Output = ();

    fn options() -> TaskOptions {
        let backoff = Backoff::Fixed { wait: RETRY, jitter: 0.0 };
        TaskOptions::new().queue(QUEUE).max_losses(LOSSES_MAX).max_retry(100).backoff(backoff)
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let desk: Desk = ctx.data().expect("each worker gives its handlers a desk");
        if !desk.network.is_alive(desk.process) {
            return std::future::pending().await;
        }
        desk.network.rows.run(self.key)
    }
}

/// Returns the source.
pub fn rows() -> Source {
    let options = SourceOptions {
        tiers: &[Tier { least: 0, most: u32::MAX, every: EVERY }],
        idle: EVERY,
        slices: SLICES,
        page: 4,
        high_water: 100,
        attempts: None,
        remember: Duration::from_secs(60),
        timeout: LEASE,
        archive_after: None,
    };
    let (before, on_failure, archive) = (None, None, None);
    let (tables, data) = (Vec::new, Vec::new);
    let parts = SourceParts { tables, data, scan, before, on_failure, archive };
    Source::new((ROWS, "simulation"), options, parts)
}

#[expect(clippy::unnecessary_wraps, reason = "`SourceParts::scan` returns a result")]
fn scan(facts: Arc<PageFacts>) -> Result<RunningScan, BoxError> {
    let page = Page::<u64>::of(facts.clone());
    Ok(Box::pin(async move {
        let desk: Desk = page.shard().data().ok_or("each worker gives its functions a desk")?;
        let Some(_work) = Work::begin(desk.clone(), page.shard()) else {
            return std::future::pending().await;
        };
        sleep(READS).await;
        let keys = desk.network.rows.page(&page).into_iter();
        let found = keys.map(|key| Found::new(key).task(Rowed { key }.call()));
        Ok(found_rows(found.collect(), &facts)?)
    }))
}
