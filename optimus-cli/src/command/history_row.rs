//! A task in a history.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use optimus_core::{HistoryRow, TaskState};
use serde::Serialize;

use super::task_row::tone;
use crate::output::{
    Row,
    table::{Cell, Column},
    text,
};

/// A task that succeeded or died.
#[derive(Debug, Serialize)]
pub(crate) struct HistoryRecordRow {
    id: String,
    task: String,
    state: TaskState,
    ended: DateTime<Utc>,
    attempt: u32,
    took_ms: u64,
    worker: Option<String>,
    reason: Option<&'static str>,
    error: Option<String>,
}

impl HistoryRecordRow {
    pub(crate) fn of(row: &HistoryRow) -> Self {
        let error = row.error.as_ref();
        Self {
            id: row.id.to_string(),
            task: row.task.clone(),
            state: row.state,
            ended: row.ended,
            attempt: row.attempt,
            took_ms: u64::try_from(row.took.as_millis()).unwrap_or(u64::MAX),
            worker: row.worker.as_ref().map(ToString::to_string),
            reason: error.map(|error| error.reason.as_str()),
            error: error.map(|error| error.message.clone()),
        }
    }

    /// Says why it died.
    fn note(&self) -> String {
        let reason = self.reason.unwrap_or_default().replace('_', " ");
        match self.error.as_deref().and_then(|error| error.lines().next()) {
            Some(first) if self.reason == Some("failed") => first.to_owned(),
            Some(first) => format!("{reason}: {first}"),
            None => reason,
        }
    }
}

impl Row for HistoryRecordRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("ENDED"),
        Column::text("ID"),
        Column::text("TASK"),
        Column::text("STATE"),
        Column::number("ATTEMPT"),
        Column::number("TOOK"),
        Column::text("WORKER"),
        Column::text("NOTE"),
    ];

    fn cells(&self, _: DateTime<Utc>) -> Vec<Cell> {
        vec![
            Cell::new(self.ended.to_rfc3339_opts(SecondsFormat::Millis, true)),
            Cell::new(&self.id),
            Cell::new(&self.task),
            Cell::new(self.state.as_str()).tone(tone(self.state)),
            Cell::number(u64::from(self.attempt)),
            Cell::new(text::duration(Duration::from_millis(self.took_ms))),
            Cell::or_dash(self.worker.clone()),
            Cell::new(self.note()),
        ]
    }
}
