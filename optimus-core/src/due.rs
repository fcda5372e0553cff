//! When a task becomes ready: [`Due`].

use std::time::Duration;

use chrono::{DateTime, Utc};

/// When a task becomes ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Due {
    /// The task is ready immediately.
    #[default]
    Now,
    /// The task is ready this long after Redis has accepted it.
    In(Duration),
    /// The task is ready at this time by Redis' clock. A time in the past means immediately.
    At(DateTime<Utc>),
}
