//! `cancel`, `requeue`, `delete`, `pause`, `purge`, `retire`: the calls of operators and the
//! janitor.

use std::{collections::BTreeMap, time::Duration};

use optimus_core::{
    Lease, TaskId, TaskState,
    broker::{Cancelled, Deleted, Keep, Refusal},
};

use super::{Ledger, Place, Queue, after::Kept, refused};
use crate::{answer::Answer, call::LEDGER_IDLE_MS};

/// How many fences one ms has.
const FENCES_A_MS: u64 = 1024;

/// The maximum number of tasks of each state that one purge removes.
const PURGED_MAX: usize = 64;

/// How long the queue remembers that a task was deleted.
const DELETED_FOR_MS: u64 = 24 * 60 * 60 * 1000;

impl Queue {
    /// Cancels waiting tasks at once, and asks the workers of running tasks to stop them.
    pub(super) fn cancel_all(&mut self, now: u64, ids: &[TaskId]) -> Answer {
        for id in ids {
            if self.tasks.get(id).is_some_and(|task| task.place == Place::Waits) {
                self.leave_unmet(id, Some(Kept::Ended));
            }
        }
        let mut done: BTreeMap<&TaskId, Cancelled> = BTreeMap::new();
        for id in ids {
            if !done.contains_key(id) {
                done.insert(id, self.cancel(now, id));
            }
        }
        self.pass_permits(now);
        Answer::Cancelled(ids.iter().map(|id| done[id]).collect())
    }

    fn cancel(&mut self, now: u64, id: &TaskId) -> Cancelled {
        match self.state(id) {
            TaskState::Cancelled => {}
            state @ (TaskState::Success | TaskState::Dead | TaskState::Forgotten) => {
                return Cancelled::Ended(state);
            }
            TaskState::Working => {
                self.task(id).stop_asked = Some(now);
                let holder = self.holder(id).expect("a worker holds the task").clone();
                let token = self.workers[&holder].holds[id];
                let lease = Lease { id: id.clone(), worker: holder.clone(), token };
                self.cancel_wakeups.entry(holder).or_default().push_back(lease);
                return Cancelled::Requested;
            }
            _ => {
                if self.tasks[id].place == Place::Ready {
                    self.make_tombstone(id);
                }
                if let Place::Delayed(due) | Place::Retry(due) = self.tasks[id].place {
                    self.task(id).due_again = Some(due).filter(|due| *due > now);
                }
                self.leave_lane(id);
                self.end_cancelled(now, id);
            }
        }
        Cancelled::Done
    }

    /// Dead or Cancelled → Ready at the end of the ready list, without tries and with its whole
    /// time to start; its error history stays.
    pub(super) fn requeue(&mut self, now: u64, id: &TaskId) -> Answer {
        let state = self.state(id);
        if !matches!(state, TaskState::Dead | TaskState::Cancelled) {
            return refused(Refusal::WrongState, state.as_str());
        }
        let name = self.tasks[id].mark();
        let owner = name.as_ref().and_then(|name| self.owner_of(name, now));
        if let Some(owner) = owner.filter(|owner| *owner != id) {
            let mark = &self.marks[name.as_ref().expect("the biz id has an owner")];
            let window = if mark.done { format!(" {}", mark.valid_until) } else { String::new() };
            return refused(Refusal::Duplicate, &format!("{}{window}", owner.stored()));
        }
        let open = self.open_again(now, id);
        let prerequisites = self.tasks[id].after.as_ref().map_or(&[][..], |it| &it.prerequisites);
        if let Some(path) = self.cycle_of(id, name.as_ref(), prerequisites, &open) {
            let path: Vec<_> = path.iter().map(TaskId::stored).collect();
            return refused(Refusal::Cycle, &path.join(","));
        }
        self.take_biz(now, id);
        // The task still counts as tried, and its error history stays.
        let task = self.task(id);
        let keeps_place = task.expires_in_ms.is_none();
        task.start_by_ms = task.expires_in_ms.map(|ms| now + ms);
        task.tries = task.tries.or(task.start_by_ms.map(|_| (0, 0, 0))).map(|_| (0, 0, 0));
        task.due_again = None;
        if self.wait_again(now, id) {
            // It joins its lane later.
        } else if self.may_run_again(now, id) && !(keeps_place && self.revive(id)) {
            self.make_ready(now, id, Some(now));
        }
        Answer::Done
    }

    pub(super) fn pause(&mut self, now: u64, paused: bool) -> Answer {
        self.paused_since = paused.then(|| self.paused_since.unwrap_or(now));
        Answer::Done
    }

    /// Delayed, Ready, Retry, Dead, Cancelled → ∅. Waiters are notified that the task is forgotten.
    pub(super) fn delete_all(&mut self, now: u64, ids: &[TaskId]) -> Answer {
        let mut done: BTreeMap<&TaskId, Deleted> = BTreeMap::new();
        for id in ids {
            if !done.contains_key(id) {
                done.insert(id, self.delete(now, id));
            }
        }
        self.pass_permits(now);
        Answer::Deleted(ids.iter().map(|id| done[id]).collect())
    }

    fn delete(&mut self, now: u64, id: &TaskId) -> Deleted {
        let state = self.state(id);
        if matches!(state, TaskState::Working | TaskState::Success | TaskState::Forgotten) {
            return Deleted::Left(state);
        }
        if self.tasks[id].place == Place::Ready {
            self.make_tombstone(id);
        }
        let waiters = std::mem::take(&mut self.task(id).waiters);
        self.drop_task(id);
        self.deleted.insert(id.clone(), now);
        self.notify(waiters, id, TaskState::Forgotten);
        Deleted::Done
    }

    /// Removes a task that did not succeed, and frees its biz id.
    fn drop_task(&mut self, id: &TaskId) {
        self.tell_end(id, TaskState::Forgotten);
        self.leave_unmet(id, None);
        self.release_biz(id);
        self.leave_lane(id);
        self.tasks.remove(id);
        self.purged += 1;
    }

    /// Dead and Cancelled → ∅. Removes the oldest tasks of each state while one is past its age, or
    /// the tasks are above the limit of number or bytes. The number takes no task that has just
    /// ended. It keeps tasks that block their lanes.
    /// It also removes idle ledgers. For tasks that were deleted a day ago, only the latest time of
    /// their ids is kept.
    pub(super) fn purge(&mut self, now: u64, keep: Keep) -> Answer {
        let ms =
            |time: Duration| u64::try_from(time.as_millis()).expect("a step names short times");
        let (age_ms, recent_ms) = (ms(keep.age), ms(keep.recent));
        let (mut tasks, mut more, mut above_count, mut above_bytes) = (0, false, 0, 0);
        for kind in [TaskState::Dead, TaskState::Cancelled] {
            let (mut taken, mut kept) = (0, 0);
            let from = if kind == TaskState::Dead { self.purge_from } else { 0 };
            let oldest: Vec<_> = self.ended(kind).into_iter().skip(from).take(PURGED_MAX).collect();
            let mut goes_on = oldest.len() == PURGED_MAX;
            for (at, id) in oldest {
                let is_old = at + age_ms <= now;
                let is_recent = at <= now && at + recent_ms > now;
                let is_above = self.ended(kind).len() > keep.tasks && !is_recent;
                let is_heavy = self.ended_bytes(kind) > keep.bytes;
                if !(is_old || is_above || is_heavy) {
                    goes_on = false;
                    break;
                }
                if kind == TaskState::Dead && self.tasks[&id].lane_at.is_some() {
                    kept += 1;
                    continue;
                }
                if is_above && !is_old {
                    above_count += 1;
                } else if is_heavy && !is_old {
                    above_bytes += 1;
                }
                self.drop_task(&id);
                self.purged_born = self.purged_born.max(Some(id.made_ms()));
                taken += 1;
            }
            if kind == TaskState::Dead {
                self.purge_from = if goes_on { from + kept } else { 0 };
            }
            more |= goes_on && taken > 0;
            tasks += taken;
        }
        self.pass_permits(now);
        let mut deleted: Vec<_> = self.deleted.iter().map(|(id, at)| (*at, id.clone())).collect();
        deleted.retain(|(at, _)| at + DELETED_FOR_MS <= now);
        deleted.sort();
        more |= deleted.len() >= PURGED_MAX;
        for (_, id) in deleted.into_iter().take(PURGED_MAX) {
            self.deleted.remove(&id);
            self.purged_born = self.purged_born.max(Some(id.made_ms()));
        }
        self.ledgers.retain(|_, l| l.kept_at.is_none_or(|kept| kept + LEDGER_IDLE_MS > now));
        Answer::Purged { tasks, more, workers: self.workers.len(), above_count, above_bytes }
    }

    /// Returns the bytes of the tasks that ended in this state.
    pub(super) fn ended_bytes(&self, state: TaskState) -> u64 {
        let bytes = |(_, id): &(u64, TaskId)| {
            let task = &self.tasks[id];
            let lines = task.errors.iter().map(String::as_str).collect::<Vec<_>>();
            task.bytes + lines.join("\n").len() as u64
        };
        self.ended(state).iter().map(bytes).sum()
    }

    /// Removes an unused queue, except for keys that expire: an unused queue → ∅.
    pub(super) fn retire(&mut self, now: u64, idle_ms: u64) -> Answer {
        let is_kept = |ledger: &Ledger| ledger.kept_at.is_some();
        let is_used = !self.tasks.is_empty()
            || !self.workers.is_empty()
            || !self.ties.is_empty()
            || !self.widths.is_empty()
            || !self.outbox.effects.is_empty()
            || self.ledgers.values().any(is_kept);
        let ended_at =
            self.success.back().and_then(|(_, summary)| summary.split(' ').nth(1)?.parse().ok());
        let before = now - idle_ms;
        let is_idle = self.fence < before * FENCES_A_MS
            && self.watched_at.is_none_or(|at| at < before)
            && ended_at.is_none_or(|at: u64| at < before);
        let is_gone = !is_used && is_idle && self.paused_since.is_none();
        if is_gone {
            *self = Self {
                results: std::mem::take(&mut self.results),
                marks: std::mem::take(&mut self.marks),
                completions: std::mem::take(&mut self.completions),
                cancel_wakeups: std::mem::take(&mut self.cancel_wakeups),
                succeeded: std::mem::take(&mut self.succeeded),
                outcomes: std::mem::take(&mut self.outcomes),
                own: self.own.take(),
                full: self.full,
                ..Self::default()
            };
        }
        Answer::Retired(is_gone)
    }

    /// Returns the tasks that ended in this state, the oldest first.
    pub(super) fn ended(&self, state: TaskState) -> Vec<(u64, TaskId)> {
        let ended = self.tasks.iter().filter_map(|(id, task)| match (task.place, state) {
            (Place::Dead(at), TaskState::Dead) | (Place::Cancelled(at), TaskState::Cancelled) => {
                Some((at, id.clone()))
            }
            _ => None,
        });
        let mut ended: Vec<_> = ended.collect();
        ended.sort();
        ended
    }
}
