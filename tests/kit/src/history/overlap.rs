//! Which executions of several tasks were under way at the same time.

use super::account::{Account, Execution};
use super::check::History;
use super::verdict::Findings;

/// An execution and its task.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) task: u64,
    pub(super) account: &'a Account,
    pub(super) execution: &'a Execution,
}

/// Returns all executions of these tasks, by the times at which they began. Those that began at
/// the same time are in the order of their claims, which the fences show.
pub(super) fn runs_of<'a>(tasks: impl IntoIterator<Item = (u64, &'a Account)>) -> Vec<Run<'a>> {
    let each = tasks.into_iter().flat_map(|(task, account)| {
        account.executions.iter().map(move |execution| Run { task, account, execution })
    });
    let mut runs: Vec<Run<'a>> = each.collect();
    runs.sort_by_key(|run| (run.execution.begun, run.execution.fence, run.task));
    runs
}

/// Checks that no more than this many of the executions were under way at once. An execution that
/// another worker may have taken over does not count.
pub(super) fn check(
    history: &History<'_>,
    runs: &[Run<'_>],
    (what, most): (&str, usize),
    findings: &mut Findings,
) {
    let mut under_way: Vec<Run<'_>> = Vec::new();
    for run in runs {
        let begun = run.execution.begun;
        under_way.retain(|other| until(history, other.execution) > begun && other.task != run.task);
        let kept = |other: &&Run<'_>| {
            !history.may_be_taken_over(other.execution, begun)
                && !history.acts.rolled_back(other.execution.begun, begun)
        };
        if under_way.len() >= most && !history.may_begin_late(run.execution) {
            let others: Vec<u64> = under_way.iter().filter(kept).map(|other| other.task).collect();
            if others.len() >= most {
                findings.add(run.task, format!("began while {others:?} ran in {what}"));
            }
        }
        under_way.push(*run);
    }
}

/// Returns when the execution ended, or its process died.
fn until(history: &History<'_>, run: &Execution) -> u64 {
    let killed = || history.acts.killed_since(run.pid, run.begun);
    run.end.map(|(at, _)| at).or_else(killed).unwrap_or(u64::MAX)
}
