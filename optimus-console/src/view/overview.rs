//! The first page.

use serde::Serialize;
use utoipa::ToSchema;

use super::{Counts, FailureRow, OperationRow, QueueRow, StuckRow};

/// What people see first.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Overview {
    /// The time of Redis when this answer was made.
    pub(crate) now_ms: u64,
    /// When the numbers were read, which is long ago if Redis can't be read since.
    pub(crate) sampled_ms: u64,
    pub(crate) redis: RedisState,
    pub(crate) namespace: String,
    pub(crate) counts: Counts,
    pub(crate) rates: Rates,
    pub(crate) oldest_ms: Option<u64>,
    pub(crate) slots: Slots,
    /// How many processes serve the queues of the reader.
    pub(crate) processes: u64,
    /// How many queues there are.
    pub(crate) queue_count: u64,
    /// How many of them are in none of these numbers, because there are too many.
    pub(crate) left_out: u64,
    /// At most 20 queues at which somebody should look, the most urgent first.
    pub(crate) attention: Vec<QueueRow>,
    /// At most 20 processes whose handlers keep them from work, blocked ones first.
    pub(crate) stuck: Vec<StuckRow>,
    /// At most 10 causes of deaths, those with most dead tasks first.
    pub(crate) failures: Vec<FailureRow>,
    /// Those under way, and the latest that are over, at most 10.
    pub(crate) operations: Vec<OperationRow>,
    pub(crate) features: Features,
    /// At most 120 points, one for each time when the numbers were read.
    pub(crate) series: Vec<Point>,
}

/// What ends in a second, over the last minute.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "the names of the API have their units")]
pub(crate) struct Rates {
    pub(crate) success_s: f64,
    pub(crate) dead_s: f64,
    pub(crate) retry_s: f64,
}

/// The server.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(crate) struct RedisState {
    pub(crate) version: Option<String>,
    pub(crate) used_bytes: Option<u64>,
    pub(crate) max_bytes: Option<u64>,
    /// Whether the last read has reached it.
    pub(crate) up: bool,
}

/// The slots of the processes that serve the queues of the reader.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
pub(crate) struct Slots {
    pub(crate) busy: u64,
    pub(crate) allowed: u64,
}

/// What is in use, so that its page is of use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "one for each page")]
pub(crate) struct Features {
    pub(crate) lanes: bool,
    pub(crate) limits: bool,
    pub(crate) schedules: bool,
    pub(crate) shards: bool,
    pub(crate) sources: bool,
    pub(crate) dispensers: bool,
    pub(crate) groups: bool,
}

/// What ended between a read and the one before.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct Point {
    pub(crate) at_ms: u64,
    pub(crate) success: u64,
    pub(crate) retry: u64,
    pub(crate) dead: u64,
}
