//! Whether the whole process was stopped, as by SIGSTOP or a suspended machine: [`ProcessStops`].

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

/// The time after a stop in which handlers end because of it. Their runtime could not end them
/// while the process was stopped.
pub(crate) const THAWED_GRACE: Duration = Duration::from_secs(1);

/// What the checks of [`Deadlines`](crate::deadlines::Deadlines) show. That role does nothing
/// between its checks, and handlers can't block its thread, so a late check shows a stop.
#[derive(Debug)]
pub(crate) struct ProcessStops {
    began: Instant,
    /// After a stop that is as long as this, leases may be over.
    long: Duration,
    /// When the next check is due, in ms since `began`.
    due_ms: AtomicU64,
    /// Until when attempts end because of the last long stop, in ms since `began`.
    until_ms: AtomicU64,
}

impl ProcessStops {
    /// Notices stops that last for half of a lease.
    pub(crate) fn of_lease(lease: Duration) -> Self {
        let (due_ms, until_ms) = (AtomicU64::new(u64::MAX), AtomicU64::new(0));
        Self { began: Instant::now(), long: lease / 2, due_ms, until_ms }
    }

    /// Notes that a check begins, late by so much. Returns whether this shows a long stop.
    pub(crate) fn check(&self, now: Instant, late: Duration) -> bool {
        let is_long = late >= self.long;
        if is_long {
            self.until_ms.store(self.ms_of(now + THAWED_GRACE), Ordering::Relaxed);
        }
        is_long
    }

    /// Notes when the next check is due.
    pub(crate) fn check_next(&self, due: Instant) {
        self.due_ms.store(self.ms_of(due), Ordering::Relaxed);
    }

    /// Returns whether a long stop has just ended. The first check after it may be still to come.
    pub(crate) fn has_just_ended(&self, now: Instant) -> bool {
        let (due_ms, now_ms) = (self.due_ms.load(Ordering::Relaxed), self.ms_of(now));
        now_ms < self.until_ms.load(Ordering::Relaxed)
            || u128::from(now_ms.saturating_sub(due_ms)) >= self.long.as_millis()
    }

    fn ms_of(&self, at: Instant) -> u64 {
        let ms = at.saturating_duration_since(self.began).as_millis();
        u64::try_from(ms).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_stop_of_half_a_lease_is_noticed_before_and_after_the_check_that_follows() {
        let (stops, second) = (ProcessStops::of_lease(LEASE), Duration::from_secs(1));
        let now = Instant::now();
        assert!(!stops.has_just_ended(now + LEASE), "nothing is checked yet");
        stops.check_next(now + second);
        assert!(!stops.has_just_ended(now + second + LEASE / 4));
        let thawed = now + second + LEASE / 2;
        assert!(stops.has_just_ended(thawed), "no check has followed");
        assert!(stops.check(thawed, LEASE / 2));
        stops.check_next(thawed + second);
        assert!(stops.has_just_ended(thawed + THAWED_GRACE / 2));
        assert!(!stops.has_just_ended(thawed + THAWED_GRACE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_shorter_stop_ends_no_attempt() {
        let (stops, now) = (ProcessStops::of_lease(LEASE), Instant::now());
        stops.check_next(now);
        assert!(!stops.check(now + LEASE / 4, LEASE / 4));
        assert!(!stops.has_just_ended(now + LEASE / 4));
    }
}
