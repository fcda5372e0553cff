//! What operators have done.

use axum::Json;
use optimus_core::AuditRow;
use serde::Serialize;
use utoipa::ToSchema;

use super::page::{Page, PageOf, cursor, limit_of};
use crate::{
    access::Payloads,
    problem::{ErrorBody, Problem},
    seat::{Asked, Seat},
    view::{at_ms, line_shown},
};

/// An act.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ActRow {
    id: String,
    /// When it was written down, which is before it was done.
    at_ms: u64,
    who: String,
    act: String,
    target: String,
    /// Why, as typed, with what looks like a secret replaced for those who see no payloads in full.
    reason: String,
    /// What became of it; `null` if this is not known.
    outcome: Option<String>,
}

impl ActRow {
    fn of(row: AuditRow, payloads: Payloads) -> Self {
        let AuditRow { id, at, act, outcome, .. } = row;
        let (who, target, reason) = (act.who, act.target, line_shown(&act.reason, payloads));
        let outcome = outcome.map(|outcome| line_shown(&outcome, payloads));
        Self { id, at_ms: at_ms(at), who, act: act.act, target, reason, outcome }
    }
}

/// Lists what operators have done, the latest first.
#[utoipa::path(get, path = "/api/v1/audit", tag = "look", params(PageOf), responses(
    (status = 200, body = Page<ActRow>), (status = 403, body = ErrorBody)))]
pub(crate) async fn audit(
    seat: Seat,
    Asked(asked): Asked<PageOf>,
) -> Result<Json<Page<ActRow>>, Problem> {
    seat.sees_all("the acts")?;
    let after = cursor(asked.after.as_deref())?;
    let found = seat.inspector().audit(after.as_ref(), limit_of(asked.limit)?).await?;
    let next = found.next.map(|next| next.to_string());
    let payloads = seat.payloads();
    let rows = found.rows.into_iter().map(|row| ActRow::of(row, payloads)).collect();
    Ok(Json(Page::new(rows, next)))
}
