//! Checks prerequisites. Each task that waits is tied to what it waits for, and every wait can end.

use std::collections::{BTreeMap, BTreeSet};

use optimus_core::{Prerequisite, TaskRecord};

use super::view::View;
use crate::{remedy::Remedy, violation::Wrong};

pub(super) fn check(view: &View<'_>, wrong: &mut Wrong) {
    let unmet = view.pairs("unmet");
    let ties = ties(view, wrong);
    if (!unmet.is_empty() || !ties.is_empty()) && view.meta("needs") < 4 {
        wrong.add_with(
            Remedy::Upgrade,
            "meta",
            "tasks wait for others, and older scripts would not release them",
        );
    }
    check_unmet(view, &unmet, &ties, wrong);
    check_ties(&unmet, &ties, wrong);
    check_outboxes(view, wrong);
    let ended = [view.pairs("dead"), view.pairs("cancelled")];
    for id in view.pairs("unmet_ended").keys() {
        if !ended.iter().any(|ended| ended.contains_key(id)) {
            wrong.of_task_with(
                Remedy::Leftover,
                "unmet_ended",
                format!("{id} is noted as ended while it waited, and it has not ended"),
            );
        }
    }
}

/// The tasks that wait, by reference.
fn ties(view: &View<'_>, wrong: &mut Wrong) -> BTreeMap<String, BTreeSet<String>> {
    let mut ties = BTreeMap::new();
    for (reference, tie) in view.pairs("ties") {
        let many = view.pairs(&format!("after:{reference}"));
        let waiters: BTreeSet<String> = if tie == "*" {
            many.into_keys().collect()
        } else {
            if !many.is_empty() {
                wrong.add(
                    &format!("after:{reference}"),
                    format!("`after:{reference}` is there, and its tie lists the tasks itself"),
                );
            }
            tie.split(' ').map(str::to_owned).collect()
        };
        // Tasks that take the result of a success get it with an effect.
        let is_met = view.value(&format!("outcome:{reference}")).is_some();
        if tie != "*"
            && is_met
            && waiters.iter().any(|waiter| waiter.as_bytes().get(22) != Some(&b'z'))
        {
            wrong.add("ties", format!("{tie} wait for {reference}, which has succeeded"));
        }
        if waiters.iter().any(|waiter| waiter.len() < 23) {
            wrong.add(
                "ties",
                format!("the tie of {reference} is {tie:?}, which is not a list of tasks"),
            );
        }
        ties.insert(reference, waiters);
    }
    for reference in view.owners("after:").filter(|reference| !ties.contains_key(*reference)) {
        wrong.add(&format!("after:{reference}"), format!("after:{reference} has no tie"));
    }
    ties
}

/// Checks the tasks that wait, against their records.
fn check_unmet(
    view: &View<'_>,
    unmet: &BTreeMap<String, String>,
    ties: &BTreeMap<String, BTreeSet<String>>,
    wrong: &mut Wrong,
) {
    let (asks, giveups) = (view.pairs("asks"), view.pairs("giveups"));
    for (name, ids) in [("asks", &asks), ("giveups", &giveups)] {
        for id in ids.keys().filter(|id| !unmet.contains_key(*id)) {
            wrong.of_task_with(
                Remedy::Leftover,
                name,
                format!("{id} is in `{name}` and waits for nothing"),
            );
        }
    }
    let records: BTreeMap<_, _> = view.bytes("tasks").into_iter().collect();
    for (id, value) in unmet {
        let record = records.get(id).and_then(|record| TaskRecord::decode(record.clone()).ok());
        // It joins its lane, or those with which it runs, once it is free.
        let facts = record.and_then(|record| {
            let joins = record.lane.is_some() || record.gather.is_some();
            Some((record.after?, joins))
        });
        let Some((after, joins)) = facts else {
            wrong.of_task_with(
                Remedy::Stuck,
                "unmet",
                format!("{id} waits, and its record states nothing to wait for"),
            );
            continue;
        };
        let parts: Vec<&str> = value.split(';').collect();
        let flags = parts.get(2).copied().unwrap_or_default();
        if parts[0].is_empty() || ![1, 3].contains(&parts.len()) {
            wrong.of_task_with(Remedy::Stuck, "unmet", format!("{id} waits for {value:?}"));
        }
        for mark in parts[0].chars() {
            let Some((_, one)) = after.marked().find(|(known, _)| *known == mark) else {
                wrong.of_task_with(
                    Remedy::Stuck,
                    "unmet",
                    format!(
                        "{id} waits for its prerequisite {mark:?}, which its record does not have"
                    ),
                );
                continue;
            };
            let waiters = ties.get(&name_of(one));
            // Only the other queue knows which tasks wait for its own, so the task asks again.
            let asks_again = asks.contains_key(id);
            if !asks_again && !waiters.is_some_and(|all| all.contains(&format!("{id}{mark}"))) {
                wrong.of_task_with(
                    Remedy::Stuck,
                    "ties",
                    format!("{id} waits for {one}, which does not know that"),
                );
            }
        }
        let expected =
            [('l', joins), ('g', giveups.contains_key(id)), ('e', asks.contains_key(id))];
        check_flags(id, flags, expected, wrong);
    }
}

fn check_flags(id: &str, flags: &str, expected: [(char, bool); 3], wrong: &mut Wrong) {
    for (flag, _) in expected.iter().filter(|(flag, is_set)| flags.contains(*flag) != *is_set) {
        wrong.of_task_with(
            Remedy::Stuck,
            "unmet",
            format!("{id} waits with the flags {flags:?}, and {flag} is wrong"),
        );
    }
}

/// Checks that tied tasks wait. Only the other queues know whether their tasks do.
fn check_ties(
    unmet: &BTreeMap<String, String>,
    ties: &BTreeMap<String, BTreeSet<String>>,
    wrong: &mut Wrong,
) {
    for (reference, waiters) in ties {
        for waiter in waiters.iter().filter(|waiter| waiter.len() == 23) {
            let (id, mark) = waiter.split_at(22);
            let waits = unmet.get(id).map(|value| value.split(';').next().unwrap_or_default());
            if !waits.is_some_and(|marks| marks.contains(mark)) {
                wrong.of_task(
                    "ties",
                    format!("{id} is tied to {reference} and does not wait for it"),
                );
            }
        }
    }
}

fn check_outboxes(view: &View<'_>, wrong: &mut Wrong) {
    let stored = view.owners("outbox:").collect();
    let listed = view.pairs("outboxes");
    wrong.compare("outboxes", "outbox:", &listed.keys().map(String::as_str).collect(), &stored);
    for target in stored {
        for (effect, score) in view.pairs(&format!("outbox:{target}")) {
            let number = effect.split(' ').next().unwrap_or_default();
            let is_posted = number.parse().is_ok_and(|n: u64| n <= view.meta("posted"));
            if number != score || !is_posted {
                wrong.add(
                    &format!("outbox:{target}"),
                    format!("the effect {effect:?} on {target} has the score {score}"),
                );
            }
        }
    }
}

/// The reference without its queue.
fn name_of(one: &Prerequisite) -> String {
    let reference = one.reference();
    reference.split_once('/').map(|(_, name)| name.to_owned()).unwrap_or_default()
}
