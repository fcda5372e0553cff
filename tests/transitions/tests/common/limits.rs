//! Limits of tasks, and tasks with limits.

use optimus_core::{Gate, Limit, Rate, Submission, TaskLimit};

use crate::{
    bench::Bench,
    jobs::{job, ready_at},
};

/// A gate that tasks name.
pub(crate) fn named(name: &str) -> Gate {
    Gate::Named(name.into())
}

/// At most this many tasks of a named limit are Working at once.
pub(crate) fn at_most(name: &str, max_working: u32) -> TaskLimit {
    TaskLimit { gate: named(name), limit: Limit::new().max_working(max_working) }
}

/// At most this many tasks of a named limit start in a second.
pub(crate) fn a_second(name: &str, tasks: u32, burst: u32) -> TaskLimit {
    TaskLimit { gate: named(name), limit: Limit::new().rate(Rate::per_second(tasks)).burst(burst) }
}

/// At most one task of a named limit starts in ten seconds.
pub(crate) fn one_in_10_s(name: &str) -> TaskLimit {
    TaskLimit { gate: named(name), limit: Limit::new().rate(Rate::per_minute(6)) }
}

impl Bench {
    /// Submits jobs with these limits. The positions of their ids are those of the calls.
    pub(crate) async fn add_limited(
        &self,
        at: u64,
        count: usize,
        limits: &[TaskLimit],
    ) -> Vec<Submission> {
        let mut tasks: Vec<Submission> =
            (0..count).map(|_| ready_at(at, job()).limited_by(limits.to_vec())).collect();
        // Tasks that are ready since the same ms start in the order of their ids.
        tasks.sort_by_key(|task| task.id().stored());
        self.submit(at, &tasks).await;
        tasks
    }

    /// Fails unless fsck finds nothing.
    pub(crate) async fn assert_sound(&self) {
        assert_eq!(self.fsck_of_tasks().await, [""; 0]);
    }

    /// Fails if a limit has left more than the times of tokens and the mark in `waiters`.
    pub(crate) async fn assert_no_limits_left(&self) {
        let kinds = ["wait:", "waits", "gate", "busy:", "permits", "loans"];
        let left: Vec<String> = self.names().await;
        let left = left.iter().filter(|name| kinds.iter().any(|kind| name.starts_with(kind)));
        assert_eq!(left.collect::<Vec<_>>(), [""; 0]);
        self.assert_sound().await;
    }
}
