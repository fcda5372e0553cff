//! The tasks that a command has found: [`Found`].

use std::collections::HashSet;

use optimus_core::{TaskId, TaskRow};

use crate::page::MATCHES_MAX;

/// The tasks that a command has found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) ids: Vec<TaskId>,
    seen: HashSet<TaskId>,
    /// How many tasks were looked at.
    pub(crate) scanned: u64,
    /// Whether all tasks were looked at.
    pub(crate) is_whole: bool,
}

impl Default for Found {
    fn default() -> Self {
        Self { ids: Vec::new(), seen: HashSet::new(), scanned: 0, is_whole: true }
    }
}

impl Found {
    /// Adds a task. One that moves while pages are read is on two of them.
    pub(crate) fn add(&mut self, row: &TaskRow) {
        if !self.is_full() && self.seen.insert(row.id.clone()) {
            self.ids.push(row.id.clone());
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.ids.len() >= MATCHES_MAX
    }

    pub(crate) fn count(&self) -> u64 {
        self.ids.len() as u64
    }
}
