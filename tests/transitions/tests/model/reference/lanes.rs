//! Lanes: a limited number of the tasks of a key have a permit, and the others wait in order.

use std::collections::BTreeMap;

use optimus_core::{Lane, LaneFailure, TaskId};

use super::{Place, Queue};
use crate::answer::Answer;

/// A lane of a queue with the tasks that leave it in one call.
#[derive(Debug, Clone)]
pub(super) struct Leaving {
    key: String,
    width: usize,
    freed: usize,
}

/// The places that a call has given: how many, by lane, and the last one before it.
#[derive(Debug, Clone, Default)]
pub(super) struct Placed {
    before: i64,
    count: BTreeMap<String, i64>,
}

/// How many tasks a call offers at most in addition to the permits that it frees.
const WIDENED_MAX: usize = 16;
/// How many tasks a call offers at most that sets a width.
const OFFERED_MAX: usize = 128;

/// The values of `widest` if widths are set, and after the last one was removed.
const WIDTHS_SET: u32 = 65_536;
const WIDTHS_WERE_SET: u32 = 65_535;

/// Where a task is in its lane, as stored.
const IS_AWAY: i64 = -2;
const HAS_PERMIT: i64 = -1;
const COMES_BACK: i64 = 0;

impl Queue {
    fn in_lane(&self, key: &str) -> impl Iterator<Item = (i64, TaskId)> {
        let of_lane = self
            .tasks
            .iter()
            .filter(move |(_, task)| task.lane.as_ref().is_some_and(|lane| lane.key == key));
        of_lane.filter_map(|(id, task)| Some((task.lane_at?, id.clone())))
    }

    /// How many tasks wait in lanes.
    pub(super) fn blocked(&self) -> u64 {
        self.tasks.values().filter(|task| task.place == Place::Blocked).count() as u64
    }

    pub(crate) fn has_blocked(&self) -> bool {
        !self.some_blocked(1).is_empty()
    }

    /// Up to this many tasks that wait in lanes.
    pub(crate) fn some_blocked(&self, count: usize) -> Vec<TaskId> {
        let is_blocked = |place| matches!(place, Place::Blocked | Place::Waits);
        let blocked = self.tasks.iter().filter(|(_, task)| is_blocked(task.place));
        blocked.take(count).map(|(id, _)| id.clone()).collect()
    }

    fn permits(&self, key: &str) -> usize {
        self.in_lane(key).filter(|(at, _)| *at == HAS_PERMIT).count()
    }

    /// The tasks that wait in a lane, in their order.
    fn waiting(&self, key: &str) -> Vec<TaskId> {
        let mut waiting: Vec<_> = self.in_lane(key).filter(|(at, _)| *at >= COMES_BACK).collect();
        waiting.sort();
        waiting.into_iter().map(|(_, id)| id).collect()
    }

    /// A task that is due joins its lane, unless it has a permit. Returns whether it may run; if
    /// not, it waits.
    pub(super) fn may_run(&mut self, now: u64, id: &TaskId) -> bool {
        let task = &self.tasks[id];
        let Some(lane) = task.lane.clone() else { return true };
        let at = task.lane_at;
        if at == Some(HAS_PERMIT) {
            return true;
        }
        let is_calm = self.waiting(&lane.key).is_empty();
        if is_calm && self.permits(&lane.key) < self.width(&lane) {
            self.task(id).lane_at = Some(HAS_PERMIT);
            return true;
        }
        // Tasks that had a turn come first.
        let at = if at.is_some() { COMES_BACK } else { self.next_place(&lane.key) };
        self.wait_in_lane(now, id, at);
        false
    }

    /// The same for a task that an operator requeues, which had a turn.
    pub(super) fn may_run_again(&mut self, now: u64, id: &TaskId) -> bool {
        let task = self.task(id);
        if task.lane.is_some() {
            task.lane_at = task.lane_at.or(Some(IS_AWAY));
        }
        self.may_run(now, id)
    }

    /// A call begins in which tasks may join lanes.
    pub(super) fn begin_places(&mut self) {
        self.placed = Placed { before: self.places, count: BTreeMap::new() };
    }

    /// The lanes of a call share its places, because these order only the tasks of one lane.
    fn next_place(&mut self, key: &str) -> i64 {
        let count = self.placed.count.entry(key.to_owned()).or_default();
        *count += 1;
        let place = self.placed.before + *count;
        self.places = self.places.max(place);
        place
    }

    fn wait_in_lane(&mut self, now: u64, id: &TaskId, at: i64) {
        let task = self.task(id);
        (task.lane_at, task.place) = (Some(at), Place::Blocked);
        let key = task.lane.as_ref().expect("it has a lane").key.clone();
        self.lanes_since.entry(key).or_insert(now);
    }

    /// A task leaves its lane, if it has joined it. [`Self::pass_permits`] follows.
    pub(super) fn leave_lane(&mut self, id: &TaskId) {
        self.move_in_lane(id, None);
    }

    /// A task that died leaves its lane unless it blocks it.
    pub(super) fn die_in_lane(&mut self, id: &TaskId) {
        let lane = self.tasks[id].lane.as_ref();
        if lane.is_some_and(|lane| lane.on_failure == LaneFailure::Skip) {
            self.leave_lane(id);
        }
    }

    /// A task that waits for its next attempt gives its permit back, if the lane has several.
    pub(super) fn step_aside(&mut self, id: &TaskId) {
        let lane = self.tasks[id].lane.as_ref();
        if lane.is_some_and(|lane| self.width(lane) > 1) {
            self.move_in_lane(id, Some(IS_AWAY));
        }
    }

    fn move_in_lane(&mut self, id: &TaskId, to: Option<i64>) {
        let task = self.task(id);
        let Some(lane) = task.lane.clone() else { return };
        let before = std::mem::replace(&mut task.lane_at, to);
        if before.is_none() {
            return;
        }
        let freed = usize::from(before == Some(HAS_PERMIT));
        if let Some(known) = self.leaving.iter_mut().find(|leaving| leaving.key == lane.key) {
            known.freed += freed;
        } else {
            let width = self.width(&lane);
            self.leaving.push(Leaving { key: lane.key, width, freed });
        }
    }

    /// Gives the permits that became free in this call to tasks that wait. Returns how many entries
    /// that adds to the ready list.
    pub(super) fn pass_permits(&mut self, now: u64) -> usize {
        let before = self.ready.len();
        let mut going = Vec::new();
        for Leaving { key, width, freed } in std::mem::take(&mut self.leaving) {
            let room = if freed > 0 { width.saturating_sub(self.permits(&key)) } else { 0 };
            going.extend(self.offer(&key, room.min(freed + WIDENED_MAX)));
        }
        for id in going {
            self.make_ready(now, &id, Some(now));
        }
        self.ready.len() - before
    }

    /// Gives up to this many permits to tasks that wait. Returns these tasks.
    fn offer(&mut self, key: &str, room: usize) -> Vec<TaskId> {
        let mut going = self.waiting(key);
        going.truncate(room);
        for id in &going {
            self.task(id).lane_at = Some(HAS_PERMIT);
        }
        if self.waiting(key).is_empty() {
            self.lanes_since.remove(key);
        }
        going
    }

    /// How many tasks of the lane may run at once. What is set wins.
    fn width(&self, lane: &Lane) -> usize {
        usize::from(self.widths.get(&lane.key).copied().unwrap_or(lane.width.get()))
    }

    /// An operator sets the width of a lane, or removes what was set.
    pub(super) fn resize(&mut self, now: u64, key: &str, width: Option<u16>) -> Answer {
        let before = self.widths.get(key).copied();
        if let Some(width) = width {
            self.widths.insert(key.to_owned(), width);
            self.widest = WIDTHS_SET;
        } else if self.widths.remove(key).is_some() && self.widths.is_empty() {
            self.widest = WIDTHS_WERE_SET;
        }
        // Without a width that was set, the first task that waits decides.
        let first = self.waiting(key).first().and_then(|id| self.tasks[id].lane.clone());
        let width = first.map_or(0, |lane| self.width(&lane));
        let room = width.saturating_sub(self.permits(key)).min(OFFERED_MAX);
        let going = self.offer(key, room);
        let more = going.len() == OFFERED_MAX && !self.waiting(key).is_empty();
        for id in going {
            self.make_ready(now, &id, Some(now));
        }
        Answer::Resized { before, more }
    }

    /// The version that older scripts must know.
    pub(super) fn needs(&self) -> u64 {
        match self {
            Self { widest: WIDTHS_WERE_SET.., .. } => 7,
            Self { has_after: true, .. } => 4,
            _ => u64::from(self.widest > 0) * 2,
        }
    }
}
