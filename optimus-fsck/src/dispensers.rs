//! Checks that each item of a dispenser is in one place, and that it will leave its assignee.

use super::view::View;
use crate::violation::Wrong;

pub(super) fn check(view: &View<'_>, wrong: &mut Wrong) {
    let (holders, deadlines) = (view.pairs("holders"), view.pairs("deadlines"));
    let (pool, assignees) = (view.pairs("pool"), view.pairs("assignees"));
    for (item, held) in &holders {
        let Some((until_ms, assignee)) = held.split_once(':') else {
            wrong.add("holders", format!("the holder of {item} is {held:?}"));
            continue;
        };
        if !view.pairs(&format!("bucket:{assignee}")).contains_key(item) {
            wrong.add(
                "holders",
                format!("{item} is held by {assignee}, whose bucket does not have it"),
            );
        }
        if deadlines.get(item).map(String::as_str) != Some(until_ms) {
            wrong.add(
                "deadlines",
                format!("{item} is held until {until_ms}, and `deadlines` has another time"),
            );
        }
        if pool.contains_key(item) {
            wrong.add("pool", format!("{item} is held by {assignee}, and in the pool"));
        }
    }
    for assignee in view.owners("bucket:") {
        if !assignees.contains_key(assignee) {
            wrong.add("assignees", format!("the bucket of {assignee} will never be over"));
        }
        for item in view.pairs(&format!("bucket:{assignee}")).keys() {
            let by = holders.get(item).and_then(|held| held.split_once(':'));
            if by.map(|(_, holder)| holder) != Some(assignee) {
                wrong.add(
                    &format!("bucket:{assignee}"),
                    format!("{item} is in the bucket of {assignee}, which does not hold it"),
                );
            }
        }
    }
    for item in deadlines.keys().filter(|item| !holders.contains_key(*item)) {
        wrong.add("deadlines", format!("{item} has a deadline and no holder"));
    }
    for (item, note) in view.pairs("returned") {
        if !pool.contains_key(&item) && !holders.contains_key(&item) {
            wrong.add("returned", format!("{item} came back, and is in no place"));
        }
        let mut words = note.splitn(3, ' ');
        let mut is_number = || words.next().is_some_and(|word| word.parse::<u64>().is_ok());
        if !(is_number() && is_number()) {
            wrong.add("returned", format!("the return of {item} is {note:?}"));
        }
    }
    let open = view.pairs("dispenser").get("rebuild").cloned().unwrap_or_default();
    let open = open.split_once(' ').map_or("", |(rebuild, _)| rebuild);
    for rebuild in view.owners("seen:").filter(|rebuild| *rebuild != open) {
        wrong.add(
            &format!("seen:{rebuild}"),
            format!("the rebuild {rebuild} is not open, and has a list"),
        );
    }
}
