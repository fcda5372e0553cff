//! A table in memory, a source over it, and the task of its rows: [`Rows`].

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use optimus_core::{
    BoxError, Context, DataKey, Found, Page, PageFacts, Row, RowFacts, RunningCheck, RunningNote,
    RunningScan, Source, SourceOptions, SourceParts, Standing, Task, TaskOptions, Tier, found_rows,
};
use serde::{Deserialize, Serialize};

/// One row.
#[derive(Debug, Clone, Default)]
pub struct State {
    pub is_done: bool,
    pub failures: u32,
    pub runs: u32,
    pub error: String,
    /// When a page had it for the first time.
    found_at: Option<Instant>,
}

/// What a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    #[default]
    Succeed,
    Fail,
    Panic,
    Hang,
}

#[derive(Default)]
struct Inner {
    rows: BTreeMap<(String, i64), State>,
    ways: BTreeMap<i64, Way>,
    pages: BTreeMap<String, u32>,
    is_away: bool,
}

/// Tables with rows, which all workers of a test share.
#[derive(Clone, Default)]
pub struct Rows(Arc<Mutex<Inner>>);

impl Rows {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub fn add(&self, table: &str, keys: impl IntoIterator<Item = i64>) {
        let rows = keys.into_iter().map(|key| ((table.to_owned(), key), State::default()));
        self.inner().rows.extend(rows);
    }

    /// Says what the tasks of a row do, in any table.
    pub fn lets(&self, key: i64, way: Way) {
        self.inner().ways.insert(key, way);
    }

    /// Lets all tasks fail.
    pub fn goes_away(&self) {
        self.inner().is_away = true;
    }

    pub fn is_away(&self) -> bool {
        self.inner().is_away
    }

    pub fn comes_back(&self) {
        self.inner().is_away = false;
    }

    pub fn mark_done(&self, table: &str, key: i64) {
        self.inner().rows.entry((table.to_owned(), key)).or_default().is_done = true;
    }

    pub fn row(&self, table: &str, key: i64) -> State {
        self.inner().rows[&(table.to_owned(), key)].clone()
    }

    pub fn fail(&self, table: &str, key: i64, error: &str) {
        let mut inner = self.inner();
        let row = inner.rows.entry((table.to_owned(), key)).or_default();
        row.failures += 1;
        error.clone_into(&mut row.error);
    }

    /// Returns how many rows are done.
    pub fn done(&self) -> usize {
        self.inner().rows.values().filter(|row| row.is_done).count()
    }

    /// Returns when a page had the last of the rows; `None` if a row was not found yet.
    pub fn all_found_at(&self) -> Option<Instant> {
        let found: Option<Vec<Instant>> =
            self.inner().rows.values().map(|row| row.found_at).collect();
        found?.into_iter().max()
    }

    /// Returns how often the tasks of all rows have run.
    pub fn runs(&self) -> u32 {
        self.inner().rows.values().map(|row| row.runs).sum()
    }

    /// Returns how many pages were read, of all tables and of one.
    pub fn pages(&self) -> u32 {
        self.inner().pages.values().sum()
    }

    pub fn pages_of(&self, table: &str) -> u32 {
        self.inner().pages.get(table).copied().unwrap_or(0)
    }

    pub fn tables_read(&self) -> BTreeSet<String> {
        self.inner().pages.keys().cloned().collect()
    }

    /// Reads a page: the rows of its slice and its tier that are not done.
    pub fn page(&self, page: &Page<i64>, table: &str) -> Vec<(i64, u32)> {
        let after = page.after().copied().unwrap_or(i64::MIN);
        let mut inner = self.inner();
        *inner.pages.entry(table.to_owned()).or_default() += 1;
        let (slice, slices) = (i64::from(page.slice()), i64::from(page.slices()));
        let rows = inner.rows.iter_mut().filter(|((its, key), row)| {
            its == table && *key > after && key.rem_euclid(slices) == slice && !row.is_done
        });
        let rows = rows.filter(|(_, row)| page.failures().contains(&row.failures));
        let limit = usize::try_from(page.limit()).unwrap();
        rows.take(limit)
            .map(|((_, key), row)| {
                row.found_at.get_or_insert_with(Instant::now);
                (*key, row.failures)
            })
            .collect()
    }
}

/// The task of a row.
#[derive(Serialize, Deserialize)]
pub struct Pay {
    pub table: String,
    pub key: i64,
}

impl Task for Pay {
    const NAME: &'static str = "pay";
    type Output = ();

    fn options() -> TaskOptions {
        let wait = Duration::from_millis(50);
        let backoff = optimus_core::Backoff::Fixed { wait, jitter: 0.0 };
        TaskOptions::new().queue("pay").timeout(Duration::from_millis(700)).backoff(backoff)
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let rows = ctx.data::<Rows>().ok_or("no rows")?;
        let way = {
            let mut inner = rows.inner();
            let way = inner.ways.get(&self.key).copied().unwrap_or_default();
            let is_away = inner.is_away;
            let row = inner.rows.entry((self.table.clone(), self.key)).or_default();
            row.runs += 1;
            if is_away { Way::Fail } else { way }
        };
        match way {
            Way::Succeed => rows.mark_done(&self.table, self.key),
            Way::Fail => return Err("the bank is away".into()),
            Way::Panic => panic!("asked to panic"),
            Way::Hang => std::future::pending().await,
        }
        Ok(())
    }
}

const EVERY: Duration = Duration::from_millis(100);

/// Rows are read each 100 ms, and given up after three failures.
pub const OPTIONS: SourceOptions = SourceOptions {
    tiers: &[
        Tier { least: 0, most: 0, every: EVERY },
        Tier { least: 1, most: u32::MAX, every: Duration::from_millis(300) },
    ],
    idle: EVERY,
    slices: 1,
    page: 20,
    high_water: 10_000,
    attempts: Some(3),
    remember: Duration::from_secs(60),
    timeout: Duration::from_millis(400),
    archive_after: None,
};

pub const PARTS: SourceParts = SourceParts {
    tables: Vec::new,
    data: || vec![DataKey::of::<Rows>()],
    scan,
    before: None,
    on_failure: None,
    archive: None,
};

/// Reads a page, and makes a task for each row.
#[expect(clippy::unnecessary_wraps, reason = "`SourceParts::scan` returns a result")]
pub fn scan(facts: Arc<PageFacts>) -> Result<RunningScan, BoxError> {
    let page = Page::<i64>::of(facts.clone());
    Ok(Box::pin(async move {
        let rows = page.shard().data::<Rows>().ok_or("no rows")?;
        let table = facts.table.clone().unwrap_or_default();
        let found = rows.page(&page, &table).into_iter().map(|(key, failures)| {
            let call = Pay { table: table.clone(), key }.call();
            Found::new(key).failures(failures).task(call)
        });
        Ok(found_rows(found.collect(), &facts)?)
    }))
}

/// Asks the table whether the row is due, and how often it has failed.
pub fn still_due(facts: RowFacts) -> Result<RunningCheck, BoxError> {
    let row = Row::<i64>::of(facts.clone())?;
    Ok(Box::pin(async move {
        let state = row.data::<Rows>()?.row(facts.table.as_deref().unwrap_or(""), *row.key());
        Ok(if state.is_done { Standing::Done } else { Standing::Failed(state.failures) })
    }))
}

/// Counts a failure in the table.
pub fn bump(facts: RowFacts) -> Result<RunningNote, BoxError> {
    let row = Row::<i64>::of(facts.clone())?;
    Ok(Box::pin(async move {
        let table = facts.table.as_deref().unwrap_or("");
        row.data::<Rows>()?.fail(table, *row.key(), row.error().unwrap_or("?"));
        Ok(())
    }))
}

/// A source over one table.
pub fn rows() -> Source {
    Source::new(("rows", "rows"), OPTIONS, PARTS)
}

/// A source that keeps failures in its table, and asks before it starts.
pub fn checked() -> Source {
    let parts = SourceParts { before: Some(still_due), on_failure: Some(bump), ..PARTS };
    Source::new(("checked", "checked"), OPTIONS, parts)
}
