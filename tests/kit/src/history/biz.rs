//! Checks that at most one of all tasks with one biz id is alive.

use std::collections::{HashMap, HashSet};

use super::account::{Account, Answer};
use super::acts::Acts;
use super::verdict::Findings;
use super::{Found, How};

/// A task that was admitted under a biz id, and when it was certainly alive.
struct Admitted {
    task: u64,
    invoked: u64,
    acked: u64,
    alive_until: u64,
}

/// Checks the admissions under every biz id.
pub(super) fn check(accounts: &HashMap<u64, Account>, acts: &Acts, findings: &mut Findings) {
    let mut by_biz: HashMap<u64, Vec<(u64, &Account)>> = HashMap::new();
    for (task, account) in accounts {
        if let Some(biz) = account.invoked.and_then(|invoked| invoked.biz) {
            by_biz.entry(biz).or_default().push((*task, account));
        }
    }
    for (biz, tasks) in by_biz {
        one_alive(biz, &tasks, acts, findings);
        known_owners(biz, &tasks, acts, findings);
    }
}

fn one_alive(biz: u64, tasks: &[(u64, &Account)], acts: &Acts, findings: &mut Findings) {
    let mut admitted: Vec<Admitted> =
        tasks.iter().filter_map(|(task, account)| admission(*task, account)).collect();
    admitted.sort_by_key(|admitted| admitted.acked);
    for (at, first) in admitted.iter().enumerate() {
        let second = admitted[at + 1..]
            .iter()
            .find(|second| second.invoked > first.acked && second.acked < first.alive_until);
        let Some(second) = second else { continue };
        if !acts.rolled_back(first.invoked, second.acked) {
            let (first, second) = (first.task, second.task);
            findings.add(second, format!("was admitted under biz id {biz}, which {first} has"));
        }
    }
}

fn admission(task: u64, account: &Account) -> Option<Admitted> {
    let (invoked, acked) = (account.invoked?.at, account.acked_at()?);
    let done = account.executions.iter().filter(|run| run.ended_as(How::Ok));
    let done = done.filter_map(|run| run.end).map(|(at, _)| at).min();
    // A dead task keeps its biz id. A task in another final state may have ended at any time.
    let keeps = account.requeues.possible().next().is_none()
        && account.found.is_some_and(|(state, _)| state == Found::Dead);
    // The biz id of a cancelled or deleted task became free, even if a requeue took it again later.
    let until = done.unwrap_or(if keeps { u64::MAX } else { acked });
    let may_be_free = account.cancels.possible().chain(account.deletes.possible()).next().is_some();
    let alive_until = if may_be_free { acked } else { until };
    Some(Admitted { task, invoked, acked, alive_until })
}

/// Checks that a duplicate names an owner that exists and has the biz id.
fn known_owners(biz: u64, tasks: &[(u64, &Account)], acts: &Acts, findings: &mut Findings) {
    let mut known: HashSet<&str> = tasks.iter().filter_map(|(_, task)| task.acked_id()).collect();
    known.extend(tasks.iter().flat_map(|(_, task)| &task.executions).map(|run| run.id.as_str()));
    // A submit whose client received no answer may own the biz id, and may never have run.
    let silent = |account: &Account| !matches!(account.answer, Some((_, Answer::Acked { .. })));
    let may_be_silent = tasks.iter().any(|(_, account)| {
        silent(account) && !matches!(account.answer, Some((_, Answer::Duplicate { .. })))
    });
    for (task, account) in tasks {
        let Some((at, Answer::Duplicate { owner })) = &account.answer else { continue };
        let asked = account.invoked.map_or(*at, |invoked| invoked.at);
        if !known.contains(owner.as_str()) && !may_be_silent && !acts.rolled_back(asked, *at) {
            findings.add(*task, format!("is a duplicate of {owner}, which lacks biz id {biz}"));
        }
    }
}
