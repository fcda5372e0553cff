//! One task, with all that is stored of it.

use std::collections::BTreeMap;

use axum::Json;
use optimus_core::{PAGE_MAX, ProcessDetails, RunningTask, TaskDetails, TaskRecord, TaskState};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    explained::{before_retry, explained},
    timeline::{Moment, timeline},
};
use crate::{
    problem::{ErrorBody, Problem},
    seat::{Named, QUEUE_IN_PATH, Seat, Segment},
    view::{
        ErrorRow, ProgressRow, Shown, at_ms, beginning_shown, headers_shown, kept, line_shown,
        span_ms,
    },
};

/// A task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaskPage {
    /// `queue/uuid`.
    id: String,
    queue: String,
    task: Option<String>,
    state: &'static str,
    /// The worker that runs it.
    worker: Option<String>,
    /// When it is due, or ended.
    at_ms: Option<u64>,
    created_ms: Option<u64>,
    /// The number of the running attempt or the last one; 0 before the first.
    attempt: u32,
    max_retry: Option<u32>,
    timeout_ms: Option<u64>,
    failures: u32,
    losses: u32,
    misfits: u32,
    biz_id: Option<String>,
    lane: Option<String>,
    priority: Option<i8>,
    headers: BTreeMap<String, String>,
    /// The last ten errors, the latest last.
    errors: Vec<ErrorRow>,
    arguments: Option<Shown>,
    /// What it has returned, while that is kept.
    result: Option<Shown>,
    log: LogRows,
    progress: Option<ProgressRow>,
    running_since_ms: Option<u64>,
    summary: Option<SummaryRow>,
    /// Why the record can't be read.
    undecodable: Option<String>,
    timeline: Vec<Moment>,
    /// What keeps it from starting or ending. Once it is dead or cancelled, what to do before a
    /// retry.
    explain: Vec<String>,
}

/// What attempts have said.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LogRows {
    lines: Vec<LogRow>,
    /// How many lines are not kept.
    dropped: u64,
}

/// A line that an attempt has said.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LogRow {
    at_ms: u64,
    attempt: u32,
    text: String,
}

/// How it has succeeded.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct SummaryRow {
    pub(super) attempt: u32,
    pub(super) took_ms: Option<u64>,
    pub(super) worker: String,
}

/// Shows one task.
#[utoipa::path(get, path = "/api/v1/tasks/{queue}/{uuid}", tag = "look",
    params(("queue" = String, Path, description = QUEUE_IN_PATH),
        ("uuid" = String, Path, description = "the part of the id behind the slash")),
    responses((status = 200, body = TaskPage), (status = 400, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub(crate) async fn task(
    seat: Seat,
    Named((Segment(queue), uuid)): Named<(Segment, String)>,
) -> Result<Json<TaskPage>, Problem> {
    let queue = seat.queue(&queue)?;
    let id = seat.task(&format!("{queue}/{uuid}"))?;
    let inspector = seat.inspector();
    let found = inspector.get(&id).await?.ok_or_else(|| {
        Problem::not_found(format!(
            "nothing is stored of {id}: it has ended long ago, never existed, or is a group"
        ))
    })?;
    let result = match found.state {
        TaskState::Success => seat.app.client.broker().result(&id).await.ok().flatten(),
        _ => None,
    };
    let running = match found.state {
        TaskState::Working => {
            let processes = inspector.processes(None, PAGE_MAX).await?;
            ProcessDetails::latest_attempt(&processes.rows, &found.id).cloned()
        }
        _ => None,
    };
    let explain = match found.state {
        TaskState::Success => Vec::new(),
        state => {
            let why = inspector.explain(&id).await?;
            if state.is_terminal() { before_retry(&seat, why) } else { explained(&seat, why) }
        }
    };
    Ok(Json(page_of(&seat, &found, (result, running), explain)))
}

fn page_of(
    seat: &Seat,
    found: &TaskDetails,
    (result, running): (Option<Vec<u8>>, Option<RunningTask>),
    explain: Vec<String>,
) -> TaskPage {
    let payloads = seat.payloads();
    let record = found.record.as_ref().and_then(|record| record.as_ref().ok());
    let undecodable = found.record.as_ref().and_then(|record| record.as_ref().err());
    let (name, summary) = found.summary.as_deref().map(summary_of).unzip();
    let summary = summary.flatten();
    let is_running = u32::from(found.state == TaskState::Working);
    let attempts = found.failures + found.losses + is_running;
    let errors: Vec<ErrorRow> =
        found.errors.iter().map(|error| ErrorRow::of(error, kept::ERROR, seat.reader())).collect();
    let running_since_ms = running.as_ref().map(|task| at_ms(task.since));
    let of = |read: fn(&TaskRecord) -> Option<String>| record.and_then(read);
    TaskPage {
        id: found.id.to_string(),
        queue: found.id.queue().to_string(),
        task: of(|record| Some(record.task.clone())).or(name),
        state: found.state.as_str(),
        worker: found.worker.as_ref().map(ToString::to_string),
        at_ms: found.at.map(at_ms),
        created_ms: found.id.created().map(at_ms),
        attempt: summary.as_ref().map_or(attempts, |summary| summary.attempt),
        max_retry: record.map(|record| record.max_retry),
        timeout_ms: record.map(|record| span_ms(record.timeout)),
        failures: found.failures,
        losses: found.losses,
        misfits: found.misfits,
        biz_id: of(|record| record.biz_id.clone()).map(|biz_id| line_shown(&biz_id, payloads)),
        lane: of(|record| record.lane.as_ref().map(|lane| lane.key.clone())),
        priority: record.map(|record| record.priority),
        headers: record.map(|record| headers_shown(&record.headers, payloads)).unwrap_or_default(),
        timeline: timeline(found, &errors, running_since_ms, summary.as_ref()),
        errors,
        arguments: record.map(|record| Shown::of(&record.arguments(), payloads)),
        result: result.map(|result| Shown::of(&result, payloads)),
        log: LogRows {
            lines: found
                .log
                .lines
                .iter()
                .map(|line| LogRow {
                    at_ms: at_ms(line.at),
                    attempt: line.attempt,
                    text: beginning_shown(&line.text, kept::LOG, payloads),
                })
                .collect(),
            dropped: found.log.dropped,
        },
        progress: running
            .and_then(|task| task.progress)
            .map(|progress| ProgressRow::of(&progress, payloads)),
        running_since_ms,
        summary,
        undecodable: undecodable.map(|problem| line_shown(&problem.to_string(), payloads)),
        explain,
    }
}

/// Reads `<task> <attempt> <ms> <worker>`.
fn summary_of(summary: &str) -> (String, Option<SummaryRow>) {
    let mut words = summary.splitn(4, ' ');
    let mut word = || words.next().unwrap_or_default();
    let task = word().to_owned();
    let (attempt, took_ms, worker) = (word().parse(), word().parse().ok(), word().to_owned());
    (task, attempt.ok().map(|attempt| SummaryRow { attempt, took_ms, worker }))
}
