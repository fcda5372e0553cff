//! The keys that a queue may have, their types, and what is checked of them.

use optimus_core::broker::KeyKind;

/// Hashes. A name that ends in a colon has an owner.
const HASHES: [&str; 45] = [
    "meta",
    "tasks",
    "blobs",
    "priorities",
    "widths",
    "unmet",
    "unmet_ended",
    "ties",
    "applied",
    "group:",
    "results:",
    "ran:",
    "limits",
    "paused",
    "permits",
    "schedule:",
    "working:",
    "worker:",
    "history_bytes",
    "logs",
    "tally",
    "tries",
    "errors",
    "skips",
    "cancel",
    "waiters",
    "operated:",
    "ledger:",
    "joined",
    "posts",
    "fences",
    "suspended",
    "generations",
    "positions",
    "failures",
    "control",
    "scans",
    "dispenser",
    "holders",
    "returned",
    "done:",
    "seen:",
    "process:",
    "operation:",
    "counted:",
];

/// Sorted sets.
const ZSETS: [&str; 40] = [
    "priority",
    "delayed",
    "retry",
    "lane:",
    "lanes",
    "after:",
    "outbox:",
    "outboxes",
    "asked",
    "asks",
    "giveups",
    "groups",
    "shut",
    "spent",
    "wait:",
    "waits",
    "gate:",
    "gates",
    "busy:",
    "gather:",
    "gathers",
    "loans",
    "schedules",
    "code_schedules",
    "workers",
    "dead",
    "cancelled",
    "deleted",
    "histories",
    "logged",
    "ledgers",
    "aside",
    "pool",
    "assignees",
    "bucket:",
    "deadlines",
    "fleet",
    "operations",
    "carried",
    "audit",
];

/// Lists.
const LISTS: [&str; 12] = [
    "ready",
    "ticks:",
    "success",
    "success:",
    "dead:",
    "minutes",
    "hours",
    "days",
    "completions:",
    "wake",
    "wake:",
    "interrupt:",
];

/// Strings.
const TEXTS: [&str; 8] =
    ["outcome:", "shut:", "result:", "biz:", "same:", "requeued:", "answer:", "probe:"];

/// Keys of whose content no check needs anything: whether they are there is enough.
const UNREAD: [&str; 21] = [
    "outcome:",
    "shut:",
    "result:",
    "same:",
    "requeued:",
    "answer:",
    "completions:",
    "wake:",
    "interrupt:",
    "done:",
    "seen:",
    "process:",
    "ran:",
    "probe:",
    "audit",
    "operated:",
    "counted:",
    "spent",
    "asked",
    "deleted",
    "applied",
];

/// Keys that must expire.
const PASSING: [&str; 22] = [
    "completions:",
    "result:",
    "requeued:",
    "same:",
    "wake:",
    "interrupt:",
    "outcome:",
    "shut:",
    "ran:",
    "done:",
    "seen:",
    "answer:",
    "process:",
    "probe:",
    "fleet",
    "operated:",
    "tally",
    "minutes",
    "hours",
    "days",
    "logs",
    "logged",
];

/// Returns the kind of a key: its name, or the part of it before its owner.
pub(crate) fn kind_of(name: &str) -> &str {
    name.find(':').map_or(name, |colon| &name[..=colon])
}

/// Returns the type that a key must have; `None` if no queue has such a key.
pub(crate) fn expected_type(name: &str) -> Option<KeyKind> {
    let kind = kind_of(name);
    let tables: [(&[&str], KeyKind); 4] = [
        (&HASHES, KeyKind::Hash),
        (&ZSETS, KeyKind::Zset),
        (&LISTS, KeyKind::List),
        (&TEXTS, KeyKind::Text),
    ];
    tables.into_iter().find(|(names, _)| names.contains(&kind)).map(|(_, kind)| kind)
}

/// Returns whether a check needs the content of the key.
pub(crate) fn is_read(name: &str) -> bool {
    expected_type(name).is_some() && !UNREAD.contains(&kind_of(name))
}

/// Returns whether the key must expire. What a biz id says depends on its content.
pub(crate) fn must_expire(name: &str) -> bool {
    PASSING.contains(&kind_of(name))
}
