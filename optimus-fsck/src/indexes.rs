//! Checks that all data besides the records belongs to existing tasks and is bounded.

use std::collections::BTreeMap;

use super::view::View;
use crate::{remedy::Remedy, violation::Wrong};

/// The hashes with data of a task, by its id.
const SIDES: [&str; 7] =
    ["blobs", "priorities", "tries", "errors", "cancel", "waiters", "unmet_ended"];

/// The keys besides `waiters` that a success reads, if `waiters` has their mark.
const MARKED: [&str; 3] = ["cancel", "permits", "ties"];

const ERRORS_MAX: usize = 10;
/// The most summaries: 1,000, plus those that are not removed yet.
const SUCCESS_MAX: usize = 1_128;

pub(super) fn check(view: &View<'_>, wrong: &mut Wrong) {
    let records = view.pairs("tasks");
    for side in SIDES {
        let is_task = |id: &&String| side != "waiters" || !id.starts_with('#');
        for id in view.pairs(side).keys().filter(|id| !records.contains_key(*id)).filter(is_task) {
            wrong.of_task_with(
                Remedy::Leftover,
                side,
                format!("`{side}` has {id}, which has no record"),
            );
        }
    }
    let blobs = view.pairs("blobs");
    for (id, record) in &records {
        let beside = blobs.contains_key(id);
        if record.lines().next().is_some_and(|header| header.contains("\"x\":true")) != beside {
            wrong.of_task(
                "blobs",
                format!("{id}: the record and `blobs` disagree about the place of the payload"),
            );
        }
    }
    let held: Vec<_> = view.owners("working:").map(|worker| view.held(worker)).collect();
    for id in view.pairs("cancel").keys().filter(|id| !held.iter().any(|h| h.contains_key(*id))) {
        wrong.of_task_with(
            Remedy::Leftover,
            "cancel",
            format!("{id} is asked to stop and no worker holds it"),
        );
    }
    let ended = [view.pairs("dead"), view.pairs("cancelled")];
    for (id, clients) in view.pairs("waiters") {
        if ended.iter().any(|ended| ended.contains_key(&id)) {
            wrong.of_task("waiters", format!("{clients} wait for {id}, which has ended"));
        }
    }
    check_tries(view, wrong);
    check_bytes(view, wrong);
    check_marks(view, wrong);
    let success = view.items("success");
    if success.len() > SUCCESS_MAX {
        wrong.add("success", format!("more than {SUCCESS_MAX} summaries are kept"));
    }
    for summary in success {
        let id = summary.split(' ').next().unwrap_or_default();
        if records.contains_key(id) {
            wrong.of_task("success", format!("{id} has succeeded and still has a record"));
        }
    }
}

/// Checks the counts and the errors of attempts.
fn check_tries(view: &View<'_>, wrong: &mut Wrong) {
    let cancelled = view.pairs("cancelled");
    for (id, tries) in view.pairs("tries") {
        // A task that was cancelled before it was due keeps its time behind its counts, or alone.
        let (counts, due) = tries.split_once('@').unwrap_or((&tries, "0"));
        let is_due_wrong =
            due.parse::<u64>().is_err() || due != "0" && !cancelled.contains_key(&id);
        let is_alone = counts.is_empty() && tries.starts_with('@');
        let counts: Vec<_> = counts.split(':').map(str::parse::<u64>).collect();
        let are_counts = (3..=4).contains(&counts.len()) && counts.iter().all(Result::is_ok);
        if is_due_wrong || !(is_alone || are_counts) {
            wrong.of_task("tries", format!("the tries of {id} are {tries:?}"));
        }
    }
    for (id, lines) in view.pairs("errors") {
        if lines.lines().count() > ERRORS_MAX {
            wrong.of_task(
                "errors",
                format!("the error history of {id} has more than {ERRORS_MAX} lines"),
            );
        }
    }
    for id in errors_without_tries(view) {
        wrong.of_task_with(
            Remedy::Leftover,
            "errors",
            format!(
                "{id} has an error history and no tries, so no report would remove the history"
            ),
        );
    }
}

/// Checks that the bytes of dead and of cancelled tasks are counted.
fn check_bytes(view: &View<'_>, wrong: &mut Wrong) {
    let kept = ["tasks", "blobs", "errors"].map(|key| {
        let sizes = view.bytes(key).into_iter().map(|(id, value)| (id, value.len() as u64));
        sizes.collect::<BTreeMap<String, u64>>()
    });
    for state in ["dead", "cancelled"] {
        let ids = view.pairs(state).into_keys();
        let bytes = |id: String| kept.iter().filter_map(|sizes| sizes.get(&id)).sum::<u64>();
        let stored: u64 = ids.map(bytes).sum();
        let field = format!("{state}_bytes");
        let counted = view.meta(&field);
        wrong.count("meta", &field, counted, stored);
    }
}

/// A mark may stay until the next success, but none may be missing.
fn check_marks(view: &View<'_>, wrong: &mut Wrong) {
    let waiters = view.pairs("waiters");
    let marks = waiters.keys().filter_map(|field| field.strip_prefix('#'));
    for mark in marks.filter(|mark| !MARKED.contains(mark)) {
        wrong.add("waiters", format!("`waiters` has the mark {mark:?}, which no script knows"));
    }
    for key in MARKED {
        if !view.pairs(key).is_empty() && !waiters.contains_key(&format!("#{key}")) {
            wrong.add_with(
                Remedy::Mark,
                "waiters",
                format!("`{key}` has no mark, so successes ignore it"),
            );
        }
    }
}

fn errors_without_tries(view: &View<'_>) -> impl Iterator<Item = String> {
    let tries = view.pairs("tries");
    view.pairs("errors").into_keys().filter(move |id| !tries.contains_key(id))
}
