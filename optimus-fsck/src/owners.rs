//! Checks owners: workers own tasks, tasks own biz ids, and clients own ledgers. Both directions
//! must agree.

use std::collections::{BTreeMap, BTreeSet};

use optimus_core::{TaskRecord, Token};

use super::view::{LAST_CLAIM, View};
use crate::{remedy::Remedy, violation::Wrong};

const SLOTS: u64 = 16;
/// `needs` of a queue in which tasks run together.
const NEEDS_OF_GATHER: u64 = 6;

pub(super) fn check(view: &View<'_>, wrong: &mut Wrong) {
    check_workers(view, wrong);
    check_tokens(view, wrong);
    check_marks(view, wrong);
    check_ledgers(view, wrong);
}

fn check_workers(view: &View<'_>, wrong: &mut Wrong) {
    let registered = view.pairs("workers");
    for worker in registered.keys() {
        if view.pairs(&format!("worker:{worker}")).is_empty() {
            wrong.add(
                &format!("worker:{worker}"),
                format!("the worker {worker} has no description"),
            );
        }
    }
    for kind in ["worker:", "working:"] {
        for worker in view.owners(kind).filter(|worker| !registered.contains_key(*worker)) {
            wrong.add_with(
                Remedy::Owner,
                &format!("{kind}{worker}"),
                format!("{kind}{worker} belongs to a worker that is not registered"),
            );
        }
    }
}

/// Checks that each claim has its own fence. The tasks of one claim have the same fence, and no
/// other worker has it.
fn check_tokens(view: &View<'_>, wrong: &mut Wrong) {
    let mut holders: BTreeMap<u64, (&str, u64)> = BTreeMap::new();
    let gathered = gathered(view);
    for worker in view.owners("working:") {
        let held = view.pairs(&format!("working:{worker}"));
        let padded = held.get(LAST_CLAIM).map(String::as_str).unwrap_or_default();
        let Some(last) = Token::parse(padded.trim_end().trim_end_matches(" alone"))
            .filter(|_| padded.len() > 64)
        else {
            wrong.add(
                &format!("working:{worker}"),
                format!("the last claim of {worker} cannot be read"),
            );
            continue;
        };
        for (id, token) in view.held(worker) {
            let Some(token) = Token::parse(&token) else {
                wrong.of_task(
                    &format!("working:{worker}"),
                    format!("{worker} holds {id} under {token:?}"),
                );
                continue;
            };
            let first = *holders.entry(token.fence).or_insert((worker, token.seq));
            if first != (worker, token.seq) {
                wrong.of_task(
                    &format!("working:{worker}"),
                    format!("{worker} holds {id} under a fence of {}", first.0),
                );
            }
            // The tasks that a run collects have a later fence than the claim.
            let latest = if gathered.contains(&id) { u64::MAX } else { last.fence };
            if token.fence > latest.min(view.meta("fence")) {
                wrong.of_task(
                    &format!("working:{worker}"),
                    format!("{worker} holds {id} under a fence that was not given yet"),
                );
            }
        }
    }
}

/// Returns the tasks that run together with others.
fn gathered(view: &View<'_>) -> BTreeSet<String> {
    if view.meta("needs") < NEEDS_OF_GATHER {
        return BTreeSet::new();
    }
    let records = view.bytes("tasks").into_iter();
    let gathers = |record| TaskRecord::decode(record).is_ok_and(|r: TaskRecord| r.gather.is_some());
    records.filter_map(|(id, record)| gathers(record).then_some(id)).collect()
}

/// Checks the marks of biz ids. A live mark names a task that has exactly this biz id. Every task
/// with a biz id that is not cancelled has its mark.
fn check_marks(view: &View<'_>, wrong: &mut Wrong) {
    let mut of_tasks: BTreeMap<String, String> = BTreeMap::new();
    let cancelled = view.pairs("cancelled");
    for (id, record) in view.bytes("tasks") {
        match TaskRecord::decode(record) {
            Ok(TaskRecord { task, biz_id: Some(biz), .. }) if !cancelled.contains_key(&id) => {
                if let Some(other) = of_tasks.insert(format!("{task}:{biz}"), id.clone()) {
                    wrong.of_task("tasks", format!("{id} and {other} are both {task}:{biz}"));
                }
            }
            Ok(_) => {}
            Err(problem) => wrong.of_task_with(
                Remedy::Record,
                "tasks",
                format!("the record of {id}: {problem}"),
            ),
        }
    }
    let mut live = BTreeSet::new();
    for name in view.owners("biz:") {
        let mark = view.value(&format!("biz:{name}")).unwrap_or_default();
        let owner = mark.split(':').next().unwrap_or_default().to_owned();
        match mark.rsplit(':').next() {
            Some("L") if of_tasks.get(name) == Some(&owner) => drop(live.insert(name.to_owned())),
            Some("D") if of_tasks.get(name) != Some(&owner) => {}
            _ => wrong.add_with(
                Remedy::Biz,
                &format!("biz:{name}"),
                match of_tasks.get(name) {
                    Some(id) => format!("biz:{name} is {mark:?}, and {id} has that biz id"),
                    None => format!("biz:{name} is {mark:?}, and no task has that biz id"),
                },
            ),
        }
    }
    for (name, id) in of_tasks.iter().filter(|(name, _)| !live.contains(*name)) {
        wrong.of_task_with(
            Remedy::NoBiz,
            &format!("biz:{name}"),
            format!("{id} is {name} and has no mark"),
        );
    }
}

fn check_ledgers(view: &View<'_>, wrong: &mut Wrong) {
    let kept = view.pairs("ledgers");
    for client in view.owners("ledger:") {
        // A relay of a database never asks to keep its ledger, so that it is never purged.
        if !kept.contains_key(client) && !client.starts_with("outbox-") {
            wrong.add_with(
                Remedy::Ledger,
                &format!("ledger:{client}"),
                format!(
                    "the ledger of {client} will not be purged, unless the client submits again"
                ),
            );
        }
        for (field, stored) in view.pairs(&format!("ledger:{client}")) {
            // The mark of a relay's ledger shows that Redis has not lost it.
            if field == "mark" && client.starts_with("outbox-") {
                continue;
            }
            let slot = field.strip_prefix("lost").unwrap_or(&field);
            let is_gap = slot != field;
            let mut numbers: Vec<_> = stored.split(' ').map(str::parse::<u64>).collect();
            if !is_gap {
                // More words may follow the number of an answer.
                numbers.truncate(1);
            }
            let fits = |number: &Result<u64, _>| match number {
                Ok(0) => is_gap,
                Ok(number) => (number % SLOTS).to_string() == slot,
                Err(_) => false,
            };
            if !numbers.iter().all(fits) || is_gap != numbers.len().is_multiple_of(2) {
                wrong.add(
                    &format!("ledger:{client}"),
                    format!("slot {field} of {client} has the answer {stored:?}"),
                );
            }
        }
    }
    for client in kept.keys().filter(|client| view.pairs(&format!("ledger:{client}")).is_empty()) {
        wrong.add_with(Remedy::Ledger, "ledgers", format!("{client} is kept and has no ledger"));
    }
}
