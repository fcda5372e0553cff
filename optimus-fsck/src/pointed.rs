//! The keys that the indexes of a queue name: [`pointed`].

use std::collections::BTreeMap;

use crate::Content;

/// Each index, and the kinds of keys that its members own.
const INDEXES: [(&str, &[&str]); 14] = [
    ("workers", &["worker:", "working:"]),
    ("lanes", &["lane:"]),
    ("waits", &["wait:"]),
    ("gates", &["gate:", "busy:"]),
    ("gathers", &["gather:"]),
    ("groups", &["group:", "results:"]),
    ("outboxes", &["outbox:"]),
    ("ties", &["after:"]),
    ("ledgers", &["ledger:"]),
    ("schedules", &["schedule:", "ticks:"]),
    ("code_schedules", &["schedule:", "ticks:"]),
    ("histories", &[""]),
    ("operations", &["operation:", "counted:"]),
    ("assignees", &["bucket:"]),
];

/// Returns the names of the keys that the indexes name. Not each of them must be there.
pub(crate) fn pointed(read: &BTreeMap<String, (Content, i64)>) -> Vec<String> {
    let owners = |index: &str| match read.get(index) {
        Some((Content::Hash(pairs) | Content::Zset(pairs), _)) => pairs.as_slice(),
        _ => &[],
    };
    let of_index = |(index, kinds): &(&str, &[&str])| {
        let names = owners(index).iter().map(|(owner, _)| String::from_utf8_lossy(owner));
        let keys = names.flat_map(|owner| kinds.iter().map(move |kind| format!("{kind}{owner}")));
        keys.collect::<Vec<_>>()
    };
    INDEXES.iter().flat_map(of_index).collect()
}
