//! Checks that no unknown key exists, that each key has its type, that the fields of `meta` are
//! known and are numbers, and that each temporary key has an expiry.

use optimus_core::broker::KeyKind;

use super::{
    key_table::{expected_type, must_expire},
    view::View,
};
use crate::{Dump, Violation, remedy::Remedy, violation::Wrong};

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

/// The fields of `meta` that have several words.
const TEXTS: [&str; 2] = ["timer", "history"];

pub(super) fn check(view: &View<'_>, wrong: &mut Wrong) {
    for name in view.names().filter(|name| expected_type(name).is_none()) {
        wrong.of_key(Remedy::Foreign, name, format!("{name} is an unknown key"));
    }
    for (field, value) in view.pairs("meta") {
        if !META.contains(&field.as_str()) {
            let text = format!("{field} is an unknown field of meta");
            wrong.of_key(Remedy::Foreign, "meta", text);
        } else if !TEXTS.contains(&field.as_str()) && value.parse::<u64>().is_err() {
            let text = format!("the field `{field}` of `meta` is {value:?}, which is no number");
            wrong.of_key(Remedy::Number, "meta", text);
        }
    }
}

/// Checks the types of keys. What another check finds in a queue with a key of the wrong type may
/// follow from that alone.
pub fn check_types<'a>(types: impl IntoIterator<Item = (&'a str, &'a KeyKind)>) -> Vec<Violation> {
    let mut wrong = Wrong::default();
    for (name, found) in types {
        if let Some(expected) = expected_type(name).filter(|expected| expected != found) {
            let text = format!("{name} is of the type {found}, and must be of the type {expected}");
            wrong.of_key(Remedy::Kind, name, text);
        }
    }
    wrong.into_vec()
}

/// Checks the expiry of each key. `left` has the remaining ms of each key, in the order of the
/// dump, or -1 for a key without an expiry. Messages, results, marks of successes, statistics and
/// logs must expire. The tasks that an operation has counted expire until it is confirmed. No
/// other key may expire.
pub fn check_lifetimes(dump: &Dump, lifetimes: &[i64]) -> Vec<Violation> {
    let (view, mut wrong) = (View::new(dump), Wrong::default());
    for (name, left) in dump.keys().zip(lifetimes) {
        let is_done = || view.value(name).is_some_and(|mark| mark.ends_with(":D"));
        let passes = must_expire(name) || (name.starts_with("biz:") && is_done());
        match (passes, *left) {
            (true, -1) => {
                wrong.of_key(Remedy::Endless, name, format!("{name} has no expiry"));
            }
            (false, left) if left >= 0 && !may_expire(name) && expected_type(name).is_some() => {
                wrong.of_key(Remedy::Expires, name, format!("{name} expires, and must not"));
            }
            _ => {}
        }
    }
    wrong.into_vec()
}

fn may_expire(name: &str) -> bool {
    name.starts_with("counted:")
}
