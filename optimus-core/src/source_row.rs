//! A row whose task runs, as the hooks of its source see it: [`Row`].

use std::fmt;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{context::Context, control_words::BoxError, page::Stamp, record::TaskRecord};

/// The headers of a source's tasks: the name of the source, and the row.
#[doc(hidden)]
pub const SOURCE_HEADER: (&str, &str) = ("optimus-source", "optimus-row");

/// A row of a source whose task is about to start, or has failed. `K` is the type of its key.
pub struct Row<K> {
    key: K,
    facts: RowFacts,
}

/// What a worker knows about a row, without the type of its key.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub struct RowFacts {
    pub table: Option<String>,
    /// The key as JSON.
    pub key: String,
    pub failures: u32,
    pub attempts: Option<u32>,
    pub error: Option<String>,
    /// Whether the attempt has time to store its failure after that of the handler.
    pub has_note_time: bool,
    pub ctx: Context,
}

/// Whether a row still needs its task.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It needs no task any more.
    Done,
    /// It does; its failures are those of the page.
    Due,
    /// It does, and has failed this often.
    Failed(u32),
}

#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    table: Option<String>,
    #[serde(rename = "k")]
    key: String,
    #[serde(rename = "f", default)]
    failures: u32,
    #[serde(rename = "n", default, skip_serializing_if = "std::ops::Not::not")]
    has_note_time: bool,
}

/// Returns the header that names a row.
pub(crate) fn row_header(
    stamp: &Stamp,
    (table, key): (Option<&str>, &str),
    failures: u32,
) -> String {
    let (table, key) = (table.map(str::to_owned), key.to_owned());
    let header = Header { table, key, failures, has_note_time: stamp.keeps_failures };
    serde_json::to_string(&header).expect("plain fields")
}

/// Returns the source of the row whose task this is, if the table of the source counts failures.
pub fn source_that_counts(record: &TaskRecord) -> Option<&str> {
    let [source, row] = [SOURCE_HEADER.0, SOURCE_HEADER.1].map(|name| record.headers.get(name));
    let header: Header = serde_json::from_str(row?).ok()?;
    source.filter(|_| header.has_note_time).map(String::as_str)
}

impl RowFacts {
    /// Reads the header of a task; `None` if the hooks of its source need not be called.
    #[doc(hidden)]
    pub fn read(ctx: &Context, attempts: Option<u32>) -> Option<Self> {
        let Header { table, key, failures, has_note_time } =
            serde_json::from_str(ctx.header(SOURCE_HEADER.1)?).ok()?;
        let ctx = ctx.clone();
        Some(Self { table, key, failures, attempts, error: None, has_note_time, ctx })
    }

    /// Returns whether the row must not be tried again.
    #[doc(hidden)]
    pub fn is_given_up(&self) -> bool {
        self.attempts.is_some_and(|attempts| self.failures >= attempts)
    }

    /// Returns whether one more failure is the last one.
    #[doc(hidden)]
    pub fn is_last(&self) -> bool {
        self.attempts.is_some_and(|attempts| self.failures.saturating_add(1) >= attempts)
    }
}

impl<K> fmt::Debug for Row<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RowFacts { table, key, failures, error, .. } = &self.facts;
        f.debug_struct("Row")
            .field("table", table)
            .field("key", key)
            .field("failures", failures)
            .field("error", error)
            .finish_non_exhaustive()
    }
}

impl<K: DeserializeOwned> Row<K> {
    /// Reads the key.
    ///
    /// # Errors
    /// The key has another type.
    #[doc(hidden)]
    pub fn of(facts: RowFacts) -> Result<Self, BoxError> {
        let key = serde_json::from_str(&facts.key)
            .map_err(|problem| format!("the key {} of a row: {problem}", facts.key))?;
        Ok(Self { key, facts })
    }
}

impl<K> Row<K> {
    /// Returns the key.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Returns the table, if the source has `over = …`.
    ///
    /// # Panics
    /// The source has no `over`.
    pub fn table(&self) -> &str {
        self.facts.table.as_deref().expect("the source names its tables with `over = …`")
    }

    /// Returns how often the row had failed before this attempt: as `before` has returned it, or
    /// else as the page has.
    pub fn failures(&self) -> u32 {
        self.facts.failures
    }

    /// Returns whether the row is given up with the next failure, because of `attempts`.
    pub fn is_last_attempt(&self) -> bool {
        self.facts.is_last()
    }

    /// Returns why the attempt has failed; `None` before it starts.
    pub fn error(&self) -> Option<&str> {
        self.facts.error.as_deref()
    }

    /// Returns a value that the worker was given with `.data(…)`.
    ///
    /// # Errors
    /// Names the type if the worker has no such value.
    pub fn data<T: Clone + Send + Sync + 'static>(&self) -> Result<T, crate::Error> {
        self.facts.ctx.data().ok_or_else(|| {
            let name = std::any::type_name::<T>();
            crate::Error::invalid(format!(
                "no data of type {name}: add it to the worker with `.data(…)`"
            ))
        })
    }

    /// Returns the context of the attempt.
    pub fn context(&self) -> &Context {
        &self.facts.ctx
    }
}
