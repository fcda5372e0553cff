//! The JSON of answers: one type for each kind of row. All texts of tasks are strings in it, never
//! JSON of their own.

mod failure_row;
mod operation_row;
mod overview;
mod process_row;
mod queue_row;
mod shown;
mod stats_rows;
mod stuck_row;
mod task_row;
mod thing_row;

use std::time::Duration;

use optimus_core::{DateTime, Utc};

pub(crate) use self::{
    failure_row::FailureRow,
    operation_row::{OperationRow, confirmed_line, is_seen, operation_line},
    overview::{Features, Overview, Point, Rates, RedisState, Slots},
    process_row::{ProcessRow, RunningRow, running},
    queue_row::{Counts, QueueRow},
    shown::{
        Shown, beginning as beginning_shown, error as error_shown, headers as headers_shown, kept,
        line as line_shown, pause as pause_shown,
    },
    stats_rows::{StatsRowView, StatsShown, TaskStatsRow},
    stuck_row::{StuckRow, is_stuck},
    task_row::{ErrorRow, ProgressRow, TaskRowView},
    thing_row::{Fact, ThingRow},
};

/// Returns a time as integer ms since 1970.
pub(crate) fn at_ms(at: DateTime<Utc>) -> u64 {
    u64::try_from(at.timestamp_millis()).unwrap_or(0)
}

/// Returns a duration as integer ms.
pub(crate) fn span_ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
