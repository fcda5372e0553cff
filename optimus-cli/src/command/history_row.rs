//! A task in a history.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use optimus_core::{AttemptError, HistoryRow, TaskState};
use serde::Serialize;

use super::task_row::{self, tone};
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
    #[serde(rename = "ended_ms", with = "chrono::serde::ts_milliseconds")]
    ended: DateTime<Utc>,
    attempt: u32,
    took_ms: u64,
    worker: Option<String>,
    /// Why it died.
    #[serde(serialize_with = "task_row::error")]
    error: Option<AttemptError>,
}

impl HistoryRecordRow {
    pub(crate) fn of(row: &HistoryRow) -> Self {
        Self {
            id: row.id.to_string(),
            task: row.task.clone(),
            state: row.state,
            ended: row.ended,
            attempt: row.attempt,
            took_ms: u64::try_from(row.took.as_millis()).unwrap_or(u64::MAX),
            worker: row.worker.as_ref().map(ToString::to_string),
            error: row.error.clone(),
        }
    }

    /// Says why it died.
    fn note(&self) -> String {
        let Some(error) = &self.error else { return String::new() };
        task_row::reason_and(error.reason, error.message.lines().next().unwrap_or_default())
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
