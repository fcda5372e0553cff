//! The tasks of a queue that succeeded or died on a day.

use axum::Json;
use optimus_core::{HistoryFilter, HistoryRow, NaiveDate};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::page::{Page, cursor, limit_of};
use crate::{
    access::Reader,
    problem::{ErrorBody, Problem},
    seat::{Asked, Named, QUEUE_IN_PATH, Seat, Segment},
    view::{at_ms, error_shown, kept, span_ms},
};

/// Which tasks.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryOf {
    /// The day, in UTC: `2026-10-03`. Today unless it is given.
    day: Option<String>,
    /// `success` or `dead`; both unless it is given.
    state: Option<String>,
    /// Only tasks of this name.
    task: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    /// How many rows: 50 unless it is given, 100 at most.
    limit: Option<usize>,
}

/// A task that has ended.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct HistoryEnd {
    id: String,
    task: String,
    state: &'static str,
    ended_ms: u64,
    attempt: u32,
    took_ms: u64,
    worker: Option<String>,
    error: Option<String>,
}

impl HistoryEnd {
    fn of(row: &HistoryRow, reader: Reader<'_>) -> Self {
        Self {
            id: row.id.to_string(),
            task: row.task.clone(),
            state: row.state.as_str(),
            ended_ms: at_ms(row.ended),
            attempt: row.attempt,
            took_ms: span_ms(row.took),
            worker: row.worker.as_ref().map(ToString::to_string),
            error: row.error.as_ref().map(|error| {
                let text = error_shown(error, kept::ERROR, reader);
                format!("{}: {text}", error.reason)
            }),
        }
    }
}

/// Lists the tasks of a queue that succeeded or died on a day: deaths first.
#[utoipa::path(get, path = "/api/v1/queues/{queue}/history", tag = "look",
    params(("queue" = String, Path, description = QUEUE_IN_PATH), HistoryOf),
    responses((status = 200, body = Page<HistoryEnd>), (status = 400, body = ErrorBody),
        (status = 403, body = ErrorBody)))]
pub(crate) async fn history(
    seat: Seat,
    Named(Segment(name)): Named<Segment>,
    Asked(asked): Asked<HistoryOf>,
) -> Result<Json<Page<HistoryEnd>>, Problem> {
    let queue = seat.queue(&name)?;
    let limit = limit_of(asked.limit)?;
    let inspector = seat.inspector();
    let day: NaiveDate = match asked.day.as_deref().filter(|day| !day.is_empty()) {
        None => inspector.now().await?.date_naive(),
        Some(day) => day.parse().map_err(|_| {
            Problem::invalid(format!("{day:?} is not a day; write one such as 2026-10-03"))
        })?,
    };
    let mut filter = HistoryFilter::day(day);
    if let Some(task) = asked.task.filter(|task| !task.is_empty()) {
        filter = filter.task(task);
    }
    if let Some(state) = asked.state.filter(|state| !state.is_empty()) {
        filter = filter.state(state.parse()?);
    }
    let after = cursor(asked.after.as_deref())?;
    let found = inspector.history(&queue, &filter, after.as_ref(), limit).await?;
    let reader = seat.reader();
    let rows = found.rows.iter().map(|row| HistoryEnd::of(row, reader)).collect();
    let page = Page::new(rows, found.next.map(|next| next.to_string()));
    Ok(Json(Page { scanned: Some(found.scanned), ..page }))
}
