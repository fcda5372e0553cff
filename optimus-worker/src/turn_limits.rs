//! How much one turn of the claimer claims, and how many turns are under way at once:
//! [`TurnLimits`].

use optimus_core::broker::BATCH_MAX;

/// The most tasks that one turn claims. Redis sends about 64 KB of an answer, then runs the calls
/// that have arrived, and only then sends the rest. So with larger turns, the answers of two turns
/// arrive together, and Redis and the worker wait for each other.
const TURN_TASKS_MAX: usize = BATCH_MAX;
/// This many turns are enough if Redis is near.
const TURNS_NEAR: usize = 6;
/// The most turns under way at once. If Redis is far, the rate is the number of tasks under way for
/// each round trip.
const TURNS_MAX: usize = 32;
/// Smaller batches cost Redis more than the overlap saves. A worker with at least twice this many
/// slots fills them with several turns.
const BATCH_MIN: usize = 32;

/// The limits of a worker, which depend on its number of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnLimits {
    /// The most tasks that one turn claims.
    pub(crate) tasks: usize,
    /// The most turns under way at once: as many as fill the slots, and at least two, because a
    /// turn may also have only reports.
    pub(crate) turns: usize,
}

impl TurnLimits {
    pub(crate) fn of(concurrency: usize) -> Self {
        let half = concurrency.div_ceil(2);
        let most = if concurrency < 2 * BATCH_MIN { concurrency } else { half };
        let tasks = most.clamp(1, TURN_TASKS_MAX);
        Self { tasks, turns: concurrency.div_ceil(tasks).clamp(2, TURNS_MAX) }
    }

    /// Returns the number of reports or idle slots for which another turn starts while this many
    /// turns are under way.
    pub(crate) fn enough(self, under_way: usize) -> usize {
        let part = if under_way < TURNS_NEAR { self.tasks / 2 } else { self.tasks };
        part.max(BATCH_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_with_few_slots_fills_them_with_one_turn_and_one_with_many_with_several() {
        let limits = |concurrency| {
            let limits = TurnLimits::of(concurrency);
            (limits.tasks, limits.turns)
        };
        assert_eq!(limits(1), (1, 2));
        assert_eq!(limits(63), (63, 2));
        assert_eq!(limits(64), (32, 2));
        assert_eq!(limits(100), (50, 2));
        assert_eq!(limits(256), (128, 2));
        assert_eq!(limits(300), (128, 3));
        assert_eq!(limits(1_000), (128, 8));
        assert_eq!(limits(10_000), (128, 32));
    }

    #[test]
    fn later_turns_start_only_with_a_full_batch() {
        let limits = TurnLimits::of(1_000);
        assert_eq!([1, 5, 6, 7].map(|under_way| limits.enough(under_way)), [64, 64, 128, 128]);
        assert_eq!(TurnLimits::of(64).enough(1), 32);
    }
}
