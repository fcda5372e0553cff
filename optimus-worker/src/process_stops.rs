//! Whether the whole process was stopped, as by SIGSTOP or a suspended machine: [`ProcessStops`].

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::deadlines::CHECK_EVERY;

/// The time after a stop of the process in which handlers may end by themselves. Their runtime
/// could not end them while the process was stopped.
pub(crate) const THAWED_GRACE: Duration = Duration::from_secs(1);

/// What the checks of [`Deadlines`](crate::deadlines::Deadlines) show. That role does nothing
/// between its checks, and handlers can't block its thread, so a late check shows a stop.
#[derive(Debug)]
pub(crate) struct ProcessStops {
    /// After a stop that is as long as this, leases may be over.
    long: Duration,
    checks: Mutex<Checks>,
}

#[derive(Debug, Default)]
struct Checks {
    /// When the last check ended, and when the next one is due.
    next: Option<(Instant, Instant)>,
    /// The checks between which the last long stop was.
    stop: Option<(Instant, Instant)>,
}

impl ProcessStops {
    /// Notices stops that last for half of a lease.
    pub(crate) fn of_lease(lease: Duration) -> Self {
        Self { long: lease / 2, checks: Mutex::default() }
    }

    fn checks(&self) -> MutexGuard<'_, Checks> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a check begins. Returns whether the process was stopped for long before it.
    pub(crate) fn check(&self, now: Instant) -> bool {
        let mut checks = self.checks();
        let stop = checks.open_stop(now, self.long);
        checks.stop = stop.or(checks.stop);
        stop.is_some()
    }

    /// Notes that a check has ended, and when the next one is due.
    pub(crate) fn check_next(&self, now: Instant, due: Instant) {
        self.checks().next = Some((now, due));
    }

    /// Notes that attempts begin. The role rests while there are none, and is woken for these: a
    /// process that is stopped before the role runs must not look as if it rested.
    pub(crate) fn attempts_begin(&self, now: Instant) {
        let (mut checks, soon) = (self.checks(), now + CHECK_EVERY);
        if checks.next.is_some_and(|(_, due)| due > soon) {
            checks.next = Some((now, soon));
        }
    }

    /// Returns how late a check is that begins now.
    pub(crate) fn late(&self, now: Instant) -> Duration {
        let next = self.checks().next;
        next.map_or(Duration::ZERO, |(_, due)| now.saturating_duration_since(due))
    }

    /// Returns whether the last long stop has kept an attempt that started then from ending before
    /// its limit: the limit passed during the stop, or so soon after it that the handler had no
    /// time to go on. The first check after the stop may be still to come.
    pub(crate) fn cover(&self, started: Instant, limit: std::time::Instant, now: Instant) -> bool {
        let checks = self.checks();
        let stops = [checks.stop, checks.open_stop(now, self.long)];
        stops.iter().flatten().any(|(from, until)| {
            let was_stopped = started <= *until;
            was_stopped && (from.into_std()..=(*until + THAWED_GRACE).into_std()).contains(&limit)
        })
    }
}

impl Checks {
    /// Returns the long stop since the last check, if the next check is so late that there was one.
    fn open_stop(&self, now: Instant, long: Duration) -> Option<(Instant, Instant)> {
        let (checked, due) = self.next?;
        (now.saturating_duration_since(due) >= long).then_some((checked, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(10);
    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_stop_of_half_a_lease_covers_its_time_before_and_after_the_check_that_follows() {
        let (stops, now) = (ProcessStops::of_lease(LEASE), Instant::now());
        let cover = |at: Instant, until| stops.cover(now, at.into_std(), until);
        assert!(!cover(now + LEASE, now + LEASE), "nothing is checked yet");
        stops.check_next(now, now + SECOND);
        let thawed = now + SECOND + LEASE / 2;
        assert!(!cover(now + SECOND, thawed - SECOND), "the stop is too short until now");
        assert!(cover(now + SECOND, thawed), "no check has followed");
        assert!(stops.check(thawed));
        stops.check_next(thawed, thawed + SECOND);
        let later = thawed + LEASE / 4;
        assert!(cover(now + SECOND, later) && cover(thawed, later));
        assert!(!cover(now - SECOND, later), "it passed before the stop");
        assert!(cover(thawed + SECOND / 2, later), "the handler had half a second to go on");
        assert!(!cover(thawed + 2 * SECOND, later), "the process ran at that time");
        let after = stops.cover(thawed + SECOND / 4, (thawed + SECOND / 2).into_std(), later);
        assert!(!after, "an attempt that started after the stop has had its time");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_right_after_an_attempt_has_begun_covers_it_though_the_checks_rest() {
        let (stops, now) = (ProcessStops::of_lease(LEASE), Instant::now());
        stops.check_next(now, now + 360 * LEASE);
        let began = now + 2 * LEASE;
        stops.attempts_begin(began);
        assert_eq!(stops.late(began), Duration::ZERO);
        let thawed = began + LEASE;
        assert_eq!(stops.late(thawed), LEASE.saturating_sub(CHECK_EVERY));
        assert!(stops.cover(began, (began + SECOND).into_std(), thawed));
        assert!(!stops.cover(now, (now + LEASE).into_std(), thawed), "the process ran then");
    }

    #[tokio::test(start_paused = true)]
    async fn a_shorter_stop_covers_no_time() {
        let (stops, now) = (ProcessStops::of_lease(LEASE), Instant::now());
        stops.check_next(now, now);
        assert!(!stops.check(now + LEASE / 4));
        assert!(!stops.cover(now, (now + SECOND).into_std(), now + LEASE / 4));
    }
}
