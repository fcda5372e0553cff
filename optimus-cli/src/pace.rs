//! How fast many tasks are changed: [`Pace`].

use std::time::{Duration, Instant};

use tokio::time::sleep;

/// How many tasks one call changes: few enough that no other caller waits long.
pub(crate) const BATCH: usize = 32;
/// A pause is this many times as long as the call before it took, so other callers of Redis get
/// most of the time, and more of it when Redis is slow.
const REST: u32 = 3;
const REST_MAX: Duration = Duration::from_secs(2);

/// Keeps a pause after each call.
pub(crate) struct Pace(Instant);

impl Pace {
    /// Notes that a call begins.
    pub(crate) fn begin() -> Self {
        Self(Instant::now())
    }

    /// Waits after the call.
    pub(crate) async fn rest(self) {
        sleep((self.0.elapsed() * REST).min(REST_MAX)).await;
    }
}
