//! The causes of deaths.

use std::cmp::Reverse;

use axum::Json;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    problem::{ErrorBody, Problem},
    sampling::CAUSES_QUEUES_MAX,
    seat::{Asked, Seat},
    view::FailureRow,
};

const ROWS_DEFAULT: usize = 100;
const ROWS_MAX: usize = 500;

/// Which causes.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FailuresOf {
    /// Only those of this queue.
    queue: Option<String>,
    /// Only those with this fingerprint.
    fingerprint: Option<String>,
    /// How many rows: 100 unless it is given, 500 at most.
    limit: Option<usize>,
}

/// The causes of deaths, those with most dead tasks first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FailuresPage {
    rows: Vec<FailureRow>,
    /// How many causes with fewer dead tasks were left out.
    rows_left_out: usize,
    /// In how many queues they were read.
    queues: usize,
    /// How many queues with dead tasks were left out: those with fewest.
    left_out: usize,
}

/// Lists the causes of deaths: one row for all dead tasks of a queue with the same fingerprint. Of
/// each queue, the 10,000 oldest dead tasks are read, at most once each 10 s.
#[utoipa::path(get, path = "/api/v1/failures", tag = "look", params(FailuresOf), responses(
    (status = 200, body = FailuresPage), (status = 403, body = ErrorBody)))]
pub(crate) async fn failures(
    seat: Seat,
    Asked(asked): Asked<FailuresOf>,
) -> Result<Json<FailuresPage>, Problem> {
    let wanted = asked.queue.as_deref().filter(|queue| !queue.is_empty());
    let wanted = wanted.map(|queue| seat.queue(queue)).transpose()?;
    let snapshot = seat.app.sampling.snapshot().await?;
    let dying = snapshot.dying(|queue| match &wanted {
        Some(wanted) => wanted.as_str() == queue,
        None => seat.identity.queues.take(queue),
    });
    let (found, left_out) = seat.app.sampling.failures(dying, CAUSES_QUEUES_MAX).await?;
    let reader = seat.reader();
    let mut rows: Vec<FailureRow> = found
        .iter()
        .flat_map(|(queue, found)| {
            found.rows.iter().map(move |row| FailureRow::of(queue, row, reader))
        })
        .collect();
    if let Some(wanted) = &asked.fingerprint {
        rows.retain(|row| row.fingerprint.as_ref() == Some(wanted));
    }
    rows.sort_by_key(|row| Reverse(row.dead));
    let most = asked.limit.unwrap_or(ROWS_DEFAULT).min(ROWS_MAX);
    let rows_left_out = rows.len().saturating_sub(most);
    rows.truncate(most);
    Ok(Json(FailuresPage { rows, rows_left_out, queues: found.len(), left_out }))
}
