//! A task in a list.

use std::collections::BTreeMap;

use optimus_core::{AttemptError, TaskProgress, TaskRow, TaskState};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    at_ms,
    shown::{self, kept},
    span_ms,
};
use crate::access::{Payloads, Reader};

/// A task.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TaskRowView {
    /// `queue/uuid`.
    pub(crate) id: String,
    pub(crate) task: Option<String>,
    pub(crate) state: &'static str,
    pub(crate) created_ms: Option<u64>,
    /// When it is due, or ended; of a ready task that was delayed, blocked or tried before, since
    /// when it is ready.
    pub(crate) at_ms: Option<u64>,
    pub(crate) attempt: u32,
    pub(crate) took_ms: Option<u64>,
    /// The worker that runs it or has ended it; of a dead task, the worker of its last error.
    pub(crate) worker: Option<String>,
    pub(crate) headers: BTreeMap<String, String>,
    /// The last error.
    pub(crate) error: Option<ErrorRow>,
    pub(crate) progress: Option<ProgressRow>,
}

/// Why an attempt did not succeed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ErrorRow {
    pub(crate) at_ms: u64,
    pub(crate) attempt: u32,
    pub(crate) reason: &'static str,
    /// The first line.
    pub(crate) message: String,
    /// The sources of the error.
    pub(crate) causes: Vec<String>,
    pub(crate) worker: String,
    pub(crate) fingerprint: Option<String>,
}

/// How far a task has come.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ProgressRow {
    /// From 0 to 1.
    pub(crate) part: f64,
    pub(crate) text: String,
}

impl TaskRowView {
    pub(crate) fn of(row: &TaskRow, reader: Reader<'_>) -> Self {
        // The record of a dead task has only its errors.
        let dead_on = row.last_error.as_ref().filter(|_| row.state == TaskState::Dead);
        let dead_on = dead_on.map(|error| error.worker.clone()).filter(|name| !name.is_empty());
        Self {
            id: row.id.to_string(),
            task: row.task.clone(),
            state: row.state.as_str(),
            created_ms: row.created.map(at_ms),
            at_ms: row.at.map(at_ms),
            attempt: row.attempt,
            took_ms: row.took.map(span_ms),
            worker: row.worker.as_ref().map(ToString::to_string).or(dead_on),
            headers: shown::headers(&row.headers, reader.payloads),
            error: row.last_error.as_ref().map(|error| ErrorRow::of(error, kept::ROW, reader)),
            progress: None,
        }
    }
}

impl ErrorRow {
    pub(crate) fn of(error: &AttemptError, kept: usize, reader: Reader<'_>) -> Self {
        let text = shown::error(error, kept, reader);
        let mut lines = text.lines().map(str::to_owned);
        Self {
            at_ms: at_ms(error.at),
            attempt: error.attempt,
            reason: error.reason.as_str(),
            message: lines.next().unwrap_or_default(),
            causes: lines.collect(),
            worker: error.worker.clone(),
            fingerprint: error.fingerprint.map(|print| print.to_string()),
        }
    }
}

impl ProgressRow {
    pub(crate) fn of(progress: &TaskProgress, payloads: Payloads) -> Self {
        Self {
            part: progress.part,
            text: shown::beginning(&progress.text, kept::PROGRESS, payloads),
        }
    }
}
