//! `register`, `renew`, `leave`, `reap`: which workers are alive, and what happens to the tasks of
//! lost ones.

use std::collections::{BTreeMap, BTreeSet};

use optimus_core::{OnLost, TaskId, TaskState, WorkerId, broker::Refusal};

use super::{Departure, Place, Queue, Worker, refused};
use crate::{answer::Answer, observed::Observed};

/// The maximum number of tasks that one reap takes, and of workers that it checks.
const REAPED_MAX: usize = 128;
const LAPSED_MAX: usize = 16;
/// Up to this many workers of a queue have usual leases while they hold nothing.
const OFTEN_MAX: u64 = 8;
/// The maximum length of a long lease, in usual leases.
const LONG_MAX: u64 = 10;

impl Worker {
    /// Returns the first ms at which the worker's lease is over.
    pub(super) fn over_at(&self) -> u64 {
        self.expiry + u64::from(self.is_long)
    }
}

impl Queue {
    /// ∅ → a worker with a lease. If it is repeated, it renews the lease.
    pub(super) fn register(&mut self, now: u64, name: &WorkerId, lease_ms: u64) -> Answer {
        self.watch(now, lease_ms, Some(name));
        let shortest = self.lease_min.unwrap_or(lease_ms);
        self.lease_min = Some(shortest.min(lease_ms));
        let worker = self.workers.entry(name.clone()).or_default();
        (worker.expiry, worker.is_long, worker.lease_ms) = (now + lease_ms, false, lease_ms);
        Answer::Alive { next_expiry_ms: self.next_expiry(now, name) }
    }

    /// Renews a worker's lease, which covers all its tasks. A lease that is over but was not reaped
    /// is renewed.
    pub(super) fn renew(&mut self, now: u64, name: &WorkerId, lease_ms: u64) -> Answer {
        if !self.workers.contains_key(name) {
            return refused(Refusal::Lapsed, "");
        }
        self.watch(now, lease_ms, Some(name));
        let workers = self.workers.len();
        let worker = self.workers.get_mut(name).expect("the worker is registered");
        let eighths = (workers as u64).min(LONG_MAX * OFTEN_MAX);
        worker.is_long = worker.holds.is_empty() && eighths > OFTEN_MAX;
        let lease_ms = if worker.is_long { lease_ms * eighths / OFTEN_MAX } else { lease_ms };
        worker.expiry = now + lease_ms;
        let held = worker.holds.clone();
        let stop = held.keys().filter(|id| self.tasks[*id].stop_asked.is_some()).cloned().collect();
        let next_expiry_ms = self.next_expiry(now, name);
        Answer::Renewed { next_expiry_ms, workers, lease_ms, held, stop }
    }

    /// Removes a worker, unless it still holds tasks: a worker → ∅.
    pub(super) fn leave(&mut self, name: &WorkerId) -> Answer {
        let holds = self.workers.get(name).map_or(0, |worker| worker.holds.len());
        if holds == 0 {
            self.forget(name);
        }
        Answer::Holds(holds)
    }

    /// Takes tasks from workers whose lease is over. Each task gets one more loss and goes back to
    /// the head of the ready list, unless the loss marks it Dead. The store chooses which tasks
    /// come first.
    pub(super) fn reap(
        &mut self,
        now: u64,
        name: &WorkerId,
        lease_ms: u64,
        limit: usize,
        seen: &Observed<'_>,
    ) -> Result<Answer, Departure> {
        let over = self.lapsed(now);
        let raised =
            if self.is_watched(now, lease_ms) { vec![] } else { self.watch(now, lease_ms, None) };
        let lapsed: Vec<WorkerId> = over.iter().filter(|w| !raised.contains(w)).cloned().collect();
        let limit = limit.min(REAPED_MAX);
        let held: usize = lapsed.iter().map(|worker| self.workers[worker].holds.len()).sum();
        let (mut back, mut lost) = (BTreeSet::new(), BTreeMap::new());
        let before: BTreeMap<String, usize> = self
            .completions
            .iter()
            .map(|(client, completions)| (client.clone(), completions.len()))
            .collect();
        let (mut tasks, mut more) = (0, over.len() == LAPSED_MAX);
        for worker in &lapsed {
            let left: BTreeSet<&TaskId> = seen.held.get(worker).into_iter().flatten().collect();
            let alone = self.workers[worker].alone && self.workers[worker].holds.len() == 1;
            let holds = self.workers[worker].holds.keys().cloned();
            for id in holds.filter(|id| !left.contains(id)).collect::<Vec<_>>() {
                tasks += 1;
                back.extend(self.lose(now, worker, &id, alone));
                let task = self.task(&id);
                let (failures, losses, _) = task.tries.expect("the loss is counted");
                let state = match task.place {
                    Place::Dead(_) => TaskState::Dead,
                    Place::Cancelled(_) => TaskState::Cancelled,
                    // The place of the other tasks in the list is known only when all losses are
                    // known.
                    _ => TaskState::Ready,
                };
                lost.insert(id, (worker.clone(), failures + losses, state));
            }
            if self.workers[worker].holds.is_empty() {
                self.forget(worker);
            } else {
                more = true;
            }
        }
        if tasks != held.min(limit) {
            return Err(format!("{tasks} were taken of {held} with a limit of {limit}"));
        }
        for (client, completions) in &mut self.completions {
            let from = before.get(client).copied().unwrap_or(0);
            let order = seen
                .completions
                .get(client)
                .map_or(&[][..], |completions| &completions[from.min(completions.len())..]);
            let rank = |id: &TaskId| order.iter().position(|other| other == id);
            completions.make_contiguous()[from..].sort_by_key(|(id, _)| rank(id));
        }
        self.back_to_ready(now, &order_of(back, &seen.ready));
        let offered = self.pass_permits(now);
        self.order_last(offered, &seen.ready);
        let next_expiry_ms = self.next_expiry(now, name);
        Ok(Answer::Reaped { tasks, more, next_expiry_ms, lapsed, lost })
    }

    /// A worker → ∅. If the worker waits for the next due time, no worker waits for it now.
    fn forget(&mut self, name: &WorkerId) {
        self.workers.remove(name);
        self.timer = self.timer.take().filter(|(holder, _)| holder != name);
    }

    /// Takes a task from a lost worker. Returns the task's id if the task should run again. Only a
    /// task that ran alone may have killed the worker.
    fn lose(&mut self, now: u64, worker: &WorkerId, id: &TaskId, alone: bool) -> Option<TaskId> {
        self.workers.get_mut(worker).expect("the worker is registered").holds.remove(id);
        let task = self.task(id);
        let (failures, losses, misfits) = task.tries.unwrap_or_default();
        let attempt = failures + losses + 1;
        self.totals.losses += 1;
        let task = self.task(id);
        (task.tries, task.start_by_ms) = (Some((failures, losses + 1, misfits)), None);
        task.remember(
            now,
            &format!(r#"{{"reason":"lost","attempt":{attempt},"worker":"{worker}"}}"#),
        );
        if task.stop_asked.is_some() {
            self.end_cancelled(now, id);
            self.leave_lane(id);
            None
        } else if task.on_lost == OnLost::Dead || (alone && losses + 1 >= task.max_losses) {
            self.end(id, Place::Dead(now));
            self.die_in_lane(id);
            None
        } else {
            Some(id.clone())
        }
    }

    /// Returns the workers whose lease is over, the longest one first.
    fn lapsed(&self, now: u64) -> Vec<WorkerId> {
        let workers = self.workers.iter().filter(|(_, worker)| worker.over_at() <= now);
        let mut lapsed: Vec<_> = workers.map(|(name, worker)| (worker.over_at(), name)).collect();
        lapsed.sort();
        lapsed.into_iter().take(LAPSED_MAX).map(|(_, name)| name.clone()).collect()
    }

    /// Returns whether a worker has renewed within half of the shortest lease, by a clock that was
    /// not set back.
    fn is_watched(&self, now: u64, lease_ms: u64) -> bool {
        let watched_at = self.watched_at.unwrap_or(now);
        watched_at <= now && now - watched_at <= self.lease_min.unwrap_or(lease_ms) / 2
    }

    /// Renews a worker's lease. After an outage every other worker gets a whole lease, unless it
    /// got one before and has not renewed since; leases are set back with the clock, unless they
    /// can be of the time after that. Returns the workers that got a lease.
    fn watch(&mut self, now: u64, lease_ms: u64, name: Option<&WorkerId>) -> Vec<WorkerId> {
        let mut raised = Vec::new();
        if self.workers.is_empty() && name.is_none() {
            return raised;
        }
        if !self.is_watched(now, lease_ms) {
            let watched_at = self.watched_at.unwrap_or(now);
            for (other, worker) in &mut self.workers {
                let had_grace = worker.graced == Some((worker.expiry, worker.is_long));
                let soon = now + worker.lease_ms;
                let until = now + worker.lease_ms * if worker.is_long { LONG_MAX } else { 1 };
                let is_of_before = worker.is_long || worker.expiry > soon;
                let set_back = if is_of_before { watched_at.saturating_sub(now) } else { 0 };
                let expiry = worker.expiry - set_back;
                let away = now.saturating_sub(watched_at) > worker.lease_ms / 2;
                let raise = away && !had_grace && expiry < soon;
                let mended = if raise { until } else { expiry };
                if Some(other) == name || mended == worker.expiry {
                    continue;
                }
                if raise {
                    raised.push(other.clone());
                }
                worker.expiry = mended;
                if raise || had_grace {
                    worker.graced = Some((mended, worker.is_long));
                }
            }
            let shortest = self.workers.values().map(|worker| worker.lease_ms).min();
            self.lease_min = Some(shortest.or(self.lease_min).unwrap_or(lease_ms));
        }
        self.watched_at = Some(now);
        raised
    }

    /// Returns the ms until the earliest lease of another worker is over.
    fn next_expiry(&self, now: u64, name: &WorkerId) -> Option<u64> {
        let others = self.workers.iter().filter(|(other, _)| *other != name);
        others.map(|(_, worker)| worker.over_at().saturating_sub(now)).min()
    }
}

/// Tasks in the order of the ready list, followed by those with a priority, which are not in the
/// list.
fn order_of(mut back: BTreeSet<TaskId>, ready: &[TaskId]) -> Vec<TaskId> {
    let mut order: Vec<TaskId> = Vec::new();
    for id in ready {
        if !back.remove(id) {
            break;
        }
        order.push(id.clone());
    }
    order.extend(back);
    order
}
