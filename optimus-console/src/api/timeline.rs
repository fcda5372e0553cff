//! What has happened to a task, in the order of time.

use optimus_core::{Reason, TaskDetails, TaskState};
use serde::Serialize;
use utoipa::ToSchema;

use super::task::SummaryRow;
use crate::view::{ErrorRow, at_ms};

/// Something that has happened, or will.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Moment {
    /// `submitted`, `failed`, `lost`, `started`, `asked` to stop, `due`, `retry`, `ended` or
    /// `cancelled`.
    kind: &'static str,
    at_ms: u64,
    text: String,
}

/// Returns what is known of the past of a task, and when it is due.
pub(super) fn timeline(
    found: &TaskDetails,
    errors: &[ErrorRow],
    running_since_ms: Option<u64>,
    summary: Option<&SummaryRow>,
) -> Vec<Moment> {
    let moment = |kind, at_ms, text: String| Moment { kind, at_ms, text };
    let mut moments = Vec::new();
    if let Some(created) = found.id.created() {
        moments.push(moment("submitted", at_ms(created), String::new()));
    }
    for error in errors {
        let kind = if error.reason == Reason::Lost.as_str() { "lost" } else { "failed" };
        let text = format!("attempt {}, {}: {}", error.attempt, error.reason, error.message);
        moments.push(moment(kind, error.at_ms, text));
    }
    if let Some(since) = running_since_ms {
        moments.push(moment("started", since, String::new()));
    }
    if let Some(at) = found.cancel_requested.map(at_ms) {
        moments.push(moment("asked", at, String::new()));
    }
    if let Some(at) = found.at.map(at_ms) {
        let took = summary.and_then(|summary| summary.took_ms);
        if let (TaskState::Success, Some(took)) = (found.state, took) {
            moments.push(moment("started", at.saturating_sub(took), String::new()));
        }
        moments.push(match found.state {
            TaskState::Delayed | TaskState::Blocked | TaskState::Ready | TaskState::Working => {
                moment("due", at, String::new())
            }
            TaskState::Retry => moment("retry", at, "the next attempt is due".to_owned()),
            TaskState::Cancelled => moment("cancelled", at, String::new()),
            state => moment("ended", at, state.to_string()),
        });
    }
    moments.sort_by_key(|moment| moment.at_ms);
    moments
}
