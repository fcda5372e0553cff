//! A change of many tasks.

use std::collections::BTreeMap;

use optimus_core::{Operation, OperationSample, Value};
use serde::Serialize;
use utoipa::ToSchema;

use super::{ErrorRow, TaskRowView, at_ms, headers_shown, kept, line_shown};
use crate::access::{Identity, Payloads, Reader};

/// A change of many tasks, and how far it has come.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct OperationRow {
    pub(crate) id: String,
    /// `requeue`, `cancel`, `delete` or `run_now`.
    act: Value,
    /// Which tasks it changes.
    filter: Value,
    /// `counting`, `counted`, `running`, `done`, `cancelled` or `failed`.
    pub(crate) state: &'static str,
    who: String,
    reason: String,
    matched: u64,
    done: u64,
    /// How many run, and were asked to stop.
    asked_to_stop: u64,
    refused: u64,
    gone: u64,
    left: u64,
    rate_s: f64,
    created_ms: u64,
    pub(crate) updated_ms: u64,
    /// Until when it can be confirmed; `null` unless it is counted.
    confirm_until_ms: Option<u64>,
    /// Whether it has cancelled tasks, which `undo` requeues.
    can_undo: bool,
    /// At most 20.
    samples: Vec<TaskRowView>,
    by_task: Vec<TaskCount>,
    /// Some of the tasks that it could not change.
    problems: Vec<ProblemRow>,
    failure: Option<String>,
    /// One line for people.
    text: String,
}

/// How many tasks of a name match.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct TaskCount {
    task: String,
    count: u64,
}

/// A task that could not be changed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ProblemRow {
    id: String,
    error: String,
}

/// Returns whether somebody sees all queues of an operation.
pub(crate) fn is_seen(operation: &Operation, identity: &Identity) -> bool {
    let queues = operation.filter.queues();
    identity.queues.is_all()
        || (!queues.is_empty() && queues.iter().all(|queue| identity.queues.take(queue.as_str())))
}

impl OperationRow {
    pub(crate) fn of(operation: &Operation, reader: Reader<'_>) -> Self {
        let payloads = reader.payloads;
        let json = serde_json::to_value(operation).unwrap_or_default();
        let counts = operation.by_task.iter();
        Self {
            id: operation.id.clone(),
            act: json["act"].clone(),
            filter: filter_shown(&json["filter"], payloads),
            state: operation.state.as_str(),
            who: operation.who.clone(),
            reason: line_shown(&operation.reason, payloads),
            matched: operation.matched,
            done: operation.done,
            asked_to_stop: operation.asked_to_stop,
            refused: operation.refused,
            gone: operation.gone,
            left: operation.left(),
            rate_s: operation.rate_s,
            created_ms: at_ms(operation.created),
            updated_ms: at_ms(operation.updated),
            confirm_until_ms: operation.confirm_until().map(at_ms),
            can_undo: operation.undo().is_some(),
            samples: operation.samples.iter().map(|task| sample(task, reader)).collect(),
            by_task: counts
                .map(|(task, count)| TaskCount { task: task.clone(), count: *count })
                .collect(),
            problems: operation
                .problems
                .iter()
                .map(|problem| ProblemRow {
                    id: problem.id.to_string(),
                    error: line_shown(&problem.error, payloads),
                })
                .collect(),
            failure: operation.failure.as_deref().map(|why| line_shown(why, payloads)),
            text: operation.text(),
        }
    }
}

/// Returns what an operation does to which tasks, and how far it is, for the audit. Everybody who
/// reads it sees the same, so secrets are replaced.
pub(crate) fn operation_line(operation: &Operation) -> String {
    line_of(&operation.text(), operation)
}

/// Returns the line of the audit for a confirmation.
pub(crate) fn confirmed_line(operation: &Operation) -> String {
    line_of(&format!("{}: {} match", operation.what(), operation.matched), operation)
}

fn line_of(text: &str, operation: &Operation) -> String {
    let json = serde_json::to_value(operation).unwrap_or_default();
    let mut filter = filter_shown(&json["filter"], Payloads::Redacted);
    if let Some(fields) = filter.as_object_mut() {
        fields.retain(|_, value| {
            !value.is_null() && value.as_array().is_none_or(|all| !all.is_empty())
        });
    }
    format!("{text}; filter {filter}")
}

/// Returns a filter. It was typed by somebody who may see more than the reader.
fn filter_shown(filter: &Value, payloads: Payloads) -> Value {
    let mut shown = filter.clone();
    if payloads == Payloads::Full {
        return shown;
    }
    let line = |text: &mut Value| {
        if let Some(line) = text.as_str() {
            *text = line_shown(line, payloads).into();
        }
    };
    let header = |header: &mut Value| {
        if let Some((name, value)) = header.as_str().and_then(|text| text.split_once('=')) {
            let one = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            let value = headers_shown(&one, payloads).remove(name).unwrap_or_default();
            *header = format!("{name}={value}").into();
        }
    };
    line(&mut shown["text"]);
    header(&mut shown["header"]);
    shown["headers"].as_array_mut().into_iter().flatten().for_each(header);
    shown
}

fn sample(task: &OperationSample, reader: Reader<'_>) -> TaskRowView {
    let headers: &BTreeMap<String, String> = &task.headers;
    TaskRowView {
        id: task.id.to_string(),
        task: task.task.clone(),
        state: task.state.as_str(),
        created_ms: task.created.map(at_ms),
        at_ms: task.at.map(at_ms),
        attempt: task.attempt,
        took_ms: None,
        worker: None,
        headers: headers_shown(headers, reader.payloads),
        error: task.error.as_ref().map(|error| ErrorRow::of(error, kept::ROW, reader)),
        progress: None,
    }
}
