//! Checks the ready list. Its entries are tasks and tombstones, and its wakeup list has at most one
//! token.

use std::collections::BTreeMap;

use super::view::{View, entry_id};
use crate::violation::Wrong;

pub(super) fn check(view: &View<'_>, wrong: &mut Wrong) {
    let line = view.items("ready");
    let mut entries: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in &line {
        *entries.entry(entry_id(entry)).or_default() += 1;
    }
    let mut tombstones = 0;
    for (id, count) in view.pairs("skips") {
        let count: u64 = count.parse().unwrap_or(0);
        let there = entries.get(id.as_str()).copied().unwrap_or(0);
        if count < 1 || count > there {
            wrong.of_task(
                "skips",
                format!("{count} entries of {id} must be skipped, but the ready list has {there}"),
            );
        }
        tombstones += count;
    }
    wrong.count("meta", "tombstones", view.meta("tombstones"), tombstones);
    // A tombstone is skipped in any case. Its task may, for example, have been requeued.
    let (tried, skipped) = (view.pairs("tries"), view.pairs("skips"));
    let is_skipped = |entry: &String| skipped.contains_key(entry);
    let plain = line.iter().filter(|entry| !is_skipped(entry));
    for entry in plain.filter(|entry| tried.contains_key(*entry)) {
        wrong.of_task("ready", format!("{entry} was tried, but the entry does not show that"));
    }
    let ranked = view.pairs("priorities");
    for entry in line.iter().filter(|entry| ranked.contains_key(entry_id(entry))) {
        wrong.of_task("priorities", format!("{entry} is in the ready list and has a priority"));
    }
    for id in view.pairs("priority").keys().filter(|id| !ranked.contains_key(*id)) {
        wrong.of_task("priority", format!("{id} is in `priority` and has no priority"));
    }
    let tokens = view.items("wake").len();
    if tokens > 1 {
        wrong.at_rest("wake", format!("the wakeup list holds {tokens} tokens"));
    }
}
