//! A task in a list.

use chrono::{DateTime, Utc};
use optimus_core::{AttemptError, Reason, TaskRow, TaskState};
use serde::{Serialize, Serializer};

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
    #[serde(rename = "created_ms", with = "chrono::serde::ts_milliseconds_option")]
    created: Option<DateTime<Utc>>,
    /// When it is due or ended, or since when it is ready again.
    #[serde(rename = "at_ms", with = "chrono::serde::ts_milliseconds_option")]
    at: Option<DateTime<Utc>>,
    took_ms: Option<u64>,
    worker: Option<String>,
    /// The last error.
    #[serde(serialize_with = "error")]
    error: Option<AttemptError>,
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    headers: std::collections::BTreeMap<String, String>,
}

impl TaskRecordRow {
    pub(crate) fn of(row: &TaskRow) -> Self {
        Self {
            id: row.id.to_string(),
            task: row.task.clone(),
            state: row.state,
            attempt: row.attempt,
            created: row.created,
            at: row.at,
            took_ms: row.took.and_then(|took| u64::try_from(took.as_millis()).ok()),
            worker: row.worker.as_ref().map(ToString::to_string),
            error: row.last_error.clone(),
            headers: row.headers.clone(),
        }
    }

    /// Says what happened to it last, or where it is.
    fn note(&self) -> String {
        match (&self.error, &self.worker, self.took_ms) {
            (_, Some(worker), None) => format!("on {worker}"),
            (_, _, Some(ms)) => {
                format!("took {}", text::duration(std::time::Duration::from_millis(ms)))
            }
            (Some(error), _, _) => summary(error),
            _ => String::new(),
        }
    }
}

/// Describes an error in a line.
fn summary(error: &AttemptError) -> String {
    match error.message.split_once('\n') {
        Some((first, _)) => reason_and(error.reason, &format!("{first} …")),
        None => reason_and(error.reason, &error.message),
    }
}

/// Returns a line of an error after its reason. Without a reason, it is a failure. The message of a
/// panic begins with its place.
pub(crate) fn reason_and(reason: Reason, line: &str) -> String {
    match reason {
        _ if line.is_empty() => reason.to_string(),
        Reason::Failed => line.to_owned(),
        Reason::Panicked if line.starts_with("at ") => format!("{reason} {line}"),
        _ => format!("{reason}: {line}"),
    }
}

/// Writes an error into the JSON of a row.
#[expect(clippy::ref_option, reason = "serde passes a reference")]
pub(crate) fn error<S: Serializer>(
    error: &Option<AttemptError>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    error.as_ref().map(AttemptError::to_json).serialize(serializer)
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
