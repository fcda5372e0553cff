//! Checks that no unknown key exists, and that each temporary key has an expiry.

use super::view::View;
use crate::Dump;

/// The keys of a queue. A key that ends in a colon has an owner.
const NAMES: [&str; 102] = [
    "meta",
    "tasks",
    "blobs",
    "ready",
    "priority",
    "priorities",
    "delayed",
    "retry",
    "lane:",
    "lanes",
    "widths",
    "unmet",
    "unmet_ended",
    "ties",
    "after:",
    "outcome:",
    "outbox:",
    "outboxes",
    "applied",
    "asked",
    "asks",
    "giveups",
    "group:",
    "groups",
    "results:",
    "ran:",
    "limits",
    "shut",
    "shut:",
    "paused",
    "spent",
    "wait:",
    "waits",
    "gate:",
    "gates",
    "busy:",
    "permits",
    "gather:",
    "gathers",
    "loans",
    "schedules",
    "code_schedules",
    "schedule:",
    "ticks:",
    "working:",
    "workers",
    "worker:",
    "dead",
    "cancelled",
    "deleted",
    "success",
    "success:",
    "dead:",
    "histories",
    "history_bytes",
    "logs",
    "logged",
    "tally",
    "minutes",
    "hours",
    "days",
    "tries",
    "errors",
    "skips",
    "cancel",
    "waiters",
    "result:",
    "biz:",
    "same:",
    "ledger:",
    "ledgers",
    "completions:",
    "requeued:",
    "wake",
    "wake:",
    "interrupt:",
    "joined",
    "posts",
    "fences",
    "suspended",
    "generations",
    "positions",
    "failures",
    "aside",
    "control",
    "scans",
    "dispenser",
    "pool",
    "assignees",
    "bucket:",
    "holders",
    "deadlines",
    "returned",
    "done:",
    "seen:",
    "answer:",
    "fleet",
    "process:",
    "operations",
    "carried",
    "operation:",
    "operated:",
];

/// The fields of `meta`.
const META: [&str; 31] = [
    "needs",
    "limited",
    "paused",
    "fence",
    "due",
    "timer",
    "tombstones",
    "places",
    "blocked",
    "widest",
    "posted",
    "watched_at",
    "back",
    "lease_min",
    "purged",
    "purged_born",
    "logs_from",
    "purge_from",
    "dead_bytes",
    "cancelled_bytes",
    "cut_successes",
    "history",
    "retries",
    "losses",
    "deaths",
    "cancels",
    "generation",
    "count",
    "quiet_until",
    "lease_max",
    "restarted",
];

pub(super) fn check(view: &View<'_>, wrong: &mut Vec<String>) {
    for name in view.names() {
        let kind = name.find(':').map_or(name, |colon| &name[..=colon]);
        if !NAMES.contains(&kind) {
            wrong.push(format!("{name} is an unknown key"));
        }
    }
    for field in view.pairs("meta").keys().filter(|field| !META.contains(&field.as_str())) {
        wrong.push(format!("{field} is an unknown field of meta"));
    }
}

/// Checks the expiry of each key. `left` has the remaining ms of each key, in the order of the
/// dump, or -1 for a key without an expiry. Messages, results, marks of successes, statistics and
/// logs must expire.
/// No other key may expire.
pub fn check_lifetimes(dump: &Dump, lifetimes: &[i64]) -> Vec<String> {
    let view = View::new(dump);
    let told = dump.keys().zip(lifetimes).filter_map(|(name, left)| {
        let done = || view.value(name).is_some_and(|mark| mark.ends_with(":D"));
        let kinds = [
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
            "fleet",
            "operated:",
        ];
        let is_past = ["tally", "minutes", "hours", "days", "logs", "logged"];
        let passes = kinds.iter().any(|kind| name.starts_with(kind))
            || (name.starts_with("biz:") && done())
            || is_past.contains(&name.as_str());
        match (passes, *left) {
            (true, -1) => Some(format!("{name} has no expiry")),
            (false, left) if left >= 0 => Some(format!("{name} expires in {left} ms")),
            _ => None,
        }
    });
    told.collect()
}
