//! Decides when a worker polls a queue, that is, claims from it without a wakeup: [`Polls`].

use std::time::Duration;

use optimus_core::interval;
use tokio::time::Instant;

/// A worker that waits for a due time claims within this time after it, unless it is gone.
const BACKUP_AFTER: Duration = Duration::from_millis(250);
const BACKUP_EACH: Duration = Duration::from_millis(100);
/// However many workers share the polls, each counts at most this many: the others may be ending,
/// or their runtimes blocked.
const SHARING_MAX: usize = 60;
/// The same for a loaded worker, which may receive no wakeup.
const SHARING_LOADED_MAX: usize = 12;
/// The exponential part of a wait is cut at this value, which leaves it a mean of 1 − e⁻².
const EXPONENTIAL_MAX: f64 = 2.0;
const EXPONENTIAL_MEAN: f64 = 0.864_664_716_763_387_3;

/// The polls of one queue.
#[derive(Debug, Default)]
pub(crate) struct Polls {
    /// When a task is due in the queue, by the answer to the last claim.
    pub(crate) due_at: Option<Instant>,
    /// The last poll, from which the wait for the next one counts.
    last: Option<LastPoll>,
    /// The time of a poll has come, and `take_fired` was not called since.
    fired: bool,
}

#[derive(Debug, Clone, Copy)]
struct LastPoll {
    at: Instant,
    /// In \[0, 1): where in its time span the next poll is.
    chance: f64,
    /// [`Load::begun`] at that time.
    begun: u64,
}

/// What a worker does between its polls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// How often the workers of a queue poll it together.
    pub(crate) poll: Duration,
    /// More than half of its slots are busy.
    pub(crate) is_loaded: bool,
    /// How many tasks it was granted so far.
    pub(crate) begun: u64,
    /// How many queues it serves.
    pub(crate) queues: u64,
}

impl Polls {
    /// Whether it is time for a poll. The wait for the next one counts from now.
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

    /// A claim was answered, which counts as a poll.
    pub(crate) fn polled(&mut self, now: Instant, begun: u64) {
        self.last = Some(LastPoll::now(now, begun));
    }

    /// Whether the time of a poll has come since the last call.
    pub(crate) fn take_fired(&mut self) -> bool {
        std::mem::take(&mut self.fired)
    }

    /// When a turn must be taken, even if nothing wakes the claimer.
    pub(crate) fn next_at(&self, workers: usize, load: Load) -> Option<Instant> {
        let shared_at = self.last.map(|last| last.shared_at(workers, load));
        [self.due_at, shared_at].into_iter().flatten().min()
    }
}

impl LastPoll {
    fn now(at: Instant, begun: u64) -> Self {
        Self { at, chance: fastrand::f64(), begun }
    }

    /// When the next poll is: the workers of a queue share its polls.
    fn shared_at(self, workers: usize, load: Load) -> Instant {
        let most = if load.is_loaded { SHARING_LOADED_MAX } else { SHARING_MAX };
        self.at + shared_interval(load.poll, workers.min(most), self.chance)
    }

    /// A loaded worker whose slots are filled as soon as they are free receives no wakeup, so the
    /// polls of others do not help it, and it would serve some queues beyond their shares. It polls
    /// by itself each poll interval, but over all its queues no more often than it begins tasks.
    fn is_own_turn(self, now: Instant, load: Load) -> bool {
        let is_worth_it = load.begun - self.begun >= load.queues;
        load.is_loaded && is_worth_it && self.at + interval(load.poll, 1, self.chance) <= now
    }
}

/// How long each of these workers waits, so that together they poll once in `poll` on average. The
/// share of the other workers is exponential. Otherwise workers that began or claimed together
/// would all wait for long.
fn shared_interval(poll: Duration, workers: usize, chance: f64) -> Duration {
    let others = u32::try_from(workers.saturating_sub(1)).unwrap_or(u32::MAX);
    let share = (-(1.0 - chance).ln()).min(EXPONENTIAL_MAX) / EXPONENTIAL_MEAN;
    interval(poll, 1, chance) + poll.saturating_mul(others).mul_f64(share)
}

/// How much later each other worker polls than the worker that waits for a due time, in case that
/// worker is gone: one of them soon, and all of them together a few times a second.
pub(crate) fn backup_wait(workers: usize) -> Duration {
    let others = u32::try_from(workers).unwrap_or(u32::MAX);
    BACKUP_AFTER + BACKUP_EACH.saturating_mul(others).mul_f64(fastrand::f64())
}

#[cfg(test)]
#[path = "polls_tests.rs"]
mod tests;
