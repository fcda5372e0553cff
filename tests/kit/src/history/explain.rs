//! The reason of a repeated execution: [`Why`].

use std::time::Duration;

use super::account::{Account, Execution};
use super::acts::{Acts, LATE_BEGIN, ns};
use super::{How, Rules};

/// A task may begin this long after its claim: the reply to the claim waits for the reports that
/// were sent with it, and one of those may get no reply.
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
    /// The machine stalled for so long.
    Stalled,
    /// An operator requeued it.
    Requeued,
    /// Redis came back without its last acknowledged writes.
    RolledBack,
    /// None of these reasons: the queue is wrong.
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

    /// Its name in the table.
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

/// The reason why this execution did not finish the task: what happened until that instant.
pub(super) fn explain(
    account: &Account,
    previous: &Execution,
    until: u64,
    acts: &Acts,
    rules: &Rules,
) -> Why {
    // It began late if it was claimed before the next one and its worker was then hindered.
    let late = previous.begun > until;
    let since = if late { until.saturating_sub(ns(LATE_BEGIN)) } else { previous.begun };
    if account.requeues.possible().any(|requeue| (since..=until).contains(&requeue.asked)) {
        return Why::Requeued;
    }
    if previous.end.is_some_and(|(ended, how)| how == How::Failed && ended <= until) {
        return Why::Failure;
    }
    // Only until its report is delivered does the queue hold the task as running.
    let held = until.min(acts.held_until(previous));
    if acts.killed.get(&previous.pid).is_some_and(|at| (since..=held).contains(at)) {
        return Why::Killed;
    }
    if acts.left.get(&previous.pid).is_some_and(|span| span.meets(since, held)) {
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
