//! How much one turn of the claimer claims, and how many turns are under way at once:
//! [`TurnLimits`].

use optimus_core::broker::BATCH_MAX;

/// The most tasks that one turn claims. Redis sends 64 KB of an answer, then runs the calls that
/// have arrived, and only then sends the rest. So the answers of two larger turns arrive together,
/// and Redis and the worker wait for each other.
pub(crate) const TURN_TASKS_MAX: usize = BATCH_MAX;
/// More turns than these made no worker faster.
const TURNS_MAX: usize = 6;
/// A worker with at least twice this many slots fills them with several turns.
const BATCH_MIN: usize = 32;

/// The limits of a worker, which depend on its number of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnLimits {
    /// The most tasks that one turn claims.
    pub(crate) tasks: usize,
    /// The most turns under way at once: as many as fill the slots, and at least two, because a
    /// turn may also have only reports.
    pub(crate) turns: usize,
    /// The number of reports or idle slots for which another turn starts while others are under
    /// way. Smaller batches cost Redis more than the overlap saves.
    pub(crate) enough: usize,
}

impl TurnLimits {
    pub(crate) fn of(concurrency: usize) -> Self {
        let half = concurrency.div_ceil(2);
        let most = if half < BATCH_MIN { concurrency } else { half };
        let tasks = most.min(TURN_TASKS_MAX);
        let turns = concurrency.checked_div(tasks).unwrap_or_default().clamp(2, TURNS_MAX);
        Self { tasks, turns, enough: BATCH_MIN.max(tasks / 2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_with_few_slots_fills_them_with_one_turn_and_one_with_many_with_several() {
        let limits = |concurrency| {
            let TurnLimits { tasks, turns, enough } = TurnLimits::of(concurrency);
            (tasks, turns, enough)
        };
        assert_eq!(limits(1), (1, 2, 32));
        assert_eq!(limits(62), (62, 2, 32));
        assert_eq!(limits(64), (32, 2, 32));
        assert_eq!(limits(100), (50, 2, 32));
        assert_eq!(limits(256), (128, 2, 64));
        assert_eq!(limits(512), (128, 4, 64));
        assert_eq!(limits(4_096), (128, 6, 64));
    }

    #[test]
    fn the_turns_of_a_worker_with_many_slots_claim_no_more_than_it_has() {
        for concurrency in 64..10_000 {
            let TurnLimits { tasks, turns, .. } = TurnLimits::of(concurrency);
            assert!(tasks <= TURN_TASKS_MAX, "{concurrency}");
            assert!(tasks * turns <= concurrency + 1, "{concurrency}");
        }
    }
}
