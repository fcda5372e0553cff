//! Checks lanes: how many of their tasks run at once, and in which order those of a lane of one
//! begin.

use std::collections::BTreeMap;

use super::account::Account;
use super::check::History;
use super::overlap::{self, Run, runs_of};
use super::verdict::Findings;
use super::{Found, How, IfDead};

/// Checks every lane.
pub(super) fn check(history: &History<'_>, findings: &mut Findings) {
    let mut lanes: BTreeMap<&str, Vec<(u64, &Account)>> = BTreeMap::new();
    for (task, account) in history.accounts {
        if let Some(lane) = &account.lane {
            lanes.entry(&lane.name).or_default().push((*task, account));
        }
    }
    for (name, mut tasks) in lanes {
        tasks.sort_by_key(|(task, _)| *task);
        let widths = tasks.iter().filter_map(|(_, account)| account.lane.as_ref());
        let width = widths.map(|lane| lane.width).max().unwrap_or(1);
        let runs = runs_of(tasks.iter().copied());
        let what = format!("lane {name}");
        overlap::check(history, &runs, (&what, width.into()), findings);
        if width == 1 {
            turns(history, &runs, &what, findings);
            order(history, &tasks, &what, findings);
            blocks(history, &tasks, &runs, &what, findings);
        }
    }
}

/// Checks that a task keeps a lane of one from its first attempt to its last.
fn turns(history: &History<'_>, runs: &[Run<'_>], what: &str, findings: &mut Findings) {
    let mut last: BTreeMap<u64, &Run<'_>> = BTreeMap::new();
    let mut between: Option<&Run<'_>> = None;
    for run in runs {
        let Some(other) = between.replace(run).filter(|other| other.task != run.task) else {
            last.insert(run.task, run);
            continue;
        };
        if let Some(before) = last.insert(run.task, run) {
            let (since, until) = (before.execution.begun, run.execution.begun);
            let came_back = run.account.requeues.possible().any(|requeue| requeue.asked <= until);
            let is_clear = !came_back
                && !history.acts.rolled_back(since, until)
                && ![before.execution, run.execution, other.execution]
                    .iter()
                    .any(|run| history.may_begin_late(run));
            if is_clear {
                let task = other.task;
                findings.add(task, format!("began between attempts of {} in {what}", run.task));
            }
        }
    }
}

/// Checks that tasks began in the order in which they were submitted, unless they had to wait for
/// something else before.
fn order(history: &History<'_>, tasks: &[(u64, &Account)], what: &str, findings: &mut Findings) {
    let starts = tasks.iter().filter_map(|(task, account)| {
        let (invoked, run) = (account.invoked?, account.executions.first()?);
        let is_simple = invoked.delay_ms == 0
            && account.after.is_empty()
            && account.requeues.possible().next().is_none()
            && !history.may_begin_late(run);
        is_simple.then_some((*task, invoked.at, account.acked_at(), run.begun))
    });
    let starts: Vec<_> = starts.collect();
    let mut acked: Vec<_> = starts
        .iter()
        .filter_map(|(task, _, acked, begun)| Some(((*acked)?, *begun, *task)))
        .collect();
    acked.sort_unstable();
    let mut invoked = starts;
    invoked.sort_by_key(|(task, at, ..)| (*at, *task));
    let (mut earlier, mut latest) = (acked.into_iter().peekable(), None);
    for (task, at, _, begun) in invoked {
        while let Some((_, other_begun, other)) = earlier.next_if(|(acked, ..)| *acked < at) {
            latest = latest.max(Some((other_begun, other)));
        }
        let Some((other_begun, other)) = latest else { continue };
        if other_begun > begun && !history.acts.rolled_back(0, other_begun) {
            findings.add(task, format!("began before {other}, which came first in {what}"));
        }
    }
}

/// Checks that no task began after one that died and blocks the lane.
fn blocks(
    history: &History<'_>,
    tasks: &[(u64, &Account)],
    runs: &[Run<'_>],
    what: &str,
    findings: &mut Findings,
) {
    for (dead, account) in tasks {
        let blocks = account.lane.as_ref().is_some_and(|lane| lane.if_dead == IfDead::Block);
        let is_dead = account.found.is_some_and(|(state, _)| state == Found::Dead);
        let last = account.executions.last().filter(|run| run.ended_as(How::Failed));
        let (true, true, Some(last)) = (blocks, is_dead, last) else { continue };
        let mut moved = account.requeues.possible().chain(account.deletes.possible());
        let after = runs.iter().find(|run| {
            run.execution.begun > last.begun
                && run.task != *dead
                && !history.may_begin_late(run.execution)
                && !history.acts.rolled_back(last.begun, run.execution.begun)
        });
        if let (None, Some(run)) = (moved.next(), after) {
            findings.add(run.task, format!("began though {dead} is dead and blocks {what}"));
        }
    }
}
