//! The time of a store: the machine's clock, or a clock that a test moves.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

/// The source of `TIME`, of expiry and of the timeouts of blocking commands.
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
    /// Microseconds since the epoch. A channel, so that sleepers notice every move.
    Manual(Arc<watch::Sender<u64>>),
}

impl Clock {
    /// The machine's clock.
    ///
    /// Tokio measures blocking timeouts, so they follow a paused tokio clock. `TIME` and expiry
    /// always use the machine's clock.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that shows `start_ms` milliseconds since the epoch until it is moved.
    pub fn manual(start_ms: u64) -> Self {
        Self(Source::Manual(Arc::new(watch::Sender::new(start_ms.saturating_mul(1000)))))
    }

    #[cfg(feature = "simulation")]
    pub(crate) fn of(time: Arc<crate::simulation::VirtualTime>) -> Self {
        Self(Source::Virtual(time))
    }

    /// The current time, in milliseconds since the epoch.
    pub fn now_ms(&self) -> u64 {
        self.now_us() / 1000
    }

    /// Moves a manual clock forward and wakes the blocking commands that are then due.
    ///
    /// # Panics
    ///
    /// On the system clock, which cannot be moved.
    pub fn advance(&self, by: Duration) {
        self.manual_time().send_modify(|now_us| *now_us = now_us.saturating_add(micros(by)));
    }

    /// Sets a manual clock, forward or back, to `now_ms` milliseconds since the epoch.
    ///
    /// # Panics
    ///
    /// On the system clock, which cannot be moved.
    pub fn set_ms(&self, now_ms: u64) {
        self.manual_time().send_replace(now_ms.saturating_mul(1000));
    }

    /// The current time, in microseconds since the epoch.
    pub(crate) fn now_us(&self) -> u64 {
        match &self.0 {
            Source::System => {
                // A machine whose clock is before 1970 counts as at the epoch.
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
                // The sender is part of `self`, so the channel cannot close while this waits.
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
