//! The ready list: first come, first served, except for tasks with a priority, which are ranked.

use std::collections::VecDeque;

use optimus_core::TaskId;

use super::{Departure, Place, Queue};

/// The ms of waiting that equal one step of priority.
const STEP_MS: i64 = 60_000;

/// One entry of the ready list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: TaskId,
    /// The time since which the task is ready; `None` means the time in the task's id.
    pub(crate) stamp: Option<u64>,
    /// Whether the task was cancelled, so that a claim skips the entry.
    pub(crate) tombstone: bool,
}

impl Entry {
    fn since(&self) -> i64 {
        signed(self.stamp.unwrap_or_else(|| self.id.made_ms()))
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).expect("ms fit")
}

impl Queue {
    /// Returns the rank of a task with this priority that is ready since this time.
    fn rank(since: u64, priority: i8) -> Place {
        Place::Ranked(signed(since) - i64::from(priority) * STEP_MS)
    }

    /// Adds a task to the end of the ready list, with `stamp` or the time of its id. A task with a
    /// priority is ranked from now on.
    pub(super) fn make_ready(&mut self, now: u64, id: &TaskId, stamp: Option<u64>) {
        let task = self.task(id);
        if task.priority == 0 {
            task.place = Place::Ready;
            self.ready.push_back(Entry { id: id.clone(), stamp, tombstone: false });
        } else {
            task.place = Self::rank(now, task.priority);
        }
    }

    /// Puts tasks back to the head of the ready list, in order. Tasks with a priority get their
    /// rank by the time of their ids.
    pub(super) fn back_to_ready(&mut self, now: u64, ids: &[TaskId]) {
        for id in ids.iter().rev() {
            let task = self.task(id);
            if task.priority == 0 {
                task.place = Place::Ready;
                let stamp = Some(id.made_ms().min(now));
                self.ready.push_front(Entry { id: id.clone(), stamp, tombstone: false });
            } else {
                task.place = Self::rank(id.made_ms().min(now), task.priority);
            }
        }
    }

    /// Puts this many entries at the end of the ready list into the order that the store chose.
    pub(super) fn order_last(&mut self, count: usize, seen: &[TaskId]) {
        let from = self.ready.len() - count;
        let rank = |entry: &Entry| seen.iter().rposition(|id| *id == entry.id);
        self.ready.make_contiguous()[from..].sort_by_key(rank);
    }

    /// Makes a task's entry a tombstone.
    pub(super) fn make_tombstone(&mut self, id: &TaskId) {
        let mut entries = self.ready.iter_mut();
        let entry = entries.find(|entry| entry.id == *id && !entry.tombstone);
        entry.expect("a ready task without a priority has an entry").tombstone = true;
    }

    /// Gives a task the entry of its last tombstone again. Returns whether there was one.
    pub(super) fn revive(&mut self, id: &TaskId) -> bool {
        let mut entries = self.ready.iter_mut().rev();
        let Some(entry) = entries.find(|entry| entry.id == *id && entry.tombstone) else {
            return false;
        };
        entry.tombstone = false;
        self.task(id).place = Place::Ready;
        true
    }

    /// Takes the next task: the head of the ready list, unless a ranked task comes first. Tasks
    /// that have just become due follow, up to the first one with a priority, which must be ranked
    /// before.
    pub(super) fn take_next(&mut self, due: &mut VecDeque<TaskId>) -> Option<TaskId> {
        loop {
            let best = self.ranked().min();
            match (self.ready.front(), best) {
                (Some(head), Some((rank, id))) if rank < head.since() => return Some(id),
                (None, Some((_, id))) => return Some(id),
                (Some(_), _) => {
                    let entry = self.ready.pop_front().expect("the list has a head");
                    if !entry.tombstone {
                        return Some(entry.id);
                    }
                }
                (None, None) => {
                    let is_plain = |id: &TaskId| self.tasks[id].priority == 0;
                    return due.front().is_some_and(is_plain).then(|| due.pop_front()).flatten();
                }
            }
        }
    }

    /// Tasks with a priority, with their rank.
    fn ranked(&self) -> impl Iterator<Item = (i64, TaskId)> {
        self.tasks.iter().filter_map(|(id, task)| match task.place {
            Place::Ranked(rank) => Some((rank, id.clone())),
            _ => None,
        })
    }

    /// Removes tombstones from the head until this many entries are left.
    pub(super) fn pass_over(&mut self, left: usize) -> Result<(), Departure> {
        while self.ready.len() > left {
            let entry = self.ready.pop_front().expect("the list has more entries");
            if !entry.tombstone {
                return Err(format!(
                    "{} was removed from the ready list and not granted",
                    entry.id
                ));
            }
        }
        Ok(())
    }

    /// Returns how many tombstones are in the ready list.
    pub(crate) fn tombstones(&self) -> usize {
        self.ready.iter().filter(|entry| entry.tombstone).count()
    }
}
