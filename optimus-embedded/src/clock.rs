//! The time of a store: the machine's clock, or a clock that a test sets.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

/// The clock for `TIME`, for expiries, and for the timeouts of blocking commands.
///
/// Clones share the same time.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    /// Tokio's clock, paused or not.
    #[cfg(feature = "simulation")]
    Virtual(Arc<crate::simulation::VirtualTime>),
    /// Microseconds since the epoch. The value is in a channel, so that sleepers notice every
    /// change.
    Manual(Arc<watch::Sender<u64>>),
}

impl Clock {
    /// Returns the machine's clock.
    ///
    /// Tokio measures blocking timeouts, so they follow a paused tokio clock. `TIME` and expiry
    /// always use the machine's clock.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// Returns a clock that shows `start_ms` milliseconds since the epoch until it is moved.
    pub fn manual(start_ms: u64) -> Self {
        Self(Source::Manual(Arc::new(watch::Sender::new(start_ms.saturating_mul(1000)))))
    }

    #[cfg(feature = "simulation")]
    pub(crate) fn of(time: Arc<crate::simulation::VirtualTime>) -> Self {
        Self(Source::Virtual(time))
    }

    /// Returns the current time, in milliseconds since the epoch.
    pub fn now_ms(&self) -> u64 {
        self.now_us() / 1000
    }

    /// Moves a manual clock forward and wakes the blocking commands that are then due.
    ///
    /// # Panics
    ///
    /// Panics on the system clock, which can't be moved.
    pub fn advance(&self, by: Duration) {
        self.manual_time().send_modify(|now_us| *now_us = now_us.saturating_add(micros(by)));
    }

    /// Sets a manual clock, forward or backward, to `now_ms` milliseconds since the epoch.
    ///
    /// # Panics
    ///
    /// Panics on the system clock, which can't be moved.
    pub fn set_ms(&self, now_ms: u64) {
        self.manual_time().send_replace(now_ms.saturating_mul(1000));
    }

    /// Returns the current time, in microseconds since the epoch.
    pub(crate) fn now_us(&self) -> u64 {
        match &self.0 {
            Source::System => {
                // If the machine's clock is before 1970, the time is the epoch.
                micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
            }
            #[cfg(feature = "simulation")]
            Source::Virtual(time) => time.now_us(),
            Source::Manual(time) => *time.borrow(),
        }
    }

    /// Returns once `duration` has passed on this clock.
    pub(crate) async fn sleep(&self, duration: Duration) {
        match &self.0 {
            Source::System => tokio::time::sleep(duration).await,
            #[cfg(feature = "simulation")]
            Source::Virtual(_) => tokio::time::sleep(duration).await,
            Source::Manual(time) => {
                let mut time = time.subscribe();
                let due_us = time.borrow().saturating_add(micros(duration));
                // The sender is part of `self`, so the channel can't close during this wait.
                let _ = time.wait_for(|now_us| *now_us >= due_us).await;
            }
        }
    }

    fn manual_time(&self) -> &watch::Sender<u64> {
        let Source::Manual(time) = &self.0 else { panic!("only a Clock::manual can be moved") };
        time
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
