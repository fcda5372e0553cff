//! Dead tasks of a queue with the same cause, as a row.

use chrono::{DateTime, Utc};
use optimus_core::{FingerprintRow, Fingerprints, QueueName};
use serde::Serialize;

use crate::output::{
    Row,
    paint::Tone,
    secrets::Secrets,
    table::{Cell, Column},
    text,
};

/// Dead tasks of a queue with the same cause.
#[derive(Serialize)]
pub(crate) struct CauseRow {
    queue: QueueName,
    #[serde(flatten)]
    row: FingerprintRow,
}

impl CauseRow {
    /// Returns the rows of a queue. Outlines are made of what may be printed: without its numbers,
    /// a secret may no longer look like one.
    pub(crate) fn all(
        queue: &QueueName,
        found: Fingerprints,
        secrets: Secrets,
    ) -> impl Iterator<Item = Self> {
        found.rows.into_iter().map(move |mut row| {
            if let Some(error) = &mut row.error {
                error.message = secrets.text(&error.message).into_owned();
            }
            Self { queue: queue.clone(), row }
        })
    }

    pub(crate) fn dead(&self) -> u64 {
        self.row.dead
    }

    /// Returns the first line of the message, or the reason if there is none.
    fn cause(&self) -> String {
        let reason = self.row.reason.map(|reason| reason.as_str().replace('_', " "));
        match (self.row.outline().filter(|line| !line.is_empty()), reason) {
            (Some(line), Some(reason)) if reason != "failed" => format!("{reason}: {line}"),
            (Some(line), _) => line,
            (None, reason) => reason.unwrap_or_default(),
        }
    }
}

impl Row for CauseRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("QUEUE"),
        Column::text("TASK"),
        Column::text("FINGERPRINT"),
        Column::number("DEAD"),
        Column::number("FIRST"),
        Column::number("LAST"),
        Column::text("CAUSE"),
    ];

    fn cells(&self, now: DateTime<Utc>) -> Vec<Cell> {
        vec![
            Cell::new(&self.queue),
            Cell::or_dash(self.row.task.clone()),
            Cell::or_dash(self.row.fingerprint.map(|print| print.to_string())),
            Cell::number(self.row.dead).tone(Tone::Bad),
            Cell::new(text::relative(self.row.first, now)),
            Cell::new(text::relative(self.row.last, now)),
            Cell::new(self.cause()),
        ]
    }
}
