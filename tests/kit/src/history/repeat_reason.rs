//! The reason of a repeated execution: [`Why`].

use std::time::Duration;

use super::account::{Account, Execution};
use super::acts::{Acts, LATE_BEGIN, ns};
use super::{How, Rules};

/// A task may begin this long after its claim. The reply to the claim waits for the replies to the
/// reports that were sent with it, and one of those may be lost.
const TAKEN_IN_WITHIN: Duration = Duration::from_secs(10);

/// The reason of a second execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The previous attempt failed, as its handler recorded.
    Failure,
    /// The worker of the previous attempt was asked to end, and gave the task back.
    GivenBack,
    /// The worker of the previous attempt was killed.
    Killed,
    /// The worker of the previous attempt was stopped for so long that its lease may have run out.
    Frozen,
    /// Redis was unavailable for so long that a lease may have run out.
    Outage,
    /// The machine stalled for so long that a lease may have run out.
    Stalled,
    /// An operator requeued the task.
    Requeued,
    /// Redis restarted without its last acknowledged writes.
    RolledBack,
    /// None of these reasons applies, so the queue has a bug.
    Unexplained,
}

impl Why {
    /// All reasons, in the order of the table.
    pub const ALL: [Self; 9] = [
        Self::Failure,
        Self::GivenBack,
        Self::Killed,
        Self::Frozen,
        Self::Outage,
        Self::Stalled,
        Self::Requeued,
        Self::RolledBack,
        Self::Unexplained,
    ];

    /// Returns the name of the reason in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Failure => "after a failure",
            Self::GivenBack => "given back",
            Self::Killed => "worker killed",
            Self::Frozen => "worker frozen",
            Self::Outage => "lease over in an outage",
            Self::Stalled => "machine stalled",
            Self::Requeued => "requeued by an operator",
            Self::RolledBack => "Redis rolled back",
            Self::Unexplained => "unexplained",
        }
    }
}

/// Returns the reason why this execution did not finish the task. Only events before that instant
/// count.
pub(super) fn explain(
    account: &Account,
    previous: &Execution,
    until: u64,
    acts: &Acts,
    rules: &Rules,
) -> Why {
    // The execution began late if it was claimed before the next one and a fault then delayed its
    // worker.
    let late = previous.begun > until;
    let since = if late { until.saturating_sub(ns(LATE_BEGIN)) } else { previous.begun };
    if account.requeues.possible().any(|requeue| (since..=until).contains(&requeue.asked)) {
        return Why::Requeued;
    }
    if previous.end.is_some_and(|(ended, how)| how == How::Failed && ended <= until) {
        return Why::Failure;
    }
    // The queue holds the task as running only until its report is delivered.
    let held = until.min(acts.held_until(previous));
    if acts.killed_since(previous.pid, since).is_some_and(|at| at <= held) {
        return Why::Killed;
    }
    if acts.left(previous.pid, since, held) {
        return Why::GivenBack;
    }
    if let Some(why) = acts.kept(previous.pid, since, held, rules.lease) {
        return why;
    }
    if acts.rolled_back(since.saturating_sub(ns(TAKEN_IN_WITHIN)), until) {
        return Why::RolledBack;
    }
    Why::Unexplained
}
