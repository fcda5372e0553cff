//! Logs each submit that Redis has acknowledged: [`log_submit`].

use std::panic::{AssertUnwindSafe, catch_unwind};

use tracing::{
    Level,
    level_filters::{LevelFilter, STATIC_MAX_LEVEL},
};

use crate::{broker::Receipt, guarded_drop::discard, id::TaskId};

/// Calls the subscriber in the task of the submitter, so that the event is inside its spans. If the
/// subscriber panics, only the event is lost, because the task is stored.
pub(super) fn log_submit(id: &TaskId, task: &str, receipt: &Receipt) {
    if Level::DEBUG > STATIC_MAX_LEVEL || Level::DEBUG > LevelFilter::current() {
        return;
    }
    let queue = id.queue();
    let event = || match receipt {
        Receipt::Created | Receipt::WaitsForItself(_) => {
            tracing::debug!(target: "optimus::submit", task, %id, %queue, "submitted");
        }
        Receipt::Duplicate(owner) => tracing::debug!(
            target: "optimus::submit",
            task,
            id = %owner,
            %queue,
            "not submitted: this task has the same id or biz id"
        ),
    };
    catch_unwind(AssertUnwindSafe(event)).unwrap_or_else(discard);
}
