//! `optimus namespace`: the namespaces of a Redis.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use clap::Subcommand;
use optimus_core::{Error, Pace};
use serde::Serialize;
use tokio::time::Instant;

use crate::{
    failure::{Exit, Failure},
    output::{
        Row,
        paint::Tone,
        table::{Cell, Column},
        text,
    },
    session::Session,
};

/// How many keys Redis looks at in one step.
const STEP: u64 = 1_000;
/// Of how many namespaces, and of how many queues of each, the tasks are counted.
const COUNTED_MAX: usize = 100;

#[derive(Debug, Subcommand)]
pub(crate) enum NamespaceCommand {
    /// List the namespaces that have queues in this database of Redis, such as one that a program
    /// uses by mistake.
    List {
        /// How many keys of the database to look at, at most.
        #[arg(long, value_name = "N", default_value_t = 1_000_000)]
        keys: u64,
    },
}

/// A namespace in the list. The counts are unknown where the user of Redis may not read them.
#[derive(Debug, Serialize)]
struct NamespaceRow {
    namespace: String,
    queues: usize,
    ready: Option<u64>,
    working: Option<u64>,
    dead: Option<u64>,
    workers: Option<usize>,
    /// Whether the commands use it now.
    is_used: bool,
}

impl Row for NamespaceRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("NAMESPACE"),
        Column::number("QUEUES"),
        Column::number("READY"),
        Column::number("WORKING"),
        Column::number("DEAD"),
        Column::number("WORKERS"),
        Column::text(""),
    ];

    fn cells(&self, _: DateTime<Utc>) -> Vec<Cell> {
        let number = |count: Option<u64>| Cell::or_dash(count.map(text::number));
        vec![
            Cell::new(&self.namespace),
            Cell::number(self.queues as u64),
            number(self.ready),
            number(self.working),
            number(self.dead),
            number(self.workers.map(|count| count as u64)),
            Cell::new(if self.is_used { "used here" } else { "" }).tone(Tone::Good),
        ]
    }
}

pub(crate) async fn run(command: NamespaceCommand, session: &Session<'_>) -> Result<Exit, Failure> {
    let NamespaceCommand::List { keys } = command;
    let (broker, now) = (session.client.broker(), session.now().await?);
    let Scanned { found, looked, is_whole } = scan(session, keys).await?;
    let mut rows = Vec::new();
    for (number, (namespace, slots)) in found.into_iter().enumerate() {
        let queues: Vec<String> = slots.into_iter().filter(|slot| is_queue(slot)).collect();
        let counted = if number < COUNTED_MAX { &queues[..] } else { &[] };
        rows.push(row(session, &namespace, &queues, counted).await);
    }
    session.out.rows(&rows, now, "No queue is in this database of Redis.")?;
    if is_whole {
        return Ok(Exit::Done);
    }
    let all = broker.count_keys().await.map_err(Error::from)?;
    session.out.warn(&format!(
        "about {} of {} were looked at; --keys looks at more",
        text::number(looked),
        text::count(all, "key"),
    ));
    Ok(Exit::Partly)
}

/// What the names of keys say of namespaces.
pub(crate) struct Scanned {
    /// The slots of each namespace.
    found: BTreeMap<String, BTreeSet<String>>,
    /// About how many keys were looked at.
    pub(crate) looked: u64,
    /// Whether all keys of the database were looked at.
    pub(crate) is_whole: bool,
}

impl Scanned {
    /// Returns the namespaces that have queues.
    pub(crate) fn with_queues(self) -> Vec<String> {
        let has_queue = |slots: &BTreeSet<String>| slots.iter().any(|slot| is_queue(slot));
        self.found.into_iter().filter(|(_, slots)| has_queue(slots)).map(|(name, _)| name).collect()
    }
}

/// Looks at the names of about so many keys of the database.
pub(crate) async fn scan(session: &Session<'_>, keys: u64) -> Result<Scanned, Failure> {
    let broker = session.client.broker();
    let (mut found, mut looked) = (BTreeMap::<String, BTreeSet<String>>::new(), 0);
    let (mut cursor, pace) = (None, Pace::default());
    loop {
        let begun = Instant::now();
        let (names, next) = broker.scan_namespaces(cursor.as_deref()).await.map_err(Error::from)?;
        for (namespace, queue) in names {
            found.entry(namespace).or_default().insert(queue);
        }
        (cursor, looked) = (next, looked + STEP);
        if cursor.is_none() || looked >= keys {
            return Ok(Scanned { found, looked, is_whole: cursor.is_none() });
        }
        pace.rest(begun).await;
    }
}

/// Returns whether a slot is that of a queue: others begin with `@`.
fn is_queue(slot: &str) -> bool {
    !slot.starts_with('@')
}

/// Counts the tasks of a namespace.
async fn row(
    session: &Session<'_>,
    namespace: &str,
    queues: &[String],
    counted: &[String],
) -> NamespaceRow {
    let is_used = session.client.broker().namespace() == namespace;
    let mut row = NamespaceRow {
        namespace: namespace.to_owned(),
        queues: queues.len(),
        ready: None,
        working: None,
        dead: None,
        workers: None,
        is_used,
    };
    if let Some((ready, working, dead, workers)) = counts(session, namespace, counted).await {
        (row.ready, row.working, row.dead) = (Some(ready), Some(working), Some(dead));
        row.workers = Some(workers);
    }
    row
}

/// Returns how many tasks are ready, run and are dead, and how many workers there are; `None` if
/// that can't be read.
async fn counts(
    session: &Session<'_>,
    namespace: &str,
    queues: &[String],
) -> Option<(u64, u64, u64, usize)> {
    if queues.is_empty() || queues.len() > COUNTED_MAX {
        return None;
    }
    let inspector = session.elsewhere(namespace).await.ok()?.inspector();
    let (mut ready, mut working, mut dead, mut workers) = (0, 0, 0, BTreeSet::new());
    for queue in queues {
        let counts = inspector.counts(queue).await.ok()?;
        (ready, working) = (ready + counts.ready, working + counts.working);
        dead += counts.dead;
        let here = inspector.workers(queue).await.ok()?;
        workers.extend(here.into_iter().map(|worker| worker.id.to_string()));
    }
    Some((ready, working, dead, workers.len()))
}
