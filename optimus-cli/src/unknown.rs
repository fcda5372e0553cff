//! Tasks whose names no worker of their queue knows: [`Unknown`].

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use optimus_core::{TaskRow, TaskState, WorkerDetails};
use serde::Serialize;

use crate::output::text;

/// How many names are printed in a line.
const NAMES_MAX: usize = 5;

/// The names of tasks that no worker knows, and how many tasks of each were seen.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Unknown(BTreeMap<String, u64>);

impl Unknown {
    /// Finds them among some ready and delayed tasks of a queue. A worker gives a task that it does
    /// not know back for later, so it is nearly always delayed.
    pub(crate) fn of<'a>(
        workers: &[WorkerDetails],
        rows: impl Iterator<Item = &'a TaskRow>,
    ) -> Option<Self> {
        let known = workers.iter().flat_map(|worker| &worker.description.tasks);
        let known: BTreeSet<&str> = known.map(String::as_str).collect();
        let is_tried = |row: &&TaskRow| row.state == TaskState::Ready || row.misfits > 0;
        let names = rows.filter(is_tried).filter_map(|row| row.task.as_deref());
        let mut unknown = BTreeMap::new();
        for name in names.filter(|name| !known.contains(name)) {
            *unknown.entry(name.to_owned()).or_default() += 1;
        }
        (!unknown.is_empty()).then_some(Self(unknown))
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().take(NAMES_MAX);
        let names = names.map(|(name, count)| format!("{name} ({} seen)", text::number(*count)));
        f.write_str(&names.collect::<Vec<_>>().join(", "))
    }
}
