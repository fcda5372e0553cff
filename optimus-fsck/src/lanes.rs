//! Checks lanes. A task with a permit may run, a task that waits has a reason, and the counts
//! agree.

use std::collections::{BTreeMap, BTreeSet};

use optimus_core::{Lane, LaneFailure, TaskRecord};

use super::{gathers, states::places, view::View};
use crate::{remedy::Remedy, violation::Wrong};

/// The scores of a task with a permit, and of one that waits for its next attempt without one.
const HAS_PERMIT: i64 = -1;
const IS_AWAY: i64 = -2;

/// `widest` of a queue in which widths are set at run time, and of one in which they were.
const WIDTHS_SET: u64 = 65_536;
const WIDTHS_WERE_SET: u64 = 65_535;

pub(super) fn check(view: &View<'_>, wrong: &mut Wrong) {
    let tasks = Tasks::of(view);
    if !tasks.lanes.is_empty() && view.meta("needs") < 2 {
        wrong.add_with(
            Remedy::Upgrade,
            "meta",
            "tasks have lanes, and older scripts would still change the queue",
        );
    }
    let (mut waiting, mut blocked) = (BTreeSet::new(), 0);
    let widths = Widths::of(view, wrong);
    for key in view.owners("lane:") {
        let waits = check_lane(key, &scores(view, key), &tasks, &widths, wrong);
        blocked += waits;
        if waits > 0 {
            waiting.insert(key);
        }
    }
    for (id, lane) in &tasks.lanes {
        let place = tasks.place(id);
        let may_run = ["ready", "priority"].contains(&place)
            || ["working:", "wait:"].iter().any(|kind| place.starts_with(kind));
        if may_run && scores(view, &lane.key).get(id) != Some(&HAS_PERMIT) {
            wrong.of_task(
                &format!("lane:{}", lane.key),
                format!("{id} is in {place} without a permit of its lane {:?}", lane.key),
            );
        }
    }
    let listed = view.pairs("lanes");
    for lane in waiting.iter().filter(|lane| !listed.contains_key(**lane)) {
        wrong
            .add("lanes", format!("tasks wait in the lane {lane:?}, and `lanes` does not have it"));
    }
    for lane in listed.keys().filter(|lane| !waiting.contains(lane.as_str())) {
        wrong.add("lanes", format!("`lanes` has {lane:?}, and no task waits in that lane"));
    }
    let limited = view.owners("wait:").map(|class| view.pairs(&format!("wait:{class}")).len());
    let limited = limited.sum::<usize>() as u64;
    let gathered: u64 = view.owners("gather:").map(|key| gathers::waiting(view, key)).sum();
    wrong.count("meta", "blocked", view.meta("blocked"), blocked + limited + gathered);
}

/// Checks the tasks of one lane. Returns how many of them wait.
fn check_lane(
    key: &str,
    members: &BTreeMap<String, i64>,
    tasks: &Tasks,
    set: &Widths,
    wrong: &mut Wrong,
) -> u64 {
    let mut widths = BTreeSet::new();
    for (id, at) in members {
        let Some(lane) = tasks.lanes.get(id).filter(|lane| lane.key == key) else {
            wrong.of_task_with(
                Remedy::Report,
                &format!("lane:{key}"),
                format!("{id} is in the lane {key:?} and its record states another"),
            );
            continue;
        };
        widths.insert(u64::from(lane.width.get()));
        let place = tasks.place(id);
        let blocks = lane.on_failure == LaneFailure::Block;
        let fits = match *at {
            IS_AWAY => {
                let is_wide = lane.width.get() > 1 || set.were_changed;
                ["delayed", "retry"].contains(&place) && is_wide
            }
            HAS_PERMIT => place != "cancelled" && (place != "dead" || blocks),
            at => at >= 0 && place.starts_with("lane:"),
        };
        if !fits {
            wrong.of_task_with(
                Remedy::Report,
                &format!("lane:{key}"),
                format!("{id} is at {at} in the lane {key:?}, and in {place}"),
            );
        }
    }
    let permits = members.values().filter(|at| **at == HAS_PERMIT).count() as u64;
    let waits = members.values().filter(|at| **at >= 0).count() as u64;
    if let Some(width) = set.of.get(key) {
        widths = BTreeSet::from([*width]);
    }
    // A lane whose tasks have several widths changes its width with each of them. One that was made
    // narrower takes nothing back.
    if let (Some(width), 1) = (widths.first(), widths.len()) {
        if permits > *width && !set.were_changed {
            wrong.add(
                &format!("lane:{key}"),
                format!("more tasks of the lane {key:?} have a permit than its width of {width}"),
            );
        }
        if waits > 0 && permits < *width {
            wrong.add(
                &format!("lane:{key}"),
                format!("tasks of the lane {key:?} wait for a free permit"),
            );
        }
    }
    waits
}

/// The widths that are set at run time.
struct Widths {
    of: BTreeMap<String, u64>,
    /// Whether there are or were any.
    were_changed: bool,
}

impl Widths {
    fn of(view: &View<'_>, wrong: &mut Wrong) -> Self {
        let set = view.pairs("widths").into_iter();
        let of: BTreeMap<String, u64> =
            set.map(|(key, width)| (key, width.parse().unwrap_or(0))).collect();
        let widest = view.meta("widest");
        if !of.is_empty() && (widest != WIDTHS_SET || view.meta("needs") < 7) {
            wrong.add("meta", "widths of lanes are set, and scripts would not read them");
        }
        Self { of, were_changed: widest >= WIDTHS_WERE_SET }
    }
}

/// The lane that each record states, and where each task is.
struct Tasks {
    lanes: BTreeMap<String, Lane>,
    places: BTreeMap<String, Vec<String>>,
}

impl Tasks {
    fn of(view: &View<'_>) -> Self {
        let lane = |(id, record)| Some((id, TaskRecord::decode(record).ok()?.lane?));
        let lanes = view.bytes("tasks").into_iter().filter_map(lane).collect();
        Self { lanes, places: places(view) }
    }

    fn place(&self, id: &str) -> &str {
        self.places.get(id).map_or("nowhere", |places| &places[0])
    }
}

/// The tasks of a lane and their scores.
fn scores(view: &View<'_>, key: &str) -> BTreeMap<String, i64> {
    let members = view.pairs(&format!("lane:{key}")).into_iter();
    members.map(|(id, at)| (id, at.parse().unwrap_or(i64::MIN))).collect()
}
