//! The tasks that a bulk command has found: [`Found`].

use std::collections::{BTreeMap, HashSet};

use optimus_core::{TaskId, TaskRow};

use crate::{
    output::{clean, text},
    page::MATCHES_MAX,
};

/// How many tasks and errors are shown before the question.
const SAMPLES: usize = 5;

/// The tasks that a bulk command has found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) ids: Vec<TaskId>,
    seen: HashSet<TaskId>,
    /// How many tasks were looked at.
    pub(crate) scanned: u64,
    /// Whether all tasks were looked at.
    pub(crate) is_whole: bool,
    /// How many tasks of each name there are.
    names: BTreeMap<String, u64>,
    samples: Vec<String>,
}

impl Default for Found {
    fn default() -> Self {
        Self {
            ids: Vec::new(),
            seen: HashSet::new(),
            scanned: 0,
            is_whole: true,
            names: BTreeMap::new(),
            samples: Vec::new(),
        }
    }
}

impl Found {
    /// Adds a task. One that moves while pages are read is on two of them.
    pub(crate) fn add(&mut self, row: &TaskRow) {
        if self.is_full() || !self.seen.insert(row.id.clone()) {
            return;
        }
        self.ids.push(row.id.clone());
        let name = row.task.clone().unwrap_or_else(|| "(unreadable)".to_owned());
        if self.names.len() < 100 || self.names.contains_key(&name) {
            *self.names.entry(name.clone()).or_default() += 1;
        }
        if self.samples.len() < SAMPLES {
            let error = row.last_error.as_ref().map_or("", |error| error.message.as_str());
            let error = error.lines().next().unwrap_or_default();
            self.samples.push(format!("  {}  {name}  {error}", row.id));
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.ids.len() >= MATCHES_MAX
    }

    pub(crate) fn count(&self) -> u64 {
        self.ids.len() as u64
    }

    /// Describes the tasks before the question: how many of each name, and some of them.
    pub(crate) fn summary(&self) -> String {
        let mut names: Vec<_> = self.names.iter().collect();
        names.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let names = names.iter().take(SAMPLES);
        let names: Vec<String> =
            names.map(|(name, count)| format!("{} {name}", text::number(**count))).collect();
        let mut lines = vec![names.join(" · ")];
        lines.extend(self.samples.iter().cloned());
        if self.count() > self.samples.len() as u64 {
            lines.push("  …".to_owned());
        }
        if !self.is_whole {
            lines.push(format!(
                "These are the first of them: {} were looked at, and there are more.",
                text::count(self.scanned, "task")
            ));
        }
        lines.iter().map(|line| clean::line(line)).collect::<Vec<_>>().join("\n")
    }
}
