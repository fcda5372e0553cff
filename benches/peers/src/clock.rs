//! The clock that all processes of a machine share.

use rustix::time::{ClockId, clock_gettime};

/// Returns the nanoseconds of the monotonic clock. The time is the same in every process.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let part = |value: i64| u64::try_from(value).expect("the clock counts from the system's start");
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}
