//! Checks groups. Each member counts once, and a group ends when all members have ended.

use std::collections::BTreeSet;

use super::view::View;
use crate::{remedy::Remedy, violation::Wrong};

pub(super) fn check(view: &View<'_>, wrong: &mut Wrong) {
    let listed = view.pairs("groups");
    let stored: BTreeSet<&str> = view.owners("group:").collect();
    wrong.compare("groups", "group:", &listed.keys().map(String::as_str).collect(), &stored);
    if !stored.is_empty() && view.meta("needs") < 5 {
        wrong.add_with(
            Remedy::Upgrade,
            "meta",
            "there are groups, and older scripts would not count their members",
        );
    }
    for group in view.owners("results:").filter(|group| !stored.contains(*group)) {
        wrong.add(
            &format!("results:{group}"),
            format!("there are results of the group {group}, which is not known"),
        );
    }
    for group in &stored {
        check_group(view, group, wrong);
    }
}

fn check_group(view: &View<'_>, group: &str, wrong: &mut Wrong) {
    let key = format!("group:{group}");
    let fields = view.pairs(&key);
    let number = |name: &str| fields.get(name).and_then(|n| n.parse::<usize>().ok()).unwrap_or(0);
    let results = view.pairs(&format!("results:{group}"));
    let (total, done) = (number("total"), number("done"));
    if results.len() != done || done > total {
        wrong.add(&key, format!("group {group} counts other members than it has results of"));
    }
    if results.keys().any(|index| index.parse().map_or(true, |index: usize| index >= total)) {
        wrong.add(
            &format!("results:{group}"),
            format!("group {group} has a result of a member that it does not have"),
        );
    }
    let failed = results.values().filter(|value| value.starts_with('!')).count();
    if failed != number("failed") + number("cancelled") {
        wrong.add(&key, format!("group {group} counts other failures than it has"));
    }
    let lost: Vec<&str> = fields.keys().filter_map(|name| name.strip_prefix('-')).collect();
    if lost.len() != number("lost") || lost.iter().any(|index| results.contains_key(*index)) {
        wrong.add(&key, format!("group {group} counts other lost members than it has"));
    }
    let is_sealed = number("sealed") == 1;
    let ended = fields.get("state").map(String::as_str);
    let is_whole = is_sealed && done == total;
    if !matches!(
        (ended, is_whole),
        (Some("success"), true) | (None, false) | (Some("cancelled"), _)
    ) {
        wrong.add(&key, format!("group {group} is {ended:?}, and its members say otherwise"));
    }
    // The tasks that wait for a group learn of its end through an effect.
    let waits = || view.has_field("ties", group);
    let is_told = || {
        let end = format!(" {group}");
        let mut outboxes = view.owners("outbox:").map(|to| view.pairs(&format!("outbox:{to}")));
        outboxes.any(|effects| effects.keys().any(|effect| effect.ends_with(&end)))
    };
    if ended == Some("success") && waits() && !is_told() {
        wrong.add(
            &key,
            format!("group {group} has ended, and tasks that wait for it do not learn of it"),
        );
    }
}
