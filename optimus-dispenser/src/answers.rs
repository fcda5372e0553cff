//! The answers of requests, as JSON.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use optimus_core::{Added, AssignedRow, AssigneeRow, DispenserDetails, Held, OpenRow, Settled};
use serde_json::{Value, json as value};

/// Makes a response of a JSON text.
pub(crate) fn json(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// What an assignee holds.
pub(crate) fn held(held: &Held) -> Value {
    let items = held.items.iter();
    let items: Vec<Value> =
        items.map(|item| value!({ "id": item.id, "until": item.until })).collect();
    let hold_ms = u64::try_from(held.hold.as_millis()).unwrap_or(u64::MAX);
    value!({ "items": items, "hold_ms": hold_ms })
}

/// Which items were settled.
pub(crate) fn settled(settled: &Settled) -> Value {
    let refused = settled.refused.iter();
    let refused: Vec<Value> =
        refused.map(|(id, place)| value!({ "id": id, "place": place.as_str() })).collect();
    value!({ "accepted": settled.accepted, "refused": refused })
}

/// What an addition has done.
pub(crate) fn added(added: Added) -> Value {
    let Added { added, open, assigned, done } = added;
    value!({ "added": added, "open": open, "assigned": assigned, "done": done })
}

/// The counts of a dispenser.
pub(crate) fn details(details: DispenserDetails) -> Value {
    let first_waits = details.first_waits.and_then(|wait| u64::try_from(wait.as_millis()).ok());
    value!({
        "open": details.open,
        "assigned": details.assigned,
        "assignees": details.assignees,
        "first_waits_ms": first_waits,
        "is_rebuilding": details.is_rebuilding,
    })
}

/// Items of the pool.
pub(crate) fn open(rows: &[OpenRow]) -> Value {
    let row = |row: &OpenRow| {
        value!({
            "id": row.id,
            "rank_ms": row.rank_ms,
            "returns": row.returns,
            "last_assignee": row.last_assignee,
        })
    };
    value!({ "rows": rows.iter().map(row).collect::<Vec<_>>() })
}

/// Items with assignees.
pub(crate) fn assigned(rows: &[AssignedRow]) -> Value {
    let row =
        |row: &AssignedRow| value!({ "id": row.id, "assignee": row.assignee, "until": row.until });
    value!({ "rows": rows.iter().map(row).collect::<Vec<_>>() })
}

/// Assignees.
pub(crate) fn assignees(rows: &[AssigneeRow]) -> Value {
    let row =
        |row: &AssigneeRow| value!({ "name": row.name, "until": row.until, "items": row.items });
    value!({ "rows": rows.iter().map(row).collect::<Vec<_>>() })
}
