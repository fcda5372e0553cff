//! The tasks of a queue in a state.

use axum::Json;
use optimus_core::{PAGE_MAX, ProcessDetails, QueueName, TaskState};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    page::{Page, limit_of},
    task_search::{Filter, scan},
};
use crate::{
    access::Payloads,
    problem::{ErrorBody, Problem},
    seat::{Asked, Named, QUEUE_IN_PATH, Seat, Segment},
    view::{ProgressRow, TaskRowView},
};

/// Which tasks.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TasksOf {
    /// `ready`, `delayed`, `blocked`, `retry`, `working`, `dead`, `cancelled` or `success`.
    state: Option<String>,
    /// Only tasks of this name.
    task: Option<String>,
    /// Only tasks with this header: `tenant=acme`, or `tenant` for any value.
    header: Option<String>,
    /// Only tasks that ended so long ago; if they have not ended, were submitted so long ago.
    older_ms: Option<u64>,
    /// Only tasks whose last error has this fingerprint.
    fingerprint: Option<String>,
    /// Only tasks with this text in their ids, names, headers, workers or errors, as shown.
    text: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    /// How many rows: 50 unless it is given, 100 at most. A filtered page may have up to 127 more.
    limit: Option<usize>,
}

/// Lists the tasks of a queue in a state: those that leave the state next come first, of ended ones
/// the latest. With a filter, one request looks at 256 tasks at most, and `next` goes on.
#[utoipa::path(get, path = "/api/v1/queues/{queue}/tasks", tag = "look",
    params(("queue" = String, Path, description = QUEUE_IN_PATH), TasksOf),
    responses((status = 200, body = Page<TaskRowView>), (status = 400, body = ErrorBody),
        (status = 403, body = ErrorBody)))]
pub(crate) async fn tasks(
    seat: Seat,
    Named(Segment(name)): Named<Segment>,
    Asked(asked): Asked<TasksOf>,
) -> Result<Json<Page<TaskRowView>>, Problem> {
    let queue = seat.queue(&name)?;
    let state: TaskState = asked.state.as_deref().unwrap_or("ready").parse()?;
    if state == TaskState::Forgotten {
        return Err(Problem::invalid("nothing is known of forgotten tasks"));
    }
    let limit = limit_of(asked.limit)?;
    let after = super::page::cursor(asked.after.as_deref())?;
    let filter = Filter {
        task: asked.task.filter(|task| !task.is_empty()),
        header: asked.header.filter(|header| !header.is_empty()),
        older_ms: asked.older_ms,
        fingerprint: asked.fingerprint.filter(|print| !print.is_empty()),
        text: asked.text.map(|text| text.to_lowercase()).filter(|text| !text.is_empty()),
    };
    let (inspector, reader) = (seat.inspector(), seat.reader());
    let mut page = if filter.is_all() {
        let found = inspector.list(&queue, state, after.as_ref(), limit).await?;
        let rows: Vec<_> = found.rows.iter().map(|row| TaskRowView::of(row, reader)).collect();
        let scanned = Some(rows.len() as u64);
        Page { scanned, ..Page::new(rows, found.next.map(|next| next.to_string())) }
    } else {
        scan(&inspector, (&queue, state), &filter, (after, limit), reader).await?
    };
    page.total = Some(total(&seat, &queue, state).await?);
    if state == TaskState::Working {
        add_progress(&seat, &mut page.rows, reader.payloads).await?;
    }
    Ok(Json(page))
}

async fn total(seat: &Seat, queue: &QueueName, state: TaskState) -> Result<u64, Problem> {
    Ok(seat.inspector().counts(queue).await?.of(state))
}

/// Adds what handlers have said of their progress, as far as one page of processes knows it.
async fn add_progress(
    seat: &Seat,
    rows: &mut [TaskRowView],
    payloads: Payloads,
) -> Result<(), Problem> {
    if rows.is_empty() {
        return Ok(());
    }
    let processes = seat.inspector().processes(None, PAGE_MAX).await?;
    let latest = ProcessDetails::latest_attempts(&processes.rows);
    for row in rows {
        let progress = latest.get(row.id.as_str()).and_then(|task| task.progress.as_ref());
        row.progress = progress.map(|progress| ProgressRow::of(progress, payloads));
    }
    Ok(())
}
