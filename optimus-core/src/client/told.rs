//! The log event of each submit that Redis has acknowledged: [`tell`].

use std::panic::{AssertUnwindSafe, catch_unwind};

use tracing::{
    Level,
    level_filters::{LevelFilter, STATIC_MAX_LEVEL},
};

use crate::{broker::Receipt, discard::discard, id::TaskId};

/// Calls the subscriber on the task of who submits, so that the event is within its spans. A panic
/// of the subscriber costs the event alone, for the task is stored.
pub(super) fn tell(id: &TaskId, task: &str, receipt: &Receipt) {
    if Level::DEBUG > STATIC_MAX_LEVEL || Level::DEBUG > LevelFilter::current() {
        return;
    }
    let queue = id.queue();
    let event = || match receipt {
        Receipt::Created => {
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
