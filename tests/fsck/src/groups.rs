//! Checks groups. Each member counts once, and a group ends when all members have ended.

use std::collections::BTreeSet;

use super::view::View;

pub(super) fn check(view: &View<'_>, wrong: &mut Vec<String>) {
    let listed: BTreeSet<String> = view.pairs("groups").into_keys().collect();
    let stored: BTreeSet<String> = view.owners("group:").map(str::to_owned).collect();
    if listed != stored {
        wrong.push(format!("there are the groups {stored:?}, and `groups` has {listed:?}"));
    }
    if !stored.is_empty() && view.meta("needs") < 5 {
        wrong.push("there are groups, and older scripts would not count their members".into());
    }
    for group in view.owners("results:").filter(|group| !stored.contains(*group)) {
        wrong.push(format!("there are results of the group {group}, which is not known"));
    }
    for group in &stored {
        check_group(view, group, wrong);
    }
}

fn check_group(view: &View<'_>, group: &str, wrong: &mut Vec<String>) {
    let fields = view.pairs(&format!("group:{group}"));
    let number = |name: &str| fields.get(name).and_then(|n| n.parse::<usize>().ok()).unwrap_or(0);
    let results = view.pairs(&format!("results:{group}"));
    let (total, done) = (number("total"), number("done"));
    if results.len() != done || done > total {
        let found = results.len();
        wrong.push(format!("group {group} counts {done} of {total} members, and has {found}"));
    }
    if results.keys().any(|index| index.parse().map_or(true, |index: usize| index >= total)) {
        wrong.push(format!("group {group} has a result of a member that it does not have"));
    }
    let failed = results.values().filter(|value| value.starts_with('!')).count();
    if failed != number("failed") + number("cancelled") {
        wrong.push(format!("{failed} members of group {group} have failed, and it counts others"));
    }
    let lost: Vec<&str> = fields.keys().filter_map(|name| name.strip_prefix('-')).collect();
    if lost.len() != number("lost") || lost.iter().any(|index| results.contains_key(*index)) {
        wrong.push(format!("group {group} waits for {lost:?}, and counts others"));
    }
    let is_sealed = number("sealed") == 1;
    let ended = fields.get("state").map(String::as_str);
    let is_whole = is_sealed && done == total;
    if !matches!(
        (ended, is_whole),
        (Some("success"), true) | (None, false) | (Some("cancelled"), _)
    ) {
        wrong.push(format!("group {group} has {done} of {total} members, and is {ended:?}"));
    }
    // The tasks that wait for a group learn of its end through an effect.
    let waits = view.pairs("ties").contains_key(group);
    let told = view.names().filter(|name| name.starts_with("outbox:")).any(|outbox| {
        view.pairs(outbox).keys().any(|effect| effect.ends_with(&format!(" {group}")))
    });
    if ended == Some("success") && waits && !told {
        wrong.push(format!(
            "group {group} has ended, and tasks that wait for it do not learn of it"
        ));
    }
}
