//! The line: first come, first served, but for those with a priority, who stand by their rank.

use std::collections::VecDeque;

use optimus_core::TaskId;

use super::{Departure, Place, Queue};

/// What a step of priority is worth.
const STEP_MS: i64 = 60_000;

/// One entry of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: TaskId,
    /// In line since then; `None` stands for the task's birth, as its id tells.
    pub(crate) stamp: Option<u64>,
    /// Its task was cancelled: a claim passes it over.
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
    /// Where a task with this priority stands that is in line since then.
    fn rank(since: u64, priority: i8) -> Place {
        Place::Ranked(signed(since) - i64::from(priority) * STEP_MS)
    }

    /// To the end of the line, in it since `stamp` or since its birth; or to its rank from now on.
    pub(super) fn line_up(&mut self, now: u64, id: &TaskId, stamp: Option<u64>) {
        let task = self.task(id);
        if task.priority == 0 {
            task.place = Place::Ready;
            self.line.push_back(Entry { id: id.clone(), stamp, tombstone: false });
        } else {
            task.place = Self::rank(now, task.priority);
        }
    }

    /// Back to the head of the line, in their order, or to the rank since their birth.
    pub(super) fn line_up_again(&mut self, now: u64, ids: &[TaskId]) {
        for id in ids.iter().rev() {
            let task = self.task(id);
            if task.priority == 0 {
                task.place = Place::Ready;
                let stamp = Some(id.made_ms().min(now));
                self.line.push_front(Entry { id: id.clone(), stamp, tombstone: false });
            } else {
                task.place = Self::rank(id.made_ms().min(now), task.priority);
            }
        }
    }

    /// Makes a task's entry a tombstone.
    pub(super) fn entry_mark_dead(&mut self, id: &TaskId) {
        let mut entries = self.line.iter_mut();
        let entry = entries.find(|entry| entry.id == *id && !entry.tombstone);
        entry.expect("a ready task without a priority has an entry").tombstone = true;
    }

    /// Takes the next out of the line: the head, unless somebody ranks before it; behind them what
    /// has just become due, up to the first with a priority, who is ranked first.
    pub(super) fn take_next(&mut self, due: &mut VecDeque<TaskId>) -> Option<TaskId> {
        loop {
            let best = self.ranked().min();
            match (self.line.front(), best) {
                (Some(head), Some((rank, id))) if rank < head.since() => return Some(id),
                (None, Some((_, id))) => return Some(id),
                (Some(_), _) => {
                    let entry = self.line.pop_front().expect("there is a head");
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

    /// Those with a priority by their rank.
    fn ranked(&self) -> impl Iterator<Item = (i64, TaskId)> {
        self.tasks.iter().filter_map(|(id, task)| match task.place {
            Place::Ranked(rank) => Some((rank, id.clone())),
            _ => None,
        })
    }

    /// Drops tombstones from the head until so many entries are left.
    pub(super) fn pass_over(&mut self, left: usize) -> Result<(), Departure> {
        while self.line.len() > left {
            let entry = self.line.pop_front().expect("it is longer than that");
            if !entry.tombstone {
                return Err(format!("{} has gone from the line and was not granted", entry.id));
            }
        }
        Ok(())
    }

    /// How many tombstones are in the line.
    pub(crate) fn tombstones(&self) -> usize {
        self.line.iter().filter(|entry| entry.tombstone).count()
    }
}
