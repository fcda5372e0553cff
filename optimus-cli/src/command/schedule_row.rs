//! A schedule in a list, and an instant of its history.

use chrono::{DateTime, Utc};
use optimus_core::{Overdue, ScheduleDetails, ScheduleTick, TaskId, TickOutcome, WorkerDetails};
use serde::Serialize;

use crate::{
    output::{
        Row,
        paint::Tone,
        table::{Cell, Column},
        text,
    },
    pause::Pause,
};

/// A schedule in a list.
#[derive(Debug, Serialize)]
pub(crate) struct ScheduleRow {
    #[serde(rename = "schedule")]
    name: String,
    queue: String,
    task: Option<String>,
    pace: String,
    pub(crate) missed: String,
    pub(crate) overlap: String,
    #[serde(rename = "next_ms", with = "chrono::serde::ts_milliseconds_option")]
    next: Option<DateTime<Utc>>,
    #[serde(rename = "last_ms", with = "chrono::serde::ts_milliseconds_option")]
    last: Option<DateTime<Utc>>,
    last_id: Option<TaskId>,
    paused: bool,
    pause: Option<Pause>,
    is_overdue: bool,
    is_orphaned: bool,
    /// For how long it is due and why nobody ticks it, if it is overdue.
    #[serde(skip)]
    pub(crate) overdue: Option<Overdue>,
    overdue_ms: Option<u128>,
    overdue_why: Option<String>,
    release: Option<String>,
}

impl ScheduleRow {
    /// Makes a row. `workers` are those of its queue, if it is overdue.
    pub(crate) fn of(found: &ScheduleDetails, workers: &[WorkerDetails]) -> Self {
        let overdue = found.overdue(workers);
        // The words of `#[optimus::cron]`.
        let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            name: found.name.clone(),
            queue: found.queue.to_string(),
            task: found.record.as_ref().ok().map(|record| record.task.clone()),
            pace: found.pace.to_string(),
            missed: serde_json::to_value(found.missed).map(word).unwrap_or_default(),
            overlap: serde_json::to_value(found.overlap).map(word).unwrap_or_default(),
            next: found.next,
            last: found.last,
            last_id: found.last_id.clone(),
            paused: found.paused.is_some(),
            pause: Pause::of_schedule(found),
            is_overdue: found.is_overdue(),
            is_orphaned: found.is_orphaned(),
            overdue,
            overdue_ms: overdue.map(|overdue| overdue.late.as_millis()),
            overdue_why: overdue.map(|overdue| overdue.cause.to_string()),
            release: found.release.clone(),
        }
    }
}

impl Row for ScheduleRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("SCHEDULE"),
        Column::text("QUEUE"),
        Column::text("TASK"),
        Column::text("PACE"),
        Column::number("LAST"),
        Column::number("NEXT"),
        Column::text(""),
    ];

    fn cells(&self, now: DateTime<Utc>) -> Vec<Cell> {
        let note = match (&self.pause, &self.overdue) {
            (Some(pause), _) => pause.at(now),
            (None, Some(overdue)) => overdue.to_string(),
            (None, None) => String::new(),
        };
        let relative =
            |at: Option<DateTime<Utc>>| Cell::or_dash(at.map(|at| text::relative(at, now)));
        vec![
            Cell::new(&self.name),
            Cell::new(&self.queue),
            Cell::or_dash(self.task.clone()),
            Cell::new(&self.pace),
            relative(self.last),
            relative(self.next),
            Cell::new(note).tone(Tone::Warning),
        ]
    }
}

/// An instant of a schedule.
#[derive(Debug, Serialize)]
pub(crate) struct TickRow {
    #[serde(rename = "instant_ms", with = "chrono::serde::ts_milliseconds")]
    instant: DateTime<Utc>,
    #[serde(rename = "noticed_ms", with = "chrono::serde::ts_milliseconds")]
    noticed: DateTime<Utc>,
    missed_before: u32,
    by_hand: bool,
    outcome: &'static str,
    id: Option<TaskId>,
}

impl TickRow {
    pub(crate) fn of(tick: &ScheduleTick) -> Self {
        let (outcome, id) = match &tick.outcome {
            TickOutcome::Submitted(id) => ("submitted", Some(id)),
            TickOutcome::Duplicate(id) => ("biz id held", Some(id)),
            TickOutcome::Overlap => ("left out: the task before had not ended", None),
            TickOutcome::Missed => ("missed", None),
            _ => ("unknown", None),
        };
        Self {
            instant: tick.nominal,
            noticed: tick.at,
            missed_before: tick.missed,
            by_hand: tick.by_hand,
            outcome,
            id: id.cloned(),
        }
    }

    /// Describes the instant in a line.
    pub(crate) fn sentence(&self, now: DateTime<Utc>) -> String {
        let id = self.id.as_ref().map_or_else(String::new, |id| format!(" {id}"));
        format!("{}: {}{id}", text::instant(self.instant, now), self.note())
    }

    fn note(&self) -> String {
        let by_hand = if self.by_hand { ", by hand" } else { "" };
        let missed = match self.missed_before {
            0 => String::new(),
            missed => format!(", {missed} missed before it"),
        };
        format!("{}{by_hand}{missed}", self.outcome)
    }
}

impl Row for TickRow {
    const COLUMNS: &'static [Column] = &[
        Column::text("INSTANT"),
        Column::number("WHEN"),
        Column::text("TASK"),
        Column::text("OUTCOME"),
    ];

    fn cells(&self, now: DateTime<Utc>) -> Vec<Cell> {
        vec![
            Cell::new(self.instant.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)),
            Cell::new(text::relative(self.instant, now)),
            Cell::or_dash(self.id.as_ref().map(ToString::to_string)),
            Cell::new(self.note()),
        ]
    }
}
