//! The first page.

use axum::{
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};

use crate::{
    problem::{ErrorBody, Problem},
    seat::Seat,
    view::Overview,
};

/// What people see first: the numbers of all queues, at most 5 s old.
#[utoipa::path(get, path = "/api/v1/overview", tag = "look", responses(
    (status = 200, body = Overview), (status = 503, body = ErrorBody)))]
pub(crate) async fn overview(seat: Seat) -> Result<Response, Problem> {
    let sampling = &seat.app.sampling;
    let snapshot = sampling.snapshot().await?;
    let json = sampling.overview_json(&snapshot, &seat.identity, seat.payloads()).await;
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(([kind], json.to_string()).into_response())
}
