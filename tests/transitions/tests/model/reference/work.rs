//! `claim`: Ready → Working; due tasks become Ready first.

use std::collections::VecDeque;

use optimus_core::{
    TaskId, Token, WorkerId,
    broker::{Refusal, StartBy},
};

use super::{Departure, Place, Queue, refused};
use crate::{
    answer::{Answer, Grant, Granted},
    observed::Observed,
};

/// The maximum number of tasks that one claim grants.
const GRANTS_MAX: usize = 128;

impl Queue {
    /// Grants a worker up to `want` tasks with one token, in the order of the ready list. A repeat
    /// of the worker's last claim returns the tasks of that claim that the worker still holds.
    pub(super) fn claim(
        &mut self,
        now: u64,
        name: &WorkerId,
        seq: u64,
        want: usize,
        alone: bool,
        seen: &Observed<'_>,
    ) -> Result<Answer, Departure> {
        self.begin_places();
        let Some(worker) = self.workers.get(name).filter(|worker| worker.over_at() > now) else {
            return Ok(refused(Refusal::Lapsed, ""));
        };
        match worker.last_claim {
            Some(last) if seq < last.seq => return Ok(refused(Refusal::Stale, "")),
            Some(last) if seq == last.seq => return Ok(self.repeated(name, last)),
            _ => {}
        }
        if self.paused_since.is_some() {
            // A worker that was woken waits again.
            self.woken = false;
            return Ok(refused(Refusal::Paused, ""));
        }
        let Answer::Granted(answer) = seen.answer else {
            return Err(format!("a valid claim returns {:?}", seen.answer));
        };
        if answer.grants.len() > want.min(GRANTS_MAX) {
            return Err(format!("{} were asked for: {answer:?}", want.min(GRANTS_MAX)));
        }
        let token = Token { seq, fence: (self.fence + 1).max(now * 1024) };
        let ids = self.take_as_many(now, answer.grants.len(), seen)?;
        for id in &ids {
            self.hold(name, id, token);
        }
        let worker = self.workers.get_mut(name).expect("the worker is alive");
        if !ids.is_empty() && worker.is_long {
            (worker.expiry, worker.is_long) = (now + worker.lease_ms, false);
        }
        if !ids.is_empty() || (worker.alone && !alone) {
            // A claim that grants nothing also ends the mark of a task that runs alone.
            (worker.alone, worker.last_claim) = (alone, Some(token));
            self.fence = token.fence;
        }
        self.woken = false;
        let short = ids.len() < want.min(GRANTS_MAX) && !answer.more;
        if short && self.claimable() {
            return Err("the claim reports that no work is left, and there is some".into());
        }
        let grants = ids.iter().map(|id| self.grant(id)).collect();
        let next_due_ms = if answer.more { None } else { self.wait_for_due(now, name) };
        Ok(Answer::Granted(Granted { token, more: answer.more, next_due_ms, grants }))
    }

    /// Returns the time until the next task is due. One worker waits for it, and the others are
    /// standbys.
    fn wait_for_due(&mut self, now: u64, name: &WorkerId) -> Option<u64> {
        let next_due = self.due_hint?;
        let waits = self
            .timer
            .as_ref()
            .filter(|(holder, due)| holder != name && *due > now && *due <= next_due);
        if let Some((_, due)) = waits {
            return Some(due - now);
        }
        self.timer = Some((name.clone(), next_due));
        Some(next_due - now)
    }

    /// Returns the answer to a repeated claim, in the order of the ids.
    fn repeated(&self, name: &WorkerId, last: Token) -> Answer {
        let held = self.workers[name].holds.iter().filter(|(_, token)| **token == last);
        let mut grants: Vec<_> = held.map(|(id, _)| self.grant(id)).collect();
        grants.sort();
        Answer::Granted(Granted { token: last, more: true, next_due_ms: None, grants })
    }

    /// Takes this many tasks, and as many tombstones as the store did, and adds the other due tasks
    /// to the ready list.
    fn take_as_many(
        &mut self,
        now: u64,
        count: usize,
        seen: &Observed<'_>,
    ) -> Result<Vec<TaskId>, Departure> {
        let is_due = self.due_hint.is_some_and(|hint| hint <= now);
        let mut due: VecDeque<TaskId> = if is_due { self.due(now) } else { VecDeque::new() };
        due.retain(|id| self.may_run(now, id));
        let mut ids = Vec::new();
        for _ in 0..count {
            let id = self.take_next(&mut due).ok_or("more tasks are granted than are ready")?;
            // This removes the task from its rank, so that the next search finds another task.
            self.task(&id).place = Place::Ready;
            ids.push(id);
        }
        let joining = due.iter().filter(|id| self.tasks[*id].priority == 0).count();
        self.pass_over(seen.ready.len().saturating_sub(joining))?;
        for id in &due {
            self.make_ready(now, id, Some(now));
        }
        if is_due {
            self.due_hint = self.next_due();
            if self.due_hint.is_none() {
                self.timer = None;
            }
        }
        Ok(ids)
    }

    /// Returns the due tasks that a claim moves: first delayed ones, then retries, each by its
    /// time, and at most as many of each as a claim may grant.
    fn due(&self, now: u64) -> VecDeque<TaskId> {
        let of = |time: fn(Place) -> Option<u64>| {
            let due = self.tasks.iter().filter_map(|(id, task)| Some((time(task.place)?, id)));
            let mut due: Vec<_> = due.filter(|(time, _)| *time <= now).collect();
            due.sort();
            due.into_iter().take(GRANTS_MAX).map(|(_, id)| id.clone())
        };
        of(Place::delayed_until).chain(of(Place::retry_at)).collect()
    }

    /// Notes that a task is due at this time.
    pub(super) fn due_at_latest(&mut self, due: u64) {
        self.due_hint = Some(self.due_hint.map_or(due, |hint| hint.min(due)));
    }

    /// Returns when the next task is due.
    fn next_due(&self) -> Option<u64> {
        let places = || self.tasks.values().map(|task| task.place);
        places().filter_map(|place| place.delayed_until().or(place.retry_at())).min()
    }

    /// Returns whether any task is ready.
    pub(crate) fn claimable(&self) -> bool {
        let mut places = self.tasks.values().map(|task| task.place);
        places.any(|place| matches!(place, Place::Ready | Place::Ranked(_)))
    }

    fn hold(&mut self, name: &WorkerId, id: &TaskId, token: Token) {
        self.task(id).place = Place::Working(token);
        let worker = self.workers.get_mut(name).expect("the worker is alive");
        worker.last_claim = Some(token);
        worker.holds.insert(id.clone(), token);
    }

    fn grant(&self, id: &TaskId) -> Grant {
        let task = &self.tasks[id];
        let tries = task.tries.unwrap_or_default();
        let start_by = match task.start_by_ms {
            _ if tries.0 + tries.1 > 0 => StartBy::Started,
            Some(0) => StartBy::Started,
            Some(ms) => StartBy::At(ms),
            None => StartBy::AsSubmitted,
        };
        let was_tried = task.tries.is_some();
        Grant { id: id.clone(), tries, was_tried, start_by, record: task.record() }
    }
}

impl Place {
    fn delayed_until(self) -> Option<u64> {
        match self {
            Self::Delayed(due) => Some(due),
            _ => None,
        }
    }

    fn retry_at(self) -> Option<u64> {
        match self {
            Self::Retry(due) => Some(due),
            _ => None,
        }
    }
}
