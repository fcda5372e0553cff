//! The processes, and what they run.

use axum::Json;
use optimus_core::{ProcessCursor, ProcessDetails};
use serde::Deserialize;
use utoipa::IntoParams;

use super::page::{Page, PageOf, limit_of};
use crate::{
    problem::{ErrorBody, Problem},
    seat::{Asked, Seat},
    view::{ProcessRow, RunningRow, running as running_of},
};

/// How many processes one page of running tasks reads.
const PROCESSES_A_PAGE: usize = 32;

/// Returns whether somebody sees a queue that the process serves.
fn is_seen(seat: &Seat, process: &ProcessDetails) -> bool {
    let queues = &seat.identity.queues;
    queues.is_all() || process.about.queues.iter().any(|queue| queues.take(queue))
}

fn place(after: Option<String>) -> Option<ProcessCursor> {
    after.filter(|after| !after.is_empty()).map(ProcessCursor::from)
}

/// Lists the processes that run workers.
#[utoipa::path(get, path = "/api/v1/processes", tag = "look", params(PageOf), responses(
    (status = 200, body = Page<ProcessRow>)))]
pub(crate) async fn processes(
    seat: Seat,
    Asked(asked): Asked<PageOf>,
) -> Result<Json<Page<ProcessRow>>, Problem> {
    let limit = limit_of(asked.limit)?;
    let found = seat.inspector().processes(place(asked.after).as_ref(), limit).await?;
    let (identity, payloads) = (&seat.identity, seat.payloads());
    let rows = found.rows.iter().filter(|process| is_seen(&seat, process));
    let rows = rows.map(|process| ProcessRow::of(process, identity, payloads)).collect();
    let page = Page::new(rows, found.next.map(|next| next.to_string()));
    Ok(Json(Page { total: Some(found.total as u64), ..page }))
}

/// Which running tasks.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RunningOf {
    /// Only tasks of this queue.
    queue: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    /// How many processes a page reads: 32 at most.
    limit: Option<usize>,
}

/// Lists the tasks that run, the one that has run longest first within a page. A page is that of up
/// to 32 processes, and of each the 32 tasks that have run longest.
#[utoipa::path(get, path = "/api/v1/running", tag = "look", params(RunningOf), responses(
    (status = 200, body = Page<RunningRow>), (status = 403, body = ErrorBody)))]
pub(crate) async fn running(
    seat: Seat,
    Asked(asked): Asked<RunningOf>,
) -> Result<Json<Page<RunningRow>>, Problem> {
    let queue = asked.queue.as_deref().filter(|queue| !queue.is_empty());
    let queue = queue.map(|queue| seat.queue(queue)).transpose()?;
    let limit = limit_of(asked.limit)?.min(PROCESSES_A_PAGE);
    let found = seat.inspector().processes(place(asked.after).as_ref(), limit).await?;
    let payloads = seat.payloads();
    let mut rows: Vec<RunningRow> = found
        .rows
        .iter()
        .flat_map(|process| running_of(process, &seat.identity, payloads))
        .filter(|row| {
            let of = row.id.split_once('/').map(|(queue, _)| queue);
            queue.as_ref().is_none_or(|wanted| of == Some(wanted.as_str()))
        })
        .collect();
    rows.sort_by_key(|row| row.since_ms);
    Ok(Json(Page::new(rows, found.next.map(|next| next.to_string()))))
}
