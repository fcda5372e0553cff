//! Checks prerequisites. No task began before the tasks that it waits for had ended. Each task ran,
//! unless one of these tasks prevented that.

use super::account::{Account, Answer, Execution};
use super::check::History;
use super::verdict::Findings;
use super::{Found, How, Until};

/// Checks every task that waits for others.
pub(super) fn check(history: &History<'_>, findings: &mut Findings) {
    for (task, account) in history.accounts {
        for (other, until) in &account.after {
            if let Some(first) = history.accounts.get(other) {
                order(history, (*task, account), (*other, first), *until, findings);
            }
        }
        if !account.after.is_empty() {
            ended_for_a_reason(history, *task, account, findings);
        }
    }
}

/// Checks that a task began only after the other one had ended as it must.
fn order(
    history: &History<'_>,
    (task, account): (u64, &Account),
    (other, first): (u64, &Account),
    until: Until,
    findings: &mut Findings,
) {
    let Some(run) = account.executions.iter().min_by_key(|run| run.begun) else { return };
    // A task may give up a prerequisite that was never stored.
    let exists = first.acked_at().is_some() || !first.executions.is_empty();
    if !exists || history.acts.rolled_back(0, run.begun) {
        return;
    }
    let ended_by = |how: &[How]| {
        first.executions.iter().any(|earlier| {
            earlier.end.is_some_and(|(at, ended)| how.contains(&ended) && at <= run.begun)
        })
    };
    if ended_by(&[How::Ok]) {
        return;
    }
    if until == Until::Success {
        findings.add(task, format!("began before {other} had succeeded"));
        return;
    }
    let is_again =
        |earlier: &&Execution| earlier.begun > run.begun && !history.may_begin_late(earlier);
    let came_back = first.requeues.possible().next().is_some();
    if !came_back && first.executions.iter().any(|earlier| is_again(&earlier)) {
        findings.add(task, format!("began before {other} had ended"));
    }
}

/// Checks that a task that never began and is Dead or Cancelled had a reason.
fn ended_for_a_reason(
    history: &History<'_>,
    task: u64,
    account: &Account,
    findings: &mut Findings,
) {
    let is_over =
        account.found.is_some_and(|(state, _)| matches!(state, Found::Dead | Found::Cancelled));
    if !is_over
        || !account.executions.is_empty()
        || account.cancels.possible().next().is_some()
        || account.requeues.possible().next().is_some()
        || !history.acts.rollbacks.is_empty()
        || history.acts.clock_was_set
    {
        return;
    }
    let has_succeeded = |other: &u64| {
        history.accounts.get(other).is_some_and(|first| {
            let is_acked = matches!(first.answer, Some((_, Answer::Acked { .. })));
            let was_moved =
                first.cancels.possible().chain(first.deletes.possible()).next().is_some();
            let found = first.found.map(|(state, _)| state);
            // Otherwise the task may have given up before.
            let in_time = history.acts.give_ups.is_none_or(|since| {
                let ended = |run: &Execution| run.end.filter(|(_, how)| *how == How::Ok);
                first.executions.iter().filter_map(ended).any(|(at, _)| at < since)
            });
            is_acked && !was_moved && found == Some(Found::Success) && in_time
        })
    };
    if account.after.iter().all(|(other, _)| has_succeeded(other)) {
        findings.add(task, "did not run, and all its prerequisites have succeeded");
    }
}
