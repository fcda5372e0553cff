//! Queues, and one queue.

use std::cmp::Reverse;

use axum::{
    Json,
    http::{HeaderName, header},
};
use futures_util::try_join;
use optimus_core::{Gate, QueueName, StatsUnit, WorkerDetails};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    explained::explained,
    page::{Page, limit_of, slice},
};
use crate::{
    problem::{ErrorBody, Problem},
    seat::{Asked, Named, QUEUE_IN_PATH, Seat, Segment},
    view::{QueueRow, StatsShown, TaskStatsRow},
};

/// How many workers of a queue are listed.
const WORKERS_MAX: usize = 200;

/// The order of queues.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sort {
    #[default]
    Name,
    /// The one whose first ready task waits longest.
    Oldest,
    /// The one with most ready tasks.
    Ready,
    /// The one with most dead tasks.
    Dead,
}

/// Which queues.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct QueuesOf {
    /// What comes first.
    #[serde(default)]
    #[param(inline)]
    sort: Sort,
    /// Only queues with this text in their names.
    text: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    /// How many rows: 50 unless it is given, 100 at most.
    limit: Option<usize>,
}

/// Lists queues. The numbers are at most 5 s old, or older if Redis can't be read.
#[utoipa::path(get, path = "/api/v1/queues", tag = "look", params(QueuesOf), responses(
    (status = 200, body = Page<QueueRow>, headers(
        ("age" = u64, description = "how many seconds ago the numbers were read"))),
    (status = 400, body = ErrorBody)))]
pub(crate) async fn queues(
    seat: Seat,
    Asked(asked): Asked<QueuesOf>,
) -> Result<([(HeaderName, String); 1], Json<Page<QueueRow>>), Problem> {
    let limit = limit_of(asked.limit)?;
    let snapshot = seat.app.sampling.snapshot().await?;
    let text = asked.text.as_deref().unwrap_or_default();
    let entries = snapshot.seen_by(&seat.identity).filter(|entry| entry.row.queue.contains(text));
    let mut rows: Vec<&QueueRow> = entries.map(|entry| &entry.row).collect();
    match asked.sort {
        Sort::Name => {}
        Sort::Oldest => {
            rows.sort_by_key(|row| (row.oldest_since.is_none(), row.oldest_since));
        }
        Sort::Ready => rows.sort_by_key(|row| Reverse(row.counts.ready)),
        Sort::Dead => rows.sort_by_key(|row| Reverse(row.counts.dead)),
    }
    let Page { rows, next, total, scanned } = slice(rows, (asked.after.as_deref(), limit))?;
    let age = [(header::AGE, snapshot.age().as_secs().to_string())];
    Ok((age, Json(Page { rows: rows.into_iter().cloned().collect(), next, total, scanned })))
}

/// One queue.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueuePage {
    #[serde(flatten)]
    row: QueueRow,
    /// What keeps its tasks waiting, a line for each.
    explain: Vec<String>,
    /// At most 200.
    workers: Vec<WorkerRow>,
    /// What ended in the last hour, by task.
    tasks: Vec<TaskStatsRow>,
    history: Option<HistorySize>,
}

/// A worker that serves a queue.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WorkerRow {
    id: String,
    host: String,
    pid: u32,
    /// How many tasks of the queue it runs.
    running: usize,
}

/// What the history of a queue keeps.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HistorySize {
    /// For how many days lines are kept.
    days: u32,
    /// How many bytes they take.
    bytes: u64,
    /// How many bytes they may take.
    budget: u64,
}

/// Shows one queue. The numbers are at most 5 s old.
#[utoipa::path(get, path = "/api/v1/queues/{queue}", tag = "look",
    params(("queue" = String, Path, description = QUEUE_IN_PATH)),
    responses((status = 200, body = QueuePage), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(crate) async fn queue(
    seat: Seat,
    Named(Segment(name)): Named<Segment>,
) -> Result<Json<QueuePage>, Problem> {
    let queue = seat.queue(&name)?;
    let row = row_of(&seat, &queue).await?;
    let inspector = seat.inspector();
    let (explain, workers, stats, history) = try_join!(
        inspector.explain_queue(&queue),
        inspector.workers(&queue),
        inspector.stats_sum(std::slice::from_ref(&queue), StatsUnit::Minute, 60),
        inspector.history_details(&queue),
    )?;
    let bytes = history.bytes;
    Ok(Json(QueuePage {
        row,
        explain: explained(&seat, explain),
        workers: workers.iter().take(WORKERS_MAX).map(WorkerRow::of).collect(),
        tasks: StatsShown::of(stats, 60).by_task(),
        history: history.options.map(|options| HistorySize {
            days: options.kept_days(),
            bytes,
            budget: options.kept_bytes(),
        }),
    }))
}

impl WorkerRow {
    fn of(worker: &WorkerDetails) -> Self {
        Self {
            id: worker.id.to_string(),
            host: worker.description.host.clone(),
            pid: worker.description.pid,
            running: worker.running.len(),
        }
    }
}

/// Reads the numbers of a queue, with the rates of the last read of all queues.
async fn row_of(seat: &Seat, queue: &QueueName) -> Result<QueueRow, Problem> {
    let snapshot = seat.app.sampling.snapshot().await?;
    if let Some(row) = snapshot.row(queue.as_str()) {
        return Ok(row.clone());
    }
    // It was made since, or there are too many queues.
    let queues = std::slice::from_ref(queue);
    let gate = seat.app.client.gate(queue, Gate::Queue);
    let inspector = seat.inspector();
    let (seen, limit) = try_join!(inspector.overview(queues), gate.get())?;
    let seen = seen.into_iter().next();
    let mut seen = seen.ok_or_else(|| Problem::not_found(format!("there is no queue {queue}")))?;
    if let Some(problem) = seen.problem.take() {
        return Err(problem.into());
    }
    let is_used = crate::view::Counts::of(&seen.counts) != crate::view::Counts::default()
        || seen.counts.paused
        || seen.totals != optimus_core::Totals::default();
    if !is_used && !seat.inspector().queues().await?.contains(queue) {
        return Err(Problem::not_found(format!(
            "there is no queue {queue}: no task was ever submitted to it, or it was unused for a \
             day"
        )));
    }
    let shut = limit.and_then(|limit| limit.shut);
    let sample = optimus_core::QueueSample { seen, processes: 0, slots: 0, want_slots: 0 };
    let row = QueueRow::of(&sample, None, shut.as_ref());
    // Its processes were not read.
    Ok(QueueRow { slots: None, unserved: false, want_slots: None, ..row })
}
