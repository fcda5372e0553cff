//! Checks tasks that run together. Each key with tasks is due at some time, and each task waits in
//! its key.

use std::collections::{BTreeMap, BTreeSet};

use optimus_core::TaskRecord;

use super::{states::places, view::View};
use crate::{remedy::Remedy, violation::Wrong};

/// The score of the task that leads the next run of a key.
const LEADS: &str = "-1";

pub(super) fn check(view: &View<'_>, wrong: &mut Wrong) {
    let records: BTreeMap<String, TaskRecord> = view
        .bytes("tasks")
        .into_iter()
        .filter_map(|(id, record)| Some((id, TaskRecord::decode(record).ok()?)))
        .filter(|(_, record)| record.gather.is_some())
        .collect();
    if !records.is_empty() && view.meta("needs") < 6 {
        wrong.add_with(
            Remedy::Upgrade,
            "meta",
            "tasks run together, and older scripts would still change the queue",
        );
    }
    let tries = view.pairs("tries");
    let keys: BTreeMap<&str, String> = records
        .iter()
        .filter_map(|(id, record)| Some((&**id, key_of(record, tries.get(id))?)))
        .collect();
    check_keys(view, &keys, wrong);
    check_due(view, wrong);
    check_ready(view, &records, &keys, wrong);
}

/// The key that a record and its tries state.
fn key_of(record: &TaskRecord, tries: Option<&String>) -> Option<String> {
    let (gather, task) = (record.gather.as_ref()?, &record.task);
    let counts = tries.map(|tries| tries.splitn(3, ':').take(2).collect::<Vec<_>>().join(":"));
    Some(match counts.filter(|counts| counts != "0:0") {
        Some(counts) => format!("{task}#{counts}:{}", gather.by),
        None => format!("{task}:{}", gather.by),
    })
}

/// How many tasks wait in the key.
pub(super) fn waiting(view: &View<'_>, key: &str) -> u64 {
    let members = view.pairs(&format!("gather:{key}"));
    members.values().filter(|at| *at != LEADS).count() as u64
}

fn check_keys(view: &View<'_>, keys: &BTreeMap<&str, String>, wrong: &mut Wrong) {
    for key in view.owners("gather:") {
        let members = view.pairs(&format!("gather:{key}"));
        for (id, at) in &members {
            let stated = keys.get(&**id);
            // A task that led may have ended before it collected.
            if at != LEADS && stated.is_none_or(|stated| stated != key) {
                wrong.of_task_with(
                    Remedy::Stuck,
                    &format!("gather:{key}"),
                    format!("{id} waits in {key:?}, and its record states {stated:?}"),
                );
            }
        }
        let leaders = members.values().filter(|at| *at == LEADS).count();
        if leaders > 1 {
            wrong.add(
                &format!("gather:{key}"),
                format!("{leaders} tasks lead the next run of {key:?}"),
            );
        }
    }
}

fn check_due(view: &View<'_>, wrong: &mut Wrong) {
    let keys: BTreeSet<&str> = view.owners("gather:").collect();
    let due = view.pairs("gathers");
    wrong.compare("gathers", "gather:", &due.keys().map(String::as_str).collect(), &keys);
    let hint = view.pairs("meta").get("due").and_then(|due| due.parse::<u64>().ok());
    for (key, at) in due {
        if hint.is_none_or(|hint| at.parse().is_ok_and(|at: u64| hint > at)) {
            wrong.add_with(
                Remedy::Due,
                "meta",
                format!("a run of {key:?} is due before any claim will read it"),
            );
        }
    }
}

/// A ready task leads the next run of its key, unless it must run alone.
fn check_ready(
    view: &View<'_>,
    records: &BTreeMap<String, TaskRecord>,
    keys: &BTreeMap<&str, String>,
    wrong: &mut Wrong,
) {
    let (places, tries) = (places(view), view.pairs("tries"));
    for (id, record) in records {
        let place = places.get(id).map_or("", |places| &places[0]);
        let is_ready = ["ready", "priority"].contains(&place) || place.starts_with("wait:");
        let losses: u32 = tries
            .get(id)
            .and_then(|tries| tries.split(':').nth(1)?.parse().ok())
            .unwrap_or_default();
        let is_alone = losses > 0 && losses + 1 >= record.max_losses;
        let key = keys.get(&**id).map_or("", String::as_str);
        let leads = view.pairs(&format!("gather:{key}")).get(id).is_some_and(|at| at == LEADS);
        if is_ready && !is_alone && !leads {
            wrong.of_task(
                &format!("gather:{key}"),
                format!("{id} is in {place} and leads no run of {key:?}"),
            );
        }
    }
}
