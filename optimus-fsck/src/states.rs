//! Checks that each task is in exactly one state, and that each task in a state has its record.

use std::collections::BTreeMap;

use super::view::{View, entry_id};
use crate::{remedy::Remedy, violation::Wrong};

/// The zsets that represent a state. Each member is in that state.
const ZSETS: [&str; 5] = ["delayed", "retry", "dead", "cancelled", "priority"];

pub(super) fn check(view: &View<'_>, wrong: &mut Wrong) {
    check_due(view, wrong);
    let records = view.pairs("tasks");
    let places = places(view);
    for id in records.keys() {
        match places.get(id).map_or(&[][..], Vec::as_slice) {
            [_] => {}
            [] => wrong.of_task_with(
                Remedy::Lost,
                "ready",
                format!("{id} has a record and is in no state"),
            ),
            many => wrong.of_task_with(
                Remedy::Twice,
                "tasks",
                format!("{id} is in {}", many.join(" and ")),
            ),
        }
    }
    for (id, places) in &places {
        if !records.contains_key(id) {
            wrong.of_task_with(
                Remedy::NoRecord,
                "tasks",
                format!("{id} is in {} and has no record", places.join(" and ")),
            );
        }
    }
}

/// Checks the due times. No claim reads the due tasks before `due` in `meta`.
fn check_due(view: &View<'_>, wrong: &mut Wrong) {
    let hint = view.pairs("meta").get("due").and_then(|due| due.parse::<u64>().ok());
    for name in ["delayed", "retry"] {
        for (id, due) in view.pairs(name) {
            let due = due.parse::<u64>().ok();
            if hint.is_none_or(|hint| due.is_none_or(|due| hint > due)) {
                wrong.of_task_with(
                    Remedy::Due,
                    "meta",
                    format!("{id} is due before any claim will read it"),
                );
            }
        }
    }
}

/// Returns the places of each task: its zsets, its holders, its entries that are not tombstones,
/// its lane, its gates or its run while it waits there, and its wait for prerequisites.
pub(super) fn places(view: &View<'_>) -> BTreeMap<String, Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |id: String, place: String| places.entry(id).or_default().push(place);
    for name in ZSETS {
        for id in view.pairs(name).into_keys() {
            add(id, name.to_owned());
        }
    }
    for worker in view.owners("working:") {
        for id in view.held(worker).into_keys() {
            add(id, format!("working:{worker}"));
        }
    }
    for lane in view.owners("lane:") {
        let name = format!("lane:{lane}");
        for (id, _) in view.pairs(&name).into_iter().filter(|(_, at)| !at.starts_with('-')) {
            add(id, name.clone());
        }
    }
    for key in view.owners("gather:") {
        let name = format!("gather:{key}");
        for (id, _) in view.pairs(&name).into_iter().filter(|(_, at)| !at.starts_with('-')) {
            add(id, name.clone());
        }
    }
    for id in view.pairs("unmet").into_keys() {
        add(id, "unmet".to_owned());
    }
    for class in view.owners("wait:") {
        let name = format!("wait:{class}");
        for id in view.pairs(&name).into_keys() {
            add(id, name.clone());
        }
    }
    let mut skips = view.pairs("skips");
    for entry in view.items("ready") {
        let id = entry_id(&entry);
        let left = skips.get_mut(id).filter(|left| left.parse().is_ok_and(|left: u32| left > 0));
        match left {
            Some(left) => {
                *left = (left.parse::<u32>().expect("the score is a number") - 1).to_string();
            }
            None => add(id.to_owned(), "ready".to_owned()),
        }
    }
    places
}
