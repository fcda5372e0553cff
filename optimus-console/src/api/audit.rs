//! What operators have done.

use axum::Json;
use optimus_core::AuditRow;
use serde::Serialize;
use utoipa::ToSchema;

use super::page::{Page, PageOf, cursor, limit_of};
use crate::{
    problem::{ErrorBody, Problem},
    seat::{Asked, Seat},
    view::at_ms,
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
    reason: String,
    /// What became of it; `null` if this is not known.
    outcome: Option<String>,
}

impl ActRow {
    fn of(row: AuditRow) -> Self {
        let AuditRow { id, at, act, outcome, .. } = row;
        let (who, target, reason) = (act.who, act.target, act.reason);
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
    Ok(Json(Page::new(found.rows.into_iter().map(ActRow::of).collect(), next)))
}
