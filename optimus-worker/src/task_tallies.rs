//! Counts what ended in each queue, by task, until it is added to the statistics in Redis:
//! [`TaskTallies`].

use std::{
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use optimus_core::{OTHER_TASKS, TaskId, TaskStats};

use crate::{
    attempts::{Attempt, Ended},
    outcome_log::Outcome,
    shared::Shared,
};

/// The most tasks of a queue that are counted by their names. The others count together.
const TASKS_MAX: usize = 64;

/// What ended in each served queue since it was last added.
#[derive(Debug)]
pub(crate) struct TaskTallies(Box<[Mutex<Counting>]>);

/// The counts of one queue.
#[derive(Debug, Default)]
struct Counting {
    /// What is not taken yet.
    open: Vec<Counted>,
    /// What was taken since the start of the worker, for metrics.
    #[cfg(feature = "metrics")]
    taken: Vec<Counted>,
}

/// A task and its counts.
pub(crate) type Counted = (&'static str, TaskStats);

impl TaskTallies {
    pub(crate) fn new(queues: usize) -> Self {
        Self((0..queues).map(|_| Mutex::default()).collect())
    }

    fn of(&self, place: usize) -> MutexGuard<'_, Counting> {
        self.0[place].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an attempt of this worker that has ended. How long a lost one ran does not count: its
    /// process was stopped.
    pub(crate) fn count(
        &self,
        shared: &Shared,
        attempt: &Attempt,
        outcome: &Outcome,
        ended: &Ended,
    ) {
        let Some(place) = shared.queues.place(attempt.lease.id.queue()) else { return };
        self.add(place, attempt.facts.task, outcome, |stats| {
            if ended.outcome.is_loss() {
                stats.losses += 1;
            } else {
                stats.record(Some(ended.run), attempt.facts.wait);
            }
        });
    }

    /// Counts a task that ended without an attempt of this worker. Unless the worker serves its
    /// queue, the statistics of the queue lack it.
    pub(crate) fn count_without_attempt(
        &self,
        shared: &Shared,
        (id, task): (&TaskId, Option<&str>),
        outcome: &Outcome,
        losses: u64,
    ) {
        let Some(place) = shared.queues.place(id.queue()) else { return };
        let known = task.and_then(|task| shared.registry.get(task));
        let name = known.map_or(OTHER_TASKS, |(definition, _)| definition.name());
        self.add(place, name, outcome, |stats| stats.losses += losses);
    }

    fn add(
        &self,
        place: usize,
        task: &'static str,
        outcome: &Outcome,
        more: impl FnOnce(&mut TaskStats),
    ) {
        let count: fn(&mut TaskStats) -> &mut u64 = match outcome {
            Outcome::Success(_) => |stats| &mut stats.successes,
            Outcome::Retry { .. } => |stats| &mut stats.retries,
            Outcome::Dead(_) => |stats| &mut stats.deaths,
            Outcome::Cancelled(_) => |stats| &mut stats.cancels,
            Outcome::Snoozed { .. } => |stats| &mut stats.snoozes,
            // These attempts do not count, or nobody knows whether they do.
            Outcome::GivenBack | Outcome::Stale | Outcome::Unanswered => return,
        };
        let mut counting = self.of(place);
        let stats = stats_of(&mut counting.open, task);
        *count(stats) += 1;
        more(stats);
    }

    /// Returns what was counted in a queue since the last call, by the names of the tasks.
    pub(crate) fn take(&self, place: usize) -> Vec<Counted> {
        let mut counting = self.of(place);
        let mut taken = mem::take(&mut counting.open);
        #[cfg(feature = "metrics")]
        for (task, stats) in &taken {
            stats_of(&mut counting.taken, task).add(stats);
        }
        drop(counting);
        taken.sort_by_key(|(name, _)| *name);
        taken
    }

    /// Returns what was counted in a queue since the start of the worker, by the names of tasks.
    #[cfg(feature = "metrics")]
    pub(crate) fn all(&self, place: usize) -> Vec<Counted> {
        let counting = self.of(place);
        let mut all = counting.taken.clone();
        for (task, stats) in &counting.open {
            stats_of(&mut all, task).add(stats);
        }
        drop(counting);
        all.sort_by_key(|(name, _)| *name);
        all
    }
}

/// Returns the counts of a task, which are those of the others if there are too many.
fn stats_of<'a>(counted: &'a mut Vec<Counted>, task: &'static str) -> &'a mut TaskStats {
    let known = counted.iter().position(|(name, _)| *name == task);
    let at = known.unwrap_or_else(|| {
        let name = if counted.len() < TASKS_MAX { task } else { OTHER_TASKS };
        let other = counted.iter().position(|(known, _)| *known == name);
        other.unwrap_or_else(|| {
            counted.push((name, TaskStats::default()));
            counted.len() - 1
        })
    });
    &mut counted[at].1
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use tracing::Level;

    #[test]
    fn the_tasks_beyond_64_are_counted_together_and_each_count_is_taken_once() {
        let tallies = TaskTallies::new(2);
        let success = Outcome::Success(Level::DEBUG);
        for number in 0..100 {
            let name: &'static str = Box::leak(format!("task-{number}").into_boxed_str());
            for _ in 0..2 {
                tallies.add(1, name, &success, |stats| stats.record(Some(Duration::ZERO), None));
            }
        }
        tallies.add(1, "task-0", &Outcome::GivenBack, |_| {});
        let taken = tallies.take(1);
        assert_eq!(taken.len(), 65);
        let other = &taken.iter().find(|(name, _)| *name == OTHER_TASKS).unwrap().1;
        assert_eq!((other.successes, other.run.count()), (72, 72));
        assert!(tallies.take(1).is_empty() && tallies.take(0).is_empty());
    }

    #[test]
    #[cfg(feature = "metrics")]
    fn all_counts_since_the_start_never_shrink_and_have_at_most_65_names() {
        let tallies = TaskTallies::new(1);
        let success = Outcome::Success(Level::DEBUG);
        for number in 0..200 {
            let name: &'static str = Box::leak(format!("task-{number}").into_boxed_str());
            tallies.add(0, name, &success, |_| {});
            let count = || tallies.all(0).iter().map(|(_, stats)| stats.successes).sum::<u64>();
            assert_eq!(count(), number + 1);
            if number % 7 == 0 {
                tallies.take(0);
                assert_eq!(count(), number + 1, "what was taken still counts");
            }
        }
        assert_eq!(tallies.all(0).len(), 65);
    }
}
