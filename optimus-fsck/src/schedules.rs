//! Checks that each schedule is in its index, and due after its last instant.

use std::collections::BTreeMap;

use super::view::View;
use crate::{remedy::Remedy, violation::Wrong};

/// How many instants a history has at most.
const TICKS_MAX: usize = 100;
/// The score of a schedule that is never due.
const NEVER: &str = "inf";

pub(super) fn check(view: &View<'_>, wrong: &mut Wrong) {
    let (own, of_code) = (view.pairs("schedules"), view.pairs("code_schedules"));
    for name in view.owners("schedule:") {
        let facts = view.pairs(&format!("schedule:{name}"));
        let is_of_code = facts.get("release").is_some_and(|release| !release.is_empty());
        let (index, other) = if is_of_code { (&of_code, &own) } else { (&own, &of_code) };
        let Some(due) = index.get(name) else {
            let text = format!("the schedule {name} is not in its index");
            wrong.add_with(Remedy::Schedule, "schedules", text);
            continue;
        };
        if other.contains_key(name) {
            let text = format!("the schedule {name} is in both indexes");
            wrong.add_with(Remedy::Schedule, "code_schedules", text);
        }
        check_facts(name, &facts, due, wrong);
    }
    for name in own.keys().chain(of_code.keys()) {
        if view.pairs(&format!("schedule:{name}")).is_empty() {
            wrong.add_with(
                Remedy::Schedule,
                "schedules",
                format!("the schedule {name} is in an index and is not stored"),
            );
        }
    }
    for name in view.owners("ticks:") {
        if view.pairs(&format!("schedule:{name}")).is_empty() {
            wrong.add(
                &format!("ticks:{name}"),
                format!("there is a history of {name}, which is not stored"),
            );
        }
        let size = view.items(&format!("ticks:{name}")).len();
        if size > TICKS_MAX {
            wrong.add(
                &format!("ticks:{name}"),
                format!("the history of {name} has {size} instants"),
            );
        }
    }
}

/// Checks what is stored of a schedule that is due at that time.
fn check_facts(name: &str, facts: &BTreeMap<String, String>, due: &str, wrong: &mut Wrong) {
    let key = format!("schedule:{name}");
    let mut add = |what: String| {
        wrong.add_with(Remedy::Schedule, &key, format!("the schedule {name} {what}"));
    };
    let fact = |field: &str| facts.get(field).map(String::as_str);
    for field in ["edition", "timing", "record", "made"] {
        if fact(field).is_none_or(str::is_empty) {
            add(format!("has no {field}"));
        }
    }
    for field in ["number", "started"] {
        if fact(field).is_none_or(|text| text.parse::<u64>().is_err()) {
            add(format!("has no {field}"));
        }
    }
    if fact("moving").is_some_and(|text| text != "1") {
        add("neither moves nor stays".to_owned());
    }
    if fact("paused").is_some() && due != NEVER {
        add("is paused and due".to_owned());
    }
    let number = |text: &str| text.parse::<f64>().ok();
    if let (Some(last), Some(due)) = (fact("last").and_then(number), number(due))
        && due <= last
    {
        add(format!("is due at {due}, not after its last {last}"));
    }
}
