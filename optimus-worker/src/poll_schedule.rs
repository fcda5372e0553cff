//! Decides when a worker polls a queue: [`Polls`]. A poll is a claim without a wakeup.

use std::time::Duration;

use optimus_core::interval;
use tokio::time::Instant;

/// A worker that waits for a due time claims within this time after the due time, unless the worker
/// has ended.
const BACKUP_AFTER: Duration = Duration::from_millis(250);
const BACKUP_EACH: Duration = Duration::from_millis(100);
/// Each worker polls at least as if this many workers shared the polls. The other workers may be
/// ending, or their runtimes may be blocked.
const SHARING_MAX: usize = 60;
/// The same number for a loaded worker, which may receive no wakeup.
const SHARING_LOADED_MAX: usize = 12;
/// The cut of the exponential part of a wait. With this cut, the mean of that part is 1 − e⁻².
const EXPONENTIAL_MAX: f64 = 2.0;
const EXPONENTIAL_MEAN: f64 = 0.864_664_716_763_387_3;

/// The polls of one queue.
#[derive(Debug, Default)]
pub(crate) struct Polls {
    /// The time when a task is due in the queue, according to the answer to the last claim.
    pub(crate) due_at: Option<Instant>,
    /// The time of the last poll. The wait for the next poll starts at this time.
    last: Option<LastPoll>,
    /// Whether the time of a poll has come since the last call of `take_fired`.
    fired: bool,
}

#[derive(Debug, Clone, Copy)]
struct LastPoll {
    at: Instant,
    /// A number in \[0, 1): the place of the next poll in its time span.
    chance: f64,
    /// The value of [`Load::begun`] at the last poll.
    begun: u64,
}

/// The load of a worker between its polls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// The interval at which the workers of a queue together poll it.
    pub(crate) poll: Duration,
    /// Whether more than half of the worker's slots are busy.
    pub(crate) is_loaded: bool,
    /// How many tasks the worker was granted so far.
    pub(crate) begun: u64,
    /// How many queues the worker serves.
    pub(crate) queues: u64,
}

impl Polls {
    /// Returns whether it is time for a poll. If it is, the wait for the next poll starts now.
    pub(crate) fn is_time(&mut self, now: Instant, workers: usize, load: Load) -> bool {
        let last = *self.last.get_or_insert_with(|| LastPoll::now(now, load.begun));
        let is_due = self.due_at.is_some_and(|at| at <= now);
        if !(is_due || last.shared_at(workers, load) <= now || last.is_own_turn(now, load)) {
            return false;
        }
        self.due_at = self.due_at.filter(|at| *at > now);
        self.last = Some(LastPoll::now(now, load.begun));
        self.fired = true;
        true
    }

    /// Notes that a claim was answered, which counts as a poll.
    pub(crate) fn polled(&mut self, now: Instant, begun: u64) {
        self.last = Some(LastPoll::now(now, begun));
    }

    /// Returns whether the time of a poll has come since the last call.
    pub(crate) fn take_fired(&mut self) -> bool {
        std::mem::take(&mut self.fired)
    }

    /// Returns when a turn must be taken even if nothing wakes the claimer.
    pub(crate) fn next_at(&self, workers: usize, load: Load) -> Option<Instant> {
        let shared_at = self.last.map(|last| last.shared_at(workers, load));
        [self.due_at, shared_at].into_iter().flatten().min()
    }
}

impl LastPoll {
    fn now(at: Instant, begun: u64) -> Self {
        Self { at, chance: fastrand::f64(), begun }
    }

    /// Returns the time of the next poll. The workers of a queue share its polls.
    fn shared_at(self, workers: usize, load: Load) -> Instant {
        let most = if load.is_loaded { SHARING_LOADED_MAX } else { SHARING_MAX };
        self.at + shared_interval(load.poll, workers.min(most), self.chance)
    }

    /// Returns whether a loaded worker must poll by itself. If its slots are filled as soon as they
    /// are free, the worker receives no wakeup. So the polls of other workers do not help it, and
    /// it would serve some queues beyond their shares. Such a worker polls by itself once in each
    /// poll interval, but over all its queues no more often than it begins tasks.
    fn is_own_turn(self, now: Instant, load: Load) -> bool {
        let is_worth_it = load.begun - self.begun >= load.queues;
        load.is_loaded && is_worth_it && self.at + interval(load.poll, 1, self.chance) <= now
    }
}

/// Returns how long each of these workers waits, so that together they poll once in `poll` on
/// average. The wait has an exponential part, because otherwise workers that began or claimed
/// together would all wait long.
fn shared_interval(poll: Duration, workers: usize, chance: f64) -> Duration {
    let others = u32::try_from(workers.saturating_sub(1)).unwrap_or(u32::MAX);
    let share = (-(1.0 - chance).ln()).min(EXPONENTIAL_MAX) / EXPONENTIAL_MEAN;
    interval(poll, 1, chance) + poll.saturating_mul(others).mul_f64(share)
}

/// Returns how much later the other workers poll than the worker that waits for a due time. They
/// poll in case that worker has ended: one of them soon, and all of them together a few times a
/// second.
pub(crate) fn backup_wait(workers: usize) -> Duration {
    let others = u32::try_from(workers).unwrap_or(u32::MAX);
    BACKUP_AFTER + BACKUP_EACH.saturating_mul(others).mul_f64(fastrand::f64())
}

#[cfg(test)]
#[path = "poll_schedule_tests.rs"]
mod tests;
