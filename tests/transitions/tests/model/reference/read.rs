//! `await`, `inspect` and plain reads.

use std::collections::BTreeMap;

use optimus_core::{TaskId, TaskState, broker::Counts};

use super::{Place, Queue, Task};
use crate::{
    answer::{Answer, Found, Record, Seen, lane_words},
    call::Wait,
};

/// The maximum bytes of the names of clients that wait for one task.
const WAITING_MAX: usize = 32 * 1024;

impl Queue {
    /// Registers a client that waits for a task that has not ended; otherwise returns how it ended.
    /// It also returns which other tasks of the same client have succeeded.
    pub(super) fn wait_for_end(&mut self, wait: &Wait) -> Answer {
        let Wait { id, client, stored_by, along } = wait;
        let stored_by = stored_by.as_ref();
        let state = self.state_for(id, stored_by);
        let success_of = |(id, number): &(TaskId, u64)| {
            let (client, _) = stored_by?;
            // A summary alone does not prove a success.
            let is_known = self.results.contains_key(id) || self.is_proven(id, client, *number);
            (!self.tasks.contains_key(id) && is_known)
                .then(|| (TaskState::Success, self.results.get(id).cloned()))
        };
        let along = along.iter().map(success_of).collect();
        if state.is_terminal() {
            let returned = self.results.get(id).cloned();
            return Answer::Ended(Some((state, returned)), along);
        }
        let waiters = &mut self.task(id).waiters;
        if !waiters.iter().any(|waiter| waiter == client) {
            if waiters.join(",").len() > WAITING_MAX {
                waiters.remove(0);
            }
            waiters.push(client.to_owned());
        }
        Answer::Ended(None, along)
    }

    /// Returns the state of a task for its submitter. A task without a record has succeeded if the
    /// ledger has the call and no task as young was purged. This may miss a success, but never
    /// reports a wrong one.
    pub(super) fn state_for(&self, id: &TaskId, stored_by: Option<&(String, u64)>) -> TaskState {
        let state = self.state(id);
        let is_stored = |(client, number): &(String, u64)| self.is_proven(id, client, *number);
        if state != TaskState::Forgotten || !stored_by.is_some_and(is_stored) {
            return state;
        }
        assert!(self.succeeded.contains(id), "{id} wrongly counts as a success");
        TaskState::Success
    }

    /// Returns whether the ledger has the call, no task as young as this was purged, and this task
    /// was not deleted.
    fn is_proven(&self, id: &TaskId, client: &str, number: u64) -> bool {
        let may_be_purged = self.purged_born.is_some_and(|latest| id.made_ms() <= latest);
        !may_be_purged && !self.deleted.contains_key(id) && self.has_call(client, number)
    }

    pub(super) fn inspect(&self, id: &TaskId) -> Answer {
        let task = self.tasks.get(id);
        let summary = self.summary(id).filter(|_| task.is_none()).unwrap_or_default().to_owned();
        let at_ms = match task.map(|task| task.place) {
            Some(
                Place::Delayed(at) | Place::Retry(at) | Place::Dead(at) | Place::Cancelled(at),
            ) => Some(at),
            Some(
                Place::Blocked | Place::Waits | Place::Ready | Place::Ranked(_) | Place::Working(_),
            ) => None,
            None => summary.split(' ').nth(1).and_then(|at| at.parse().ok()),
        };
        let lines = task.into_iter().flat_map(|task| task.errors.iter().map(String::as_str));
        Answer::Found(Found {
            state: self.state(id),
            worker: self.holder(id).cloned(),
            at_ms,
            record: task.map(Task::record),
            tries: task.and_then(|task| task.tries).unwrap_or_default(),
            errors: lines.collect::<Vec<_>>().join("\n"),
            summary,
            result: self.results.get(id).cloned(),
            cancel_ms: task.and_then(|task| task.stop_asked),
        })
    }

    /// Returns the summary of a task that succeeded.
    pub(super) fn summary(&self, id: &TaskId) -> Option<&str> {
        let mut latest = self.success.iter().rev();
        latest.find(|(done, _)| done == id).map(|(_, summary)| summary.as_str())
    }

    /// Returns a whole queue as an operator sees it.
    pub(super) fn read(&self) -> Answer {
        let mut pages = BTreeMap::new();
        for state in TaskState::ALL {
            pages.insert(state.as_str(), self.page(state));
        }
        let count = |state: TaskState| pages[state.as_str()].len() as u64;
        let counts = Counts {
            ready: count(TaskState::Ready),
            delayed: count(TaskState::Delayed),
            blocked: count(TaskState::Blocked),
            retry: count(TaskState::Retry),
            working: count(TaskState::Working),
            dead: count(TaskState::Dead),
            cancelled: count(TaskState::Cancelled),
            recent_successes: count(TaskState::Success),
            dead_bytes: self.ended_bytes(TaskState::Dead),
            cancelled_bytes: self.ended_bytes(TaskState::Cancelled),
            purged: self.purged,
            paused: self.paused_since.is_some(),
        };
        let workers = self.workers.iter().map(|(name, worker)| {
            (name.clone(), (worker.expiry, worker.holds.keys().cloned().collect()))
        });
        Answer::Seen(Seen { counts, totals: self.totals, pages, workers: workers.collect() })
    }

    /// Returns the ids in a state: waiting tasks by their time, ended ones the latest first, others
    /// by id.
    fn page(&self, state: TaskState) -> Vec<TaskId> {
        match state {
            TaskState::Success => self.success.iter().rev().map(|(id, _)| id.clone()).collect(),
            TaskState::Dead | TaskState::Cancelled => {
                self.ended(state).into_iter().rev().map(|(_, id)| id).collect()
            }
            _ => {
                let tasks = self.tasks.iter().filter(|(id, _)| self.state(id) == state);
                let timed = tasks.map(|(id, task)| match task.place {
                    Place::Delayed(due) | Place::Retry(due) => (due, id.clone()),
                    _ => (0, id.clone()),
                });
                let mut timed: Vec<_> = timed.collect();
                timed.sort();
                timed.into_iter().map(|(_, id)| id).collect()
            }
        }
    }
}

impl Task {
    /// Returns the content of the task's record.
    pub(super) fn record(&self) -> Record {
        Record {
            task: self.name.to_owned(),
            biz: self.biz.clone(),
            priority: self.priority,
            accepted_ms: self.accepted_ms,
            has_blob: self.large,
            lane: self.lane.as_ref().map(lane_words),
        }
    }
}
