//! The processes, and what they run.

use axum::Json;
use optimus_core::{PAGE_MAX, ProcessCursor, ProcessDetails, WorkerId};
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

/// How many pages of processes are looked through: for one, or for those that somebody sees.
const PAGES_MAX: usize = 100;

/// A page of the processes that somebody sees.
pub(super) struct SeenPage {
    pub(super) rows: Vec<ProcessDetails>,
    next: Option<String>,
    total: Option<u64>,
}

/// Returns whether somebody sees a queue that the process serves.
fn is_seen(seat: &Seat, process: &ProcessDetails) -> bool {
    seat.identity.queues.take_one_of(&process.about.queues)
}

/// Reads a page of the processes that somebody sees.
pub(super) async fn seen_page(
    seat: &Seat,
    after: Option<String>,
    limit: usize,
) -> Result<SeenPage, Problem> {
    let inspector = seat.inspector();
    let mut place = after.filter(|after| !after.is_empty()).map(ProcessCursor::from);
    if seat.identity.queues.is_all() {
        let found = inspector.processes(place.as_ref(), limit).await?;
        let next = found.next.map(|next| next.to_string());
        return Ok(SeenPage { rows: found.rows, next, total: Some(found.total as u64) });
    }
    let is_first = place.is_none();
    let mut rows = Vec::new();
    for _ in 0..PAGES_MAX {
        let page = inspector.processes(place.as_ref(), PAGE_MAX).await?;
        rows.extend(page.rows.into_iter().filter(|process| is_seen(seat, process)));
        place = page.next;
        // One more than the page has tells whether they see another.
        if rows.len() > limit || place.is_none() {
            break;
        }
    }
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    // The place is that of a process that they see: any other would tell of one that they do not.
    let next = rows.last().filter(|_| has_more).map(|process| process.id.to_string());
    let is_whole = is_first && !has_more && place.is_none();
    let total = is_whole.then_some(rows.len() as u64);
    Ok(SeenPage { rows, next, total })
}

/// Finds a process that somebody sees; `None` also if it is there and they do not.
pub(super) async fn find(seat: &Seat, id: &WorkerId) -> Result<Option<ProcessDetails>, Problem> {
    let mut after = None;
    for _ in 0..PAGES_MAX {
        let page = seat.inspector().processes(after.as_ref(), PAGE_MAX).await?;
        if let Some(found) = page.rows.into_iter().find(|process| process.id == *id) {
            return Ok(Some(found).filter(|found| is_seen(seat, found)));
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(None)
}

/// Lists the processes that run workers.
#[utoipa::path(get, path = "/api/v1/processes", tag = "look", params(PageOf), responses(
    (status = 200, body = Page<ProcessRow>)))]
pub(crate) async fn processes(
    seat: Seat,
    Asked(asked): Asked<PageOf>,
) -> Result<Json<Page<ProcessRow>>, Problem> {
    let limit = limit_of(asked.limit)?;
    let found = seen_page(&seat, asked.after, limit).await?;
    let (identity, payloads) = (&seat.identity, seat.payloads());
    let rows = found.rows.iter().map(|process| ProcessRow::of(process, identity, payloads));
    let page = Page::new(rows.collect(), found.next);
    Ok(Json(Page { total: found.total, ..page }))
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

/// Lists the tasks that run, except those of lost processes, the one that has run longest first
/// within a page. A page is that of up to 32 processes, and of each the 32 tasks that have run
/// longest.
#[utoipa::path(get, path = "/api/v1/running", tag = "look", params(RunningOf), responses(
    (status = 200, body = Page<RunningRow>), (status = 403, body = ErrorBody)))]
pub(crate) async fn running(
    seat: Seat,
    Asked(asked): Asked<RunningOf>,
) -> Result<Json<Page<RunningRow>>, Problem> {
    let queue = asked.queue.as_deref().filter(|queue| !queue.is_empty());
    let queue = queue.map(|queue| seat.queue(queue)).transpose()?;
    let limit = limit_of(asked.limit)?.min(PROCESSES_A_PAGE);
    let found = seen_page(&seat, asked.after, limit).await?;
    let payloads = seat.payloads();
    let mut rows: Vec<RunningRow> = found
        .rows
        .iter()
        // What a lost process ran, runs again elsewhere.
        .filter(|process| !process.is_lost)
        .flat_map(|process| running_of(process, &seat.identity, payloads))
        .filter(|row| {
            let of = row.id.split_once('/').map(|(queue, _)| queue);
            queue.as_ref().is_none_or(|wanted| of == Some(wanted.as_str()))
        })
        .collect();
    rows.sort_by_key(|row| row.since_ms);
    Ok(Json(Page::new(rows, found.next)))
}
