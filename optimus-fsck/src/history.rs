//! Checks what a queue keeps of the tasks that succeeded or died.

use std::collections::BTreeSet;

use super::view::View;
use crate::violation::Wrong;

/// The kinds of lists, and how the score of a list differs from its day.
const KINDS: [(&str, &str); 2] = [("success:", ""), ("dead:", ".5")];

pub(super) fn check(view: &View<'_>, wrong: &mut Wrong) {
    let (index, sizes) = (view.pairs("histories"), view.pairs("history_bytes"));
    let (mut known, mut all) = (BTreeSet::new(), 0_u64);
    for (kind, half) in KINDS {
        for day in view.owners(kind) {
            let (name, entries) = (format!("{kind}{day}"), view.items(&format!("{kind}{day}")));
            let bytes = entries.iter().map(|entry| entry.len() as u64).sum::<u64>();
            all += bytes;
            if index.get(&name) != Some(&format!("{day}{half}")) {
                wrong.add(
                    "histories",
                    format!("{name} is at {:?} in `histories`", index.get(&name)),
                );
            }
            let size = sizes.get(&name).and_then(|size| size.split_once(' ')?.0.parse().ok());
            wrong.count("history_bytes", &name, size.unwrap_or(0), bytes);
            if entries.iter().any(|entry| entry.is_empty() || !entry.lines().all(is_line)) {
                wrong.add(&name, format!("{name} has a line that is of no task"));
            }
            known.insert(name);
        }
    }
    for name in index.keys().chain(sizes.keys()).filter(|name| *name != "all") {
        if !known.contains(name) {
            wrong.add(
                "histories",
                format!("`histories` or `history_bytes` has {name}, which is not there"),
            );
        }
    }
    let counted = sizes.get("all").and_then(|all| all.parse().ok()).unwrap_or(0);
    wrong.count("history_bytes", "all", counted, all);
    if !known.is_empty() && !view.pairs("meta").contains_key("history") {
        wrong.add("meta", "the queue has a history, and nothing says how long");
    }
}

fn is_line(line: &str) -> bool {
    let mut words = line.split(' ');
    let is_id = words.next().is_some_and(|id| id.len() == 22);
    let is_time = words.next().is_some_and(|ms| ms.parse::<u64>().is_ok());
    is_id && is_time && words.count() >= 2
}
