//! Checks limits. A task that waits has a gate that opens again, and a task with a permit is
//! working.

use std::collections::{BTreeMap, BTreeSet};

use optimus_core::{Gate, TaskRecord};

use super::view::View;
use crate::{remedy::Remedy, violation::Wrong};

pub(super) fn check(view: &View<'_>, wrong: &mut Wrong) {
    check_version(view, wrong);
    check_classes(view, wrong);
    check_gates(view, wrong);
    check_permits(view, wrong);
}

fn check_version(view: &View<'_>, wrong: &mut Wrong) {
    let is_limited = |(_, record)| {
        TaskRecord::decode(record).is_ok_and(|record: TaskRecord| !record.limits.is_empty())
    };
    let is_used = view.bytes("tasks").into_iter().any(is_limited)
        || ["limits", "waits", "permits", "loans"].iter().any(|key| !view.pairs(key).is_empty());
    if is_used && view.meta("limited") != 1 {
        wrong.add("meta", "tasks have limits, and claims would read no gate");
    }
    if is_used && view.meta("needs") < 3 {
        wrong.add_with(
            Remedy::Upgrade,
            "meta",
            "tasks have limits, and older scripts would still change the queue",
        );
    }
}

/// The gates of a task, as its record states them.
fn class_of(record: &TaskRecord) -> String {
    let mut names = vec![Gate::Task(record.task.clone()).stored()];
    names.extend(record.lane.as_ref().map(|lane| Gate::Lane(lane.key.clone()).stored()));
    for limit in &record.limits {
        let name = limit.gate.stored();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join("\n")
}

/// Each task waits with those that have the same gates, and each class waits at one of its gates.
fn check_classes(view: &View<'_>, wrong: &mut Wrong) {
    let records: BTreeMap<_, _> = view.bytes("tasks").into_iter().collect();
    let classes: BTreeSet<&str> = view.owners("wait:").collect();
    for class in &classes {
        for id in view.pairs(&format!("wait:{class}")).into_keys() {
            let record =
                records.get(&id).and_then(|stored| TaskRecord::decode(stored.clone()).ok());
            if record.as_ref().map(class_of).is_some_and(|own| own != **class) {
                wrong.of_task_with(
                    Remedy::Stuck,
                    &format!("wait:{class}"),
                    format!("{id} waits in {class:?}, and its record states other gates"),
                );
            }
        }
        let at: Vec<&str> = view
            .owners("gate:")
            .filter(|gate| view.pairs(&format!("gate:{gate}")).contains_key(*class))
            .collect();
        if at.len() != 1 || !class.split('\n').any(|gate| gate == at[0]) {
            wrong.add_with(
                Remedy::Report,
                &format!("wait:{class}"),
                format!("the class {class:?} waits at {at:?}"),
            );
        }
    }
    let listed = view.pairs("waits");
    wrong.compare("waits", "wait:", &listed.keys().map(String::as_str).collect(), &classes);
}

/// A gate at which a class waits has the time of its next check, unless another call opens it.
fn check_gates(view: &View<'_>, wrong: &mut Wrong) {
    let looks = view.pairs("gates");
    let hint = view.pairs("meta").get("due").and_then(|due| due.parse::<f64>().ok());
    let shut = view.pairs("shut");
    for (gate, at) in &looks {
        if view.pairs(&format!("gate:{gate}")).is_empty() {
            wrong.add("gates", format!("nothing waits at {gate:?}, and `gates` has it"));
        }
        if hint.is_none_or(|hint| at.parse().is_ok_and(|at: f64| hint > at)) {
            wrong.add_with(
                Remedy::Due,
                "meta",
                format!("{gate:?} opens before any claim will read it"),
            );
        }
    }
    for gate in view.owners("gate:") {
        for class in view.pairs(&format!("gate:{gate}")).into_keys() {
            if view.pairs(&format!("wait:{class}")).is_empty() {
                wrong.add_with(
                    Remedy::Report,
                    &format!("gate:{gate}"),
                    format!("the class {class:?} waits at {gate:?} and has no task"),
                );
            }
        }
        let is_full = !view.pairs(&format!("busy:{gate}")).is_empty();
        let is_paused = shut.get(gate).is_some_and(|until| until == "inf");
        if !looks.contains_key(gate) && !is_full && !is_paused {
            wrong.add_with(
                Remedy::Report,
                &format!("gate:{gate}"),
                format!("tasks wait at {gate:?}, and nothing opens it"),
            );
        }
    }
}

/// A task has its permits exactly while a worker holds it.
fn check_permits(view: &View<'_>, wrong: &mut Wrong) {
    let held: BTreeSet<String> =
        view.owners("working:").flat_map(|worker| view.held(worker).into_keys()).collect();
    let mut of_gates: BTreeSet<(String, String)> = BTreeSet::new();
    for (id, gates) in view.pairs("permits") {
        if !held.contains(&id) {
            wrong.of_task_with(
                Remedy::Permit,
                "permits",
                format!("{id} has the permits of {gates:?}, and no worker holds it"),
            );
        }
        of_gates.extend(gates.lines().map(|gate| (gate.to_owned(), id.clone())));
    }
    let loans: BTreeSet<String> = view.pairs("loans").into_keys().collect();
    for gate in view.owners("busy:") {
        for id in view.pairs(&format!("busy:{gate}")).into_keys() {
            let is_lent = loans.contains(&format!("{gate}\n{id}"));
            if !of_gates.remove(&(gate.to_owned(), id.clone())) && !is_lent {
                wrong.of_task_with(
                    Remedy::Permit,
                    &format!("busy:{gate}"),
                    format!("{id} has a permit of {gate:?} that nothing gives back"),
                );
            }
        }
    }
    for (gate, id) in of_gates {
        wrong.of_task(
            &format!("busy:{gate}"),
            format!("{id} has a permit of {gate:?} that the gate does not count"),
        );
    }
}
