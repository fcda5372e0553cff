//! Checks whether operations on many tasks go on.

use std::time::Duration;

use chrono::{DateTime, Utc};
use optimus_core::{Operation, OperationState};

use super::Finding;
use crate::{advice::advice, failure::Failure, operation_text, output::text, session::Session};

/// As many as are kept.
const KEPT: usize = 100;

/// Finds operations that have not come further for this long, because no process carries them on.
pub(crate) async fn check(session: &Session<'_>, late: Duration) -> Result<Vec<Finding>, Failure> {
    let now = session.now().await?;
    let kept = session.client.operations().list(KEPT).await?;
    Ok(kept.iter().filter_map(|operation| stalled(operation, late, now)).collect())
}

fn stalled(operation: &Operation, late: Duration, now: DateTime<Utc>) -> Option<Finding> {
    let Operation { id, state, updated, .. } = operation;
    let is_carried = matches!(state, OperationState::Counting | OperationState::Running);
    if !is_carried || text::since(*updated, now) <= late {
        return None;
    }
    let text = format!(
        "operation {id} ({}) came further {} for the last time: no process carries it on. Tasks \
         that it has requeued may stay blocked until it is over. A worker carries it on within \
         three minutes, {} does so at once, and {} ends it",
        operation_text::what(operation),
        text::relative(*updated, now),
        advice("op follow", [id]),
        advice("op cancel", [id]),
    );
    Some(Finding::warning("operations", text))
}
