//! Checks what a queue keeps of the tasks that succeeded or died.

use std::collections::BTreeSet;

use super::view::View;

/// The kinds of lists, and how the score of a list differs from its day.
const KINDS: [(&str, &str); 2] = [("success:", ""), ("dead:", ".5")];

pub(super) fn check(view: &View<'_>, wrong: &mut Vec<String>) {
    let (index, sizes) = (view.pairs("histories"), view.pairs("history_bytes"));
    let (mut known, mut all) = (BTreeSet::new(), 0);
    for (kind, half) in KINDS {
        for day in view.owners(kind) {
            let (name, entries) = (format!("{kind}{day}"), view.items(&format!("{kind}{day}")));
            let bytes: usize = entries.iter().map(String::len).sum();
            all += bytes;
            if index.get(&name) != Some(&format!("{day}{half}")) {
                wrong.push(format!("{name} is at {:?} in `histories`", index.get(&name)));
            }
            let size = sizes.get(&name).and_then(|size| size.split_once(' '));
            if size.and_then(|(size, _)| size.parse().ok()) != Some(bytes) {
                wrong.push(format!("{name} has {bytes} bytes, and {size:?} are counted"));
            }
            if entries.iter().any(|entry| entry.is_empty() || !entry.lines().all(is_line)) {
                wrong.push(format!("{name} has a line that is of no task"));
            }
            known.insert(name);
        }
    }
    for name in index.keys().chain(sizes.keys()).filter(|name| *name != "all") {
        if !known.contains(name) {
            wrong.push(format!("`histories` or `history_bytes` has {name}, which is not there"));
        }
    }
    let counted = sizes.get("all").map_or(Some(0), |all| all.parse().ok());
    if counted != Some(all) {
        wrong.push(format!("the history has {all} bytes, and {counted:?} are counted"));
    }
    if !known.is_empty() && !view.pairs("meta").contains_key("history") {
        wrong.push("the queue has a history, and nothing says how long".to_owned());
    }
}

fn is_line(line: &str) -> bool {
    let mut words = line.split(' ');
    let is_id = words.next().is_some_and(|id| id.len() == 22);
    let is_time = words.next().is_some_and(|ms| ms.parse::<u64>().is_ok());
    is_id && is_time && words.count() >= 2
}
