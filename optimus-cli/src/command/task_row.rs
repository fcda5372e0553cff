//! A task in a list.

use chrono::{DateTime, Utc};
use optimus_core::{TaskRow, TaskState};
use serde::Serialize;

use crate::output::{
    Row,
    paint::Tone,
    table::{Cell, Column},
    text,
};

/// A task in a list.
#[derive(Debug, Serialize)]
pub(crate) struct TaskRecordRow {
    id: String,
    task: Option<String>,
    state: TaskState,
    attempt: u32,
    created: Option<DateTime<Utc>>,
    /// When it is due or ended.
    at: Option<DateTime<Utc>>,
    took_ms: Option<u64>,
    worker: Option<String>,
    reason: Option<&'static str>,
    error: Option<String>,
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    headers: std::collections::BTreeMap<String, String>,
}

impl TaskRecordRow {
    pub(crate) fn of(row: &TaskRow) -> Self {
        let error = row.last_error.as_ref();
        Self {
            id: row.id.to_string(),
            task: row.task.clone(),
            state: row.state,
            attempt: row.attempt,
            created: row.created,
            at: row.at,
            took_ms: row.took.and_then(|took| u64::try_from(took.as_millis()).ok()),
            worker: row.worker.as_ref().map(ToString::to_string),
            reason: error.map(|error| error.reason.as_str()),
            error: error.map(|error| error.message.clone()),
            headers: row.headers.clone(),
        }
    }

    /// Says what happened to it last, or where it is.
    fn note(&self) -> String {
        let first = |text: &String| match text.split_once('\n') {
            Some((first, _)) => format!("{first} …"),
            None => text.clone(),
        };
        match (self.error.as_ref().map(first), self.reason, &self.worker, self.took_ms) {
            (_, _, Some(worker), None) => format!("on {worker}"),
            (_, _, _, Some(ms)) => {
                format!("took {}", text::duration(std::time::Duration::from_millis(ms)))
            }
            (Some(error), Some(reason), _, _) if error.is_empty() => reason.replace('_', " "),
            (Some(error), Some("failed"), _, _) => error,
            (Some(error), Some(reason), _, _) => format!("{}: {error}", reason.replace('_', " ")),
            _ => String::new(),
        }
    }
}

/// Returns the colour of a state.
pub(crate) fn tone(state: TaskState) -> Tone {
    match state {
        TaskState::Dead => Tone::Bad,
        TaskState::Retry => Tone::Warning,
        TaskState::Working | TaskState::Success => Tone::Good,
        TaskState::Cancelled | TaskState::Forgotten => Tone::Pale,
        _ => Tone::Plain,
    }
}

impl Row for TaskRecordRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("ID"),
        Column::text("TASK"),
        Column::text("STATE"),
        Column::number("WHEN"),
        Column::number("ATTEMPT"),
        Column::text("NOTE"),
    ];

    fn cells(&self, now: DateTime<Utc>) -> Vec<Cell> {
        let when = self.at.or(self.created).map(|at| text::relative(at, now));
        vec![
            Cell::new(&self.id),
            Cell::or_dash(self.task.clone()),
            Cell::new(self.state.as_str()).tone(tone(self.state)),
            Cell::or_dash(when),
            Cell::number(u64::from(self.attempt)),
            Cell::new(self.note()),
        ]
    }
}
