//! Checks that each schedule is in its index, and due after its last instant.

use super::view::View;

/// How many instants a history has at most.
const TICKS_MAX: usize = 100;
/// The score of a schedule that is never due.
const NEVER: &str = "inf";

pub(super) fn check(view: &View<'_>, wrong: &mut Vec<String>) {
    let (own, of_code) = (view.pairs("schedules"), view.pairs("code_schedules"));
    for name in view.owners("schedule:") {
        let facts = view.pairs(&format!("schedule:{name}"));
        let fact = |field: &str| facts.get(field).map(String::as_str);
        let is_of_code = fact("release").is_some_and(|release| !release.is_empty());
        let (index, other) = if is_of_code { (&of_code, &own) } else { (&own, &of_code) };
        let Some(due) = index.get(name) else {
            wrong.push(format!("the schedule {name} is not in its index"));
            continue;
        };
        if other.contains_key(name) {
            wrong.push(format!("the schedule {name} is in both indexes"));
        }
        for field in ["edition", "timing", "record", "made"] {
            if fact(field).is_none_or(str::is_empty) {
                wrong.push(format!("the schedule {name} has no {field}"));
            }
        }
        for field in ["number", "started"] {
            if fact(field).is_none_or(|text| text.parse::<u64>().is_err()) {
                wrong.push(format!("the schedule {name} has no {field}"));
            }
        }
        if fact("moving").is_some_and(|text| text != "1") {
            wrong.push(format!("the schedule {name} neither moves nor stays"));
        }
        if fact("paused").is_some() && due != NEVER {
            wrong.push(format!("the schedule {name} is paused and due"));
        }
        let number = |text: &str| text.parse::<f64>().ok();
        if let (Some(last), Some(due)) = (fact("last").and_then(number), number(due))
            && due <= last
        {
            wrong.push(format!("the schedule {name} is due at {due}, not after its last {last}"));
        }
    }
    for name in own.keys().chain(of_code.keys()) {
        if view.pairs(&format!("schedule:{name}")).is_empty() {
            wrong.push(format!("the schedule {name} is in an index and is not stored"));
        }
    }
    for name in view.owners("ticks:") {
        if view.pairs(&format!("schedule:{name}")).is_empty() {
            wrong.push(format!("there is a history of {name}, which is not stored"));
        }
        let size = view.items(&format!("ticks:{name}")).len();
        if size > TICKS_MAX {
            wrong.push(format!("the history of {name} has {size} instants"));
        }
    }
}
