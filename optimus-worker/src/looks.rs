//! When a worker looks at a queue though nothing woke it: [`Looks`].

use std::time::Duration;

use optimus_core::interval;
use tokio::time::Instant;

/// A worker that waits for a due time claims by then, unless it is gone.
const BACKUP_AFTER: Duration = Duration::from_millis(250);
const BACKUP_EACH: Duration = Duration::from_millis(100);
/// However many workers share the looks, each does as if they were so many at most: the others may
/// be ending, or their runtimes blocked.
const POLLS_APART_MAX: usize = 60;
/// The same for a loaded worker, which may hear no bell.
const LOADED_APART_MAX: usize = 12;
/// The exponential part of a wait is cut there, which leaves it a mean of 1 − e⁻².
const SHARES_APART_MAX: f64 = 2.0;
const SHARES_APART_MEAN: f64 = 0.864_664_716_763_387_3;

/// Of one queue.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// When a task is due there, as the last claim was told.
    pub(crate) due_at: Option<Instant>,
    /// Since when the next look is counted.
    last: Option<Last>,
    /// A time has come, and nothing was asked since.
    fired: bool,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    at: Instant,
    /// In \[0, 1): where in its span of time the next look is.
    chance: f64,
    /// [`Load::begun`] at that time.
    begun: u64,
}

/// What a worker does while it looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// How often the workers of a queue look at it together.
    pub(crate) poll: Duration,
    /// More than half of its slots are busy.
    pub(crate) is_loaded: bool,
    /// How many tasks it was granted so far.
    pub(crate) begun: u64,
    /// How many queues it serves.
    pub(crate) queues: u64,
}

impl Looks {
    /// Whether it is time for a look. The next one is counted from then.
    pub(crate) fn come(&mut self, now: Instant, workers: usize, load: Load) -> bool {
        let last = *self.last.get_or_insert_with(|| Last::now(now, load.begun));
        let is_due = self.due_at.is_some_and(|at| at <= now);
        if !(is_due || last.shared_at(workers, load) <= now || last.is_own_turn(now, load)) {
            return false;
        }
        self.due_at = self.due_at.filter(|at| *at > now);
        self.last = Some(Last::now(now, load.begun));
        self.fired = true;
        true
    }

    /// A claim was answered, which is a look.
    pub(crate) fn looked(&mut self, now: Instant, begun: u64) {
        self.last = Some(Last::now(now, begun));
    }

    /// Whether a time has come since this was last asked.
    pub(crate) fn take_fired(&mut self) -> bool {
        std::mem::take(&mut self.fired)
    }

    /// When a turn is wanted that nothing else may bring about.
    pub(crate) fn next_at(&self, workers: usize, load: Load) -> Option<Instant> {
        let shared_at = self.last.map(|last| last.shared_at(workers, load));
        [self.due_at, shared_at].into_iter().flatten().min()
    }
}

impl Last {
    fn now(at: Instant, begun: u64) -> Self {
        Self { at, chance: fastrand::f64(), begun }
    }

    /// The workers of a queue share its looks.
    fn shared_at(self, workers: usize, load: Load) -> Instant {
        let most = if load.is_loaded { LOADED_APART_MAX } else { POLLS_APART_MAX };
        self.at + shared_interval(load.poll, workers.min(most), self.chance)
    }

    /// A loaded worker whose slots are filled as soon as they are free hears no bell, so the looks
    /// of others tell it nothing, and it would serve some queues beyond their shares. It looks each
    /// poll by itself, but no more often than it begins tasks, over all its queues.
    fn is_own_turn(self, now: Instant, load: Load) -> bool {
        let is_worth_it = load.begun - self.begun >= load.queues;
        load.is_loaded && is_worth_it && self.at + interval(load.poll, 1, self.chance) <= now
    }
}

/// How long each of so many workers waits, so that together they poll once in `poll` on average.
/// The share of the other workers is exponential. Otherwise workers that began or claimed together
/// would all wait for long.
fn shared_interval(poll: Duration, workers: usize, chance: f64) -> Duration {
    let others = u32::try_from(workers.saturating_sub(1)).unwrap_or(u32::MAX);
    let share = (-(1.0 - chance).ln()).min(SHARES_APART_MAX) / SHARES_APART_MEAN;
    interval(poll, 1, chance) + poll.saturating_mul(others).mul_f64(share)
}

/// How much later than the worker that waits for a due time each of so many others looks, in case
/// that one is gone: one of them soon, and all of them together a few times a second.
pub(crate) fn backup_wait(workers: usize) -> Duration {
    let others = u32::try_from(workers).unwrap_or(u32::MAX);
    BACKUP_AFTER + BACKUP_EACH.saturating_mul(others).mul_f64(fastrand::f64())
}

#[cfg(test)]
#[path = "looks_tests.rs"]
mod tests;
