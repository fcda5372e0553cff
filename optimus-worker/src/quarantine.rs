//! Tasks that must run alone, because the next lost worker would mark them Dead: [`Quarantine`].
//!
//! One of these tasks may kill its process, and the worker can't know which one. So the worker
//! holds them and claims nothing until its other tasks have ended. Then it gives all of them back,
//! claims one of them alone, and claims no other task while that one runs. Redis marks a lost task
//! Dead only if the task was claimed alone.
//!
//! The quarantine does not stop a worker for long. Both the drain and the run alone have a time
//! limit. The worker spends no more than a fifth of its time on them. After them, it rests: if it
//! claims a quarantined task, it gives the task back for a time, and any idle worker may then claim
//! the task.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use optimus_core::{Lease, QueueName, TaskId};
use tokio::time::Instant;

use crate::logged_once::LoggedOnce;

/// How long a worker that holds a quarantined task claims nothing. Each failed drain doubles this
/// time.
const DRAIN_FIRST: Duration = Duration::from_secs(10);
const DRAIN_MAX: Duration = Duration::from_secs(300);
/// How long a task may run alone before its worker claims other tasks. Each loss above the limit
/// doubles this time, so that a task that kills its process late finally runs alone for long
/// enough.
const ALONE_FIRST: Duration = Duration::from_secs(60);
const DOUBLINGS_MAX: u32 = 10;
/// After a time without claims, a worker holds no quarantined task for this many times as long.
const REST: u32 = 4;
/// The wait after which a quarantined task that a worker did not hold can be claimed again.
const BACK_MIN: Duration = Duration::from_millis(200);
const BACK_MAX: Duration = Duration::from_secs(5);
/// The wait after which a refused claim is sent to its queue again.
const AFTER_REFUSAL: Duration = Duration::from_secs(1);

/// The quarantined tasks that a worker holds, and the state of the one that runs.
#[derive(Debug, Default)]
pub(crate) struct Quarantine(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    held: Vec<Lease>,
    alone: Option<Alone>,
    /// The time at which the worker stopped its claims because of quarantined tasks.
    since: Option<Instant>,
    failed_drains: u32,
    rest_until: Option<Instant>,
    /// Tasks that were logged as held. A task may be held several times, because others run alone
    /// before it.
    logged: LoggedOnce<TaskId>,
}

/// A task that was claimed alone and has not ended.
#[derive(Debug)]
struct Alone {
    queue: QueueName,
    /// The time when the worker may claim other tasks while this one runs. Unknown until the claim
    /// is granted.
    until: Option<Instant>,
}

/// Returns whether the next loss would mark a task with these losses Dead.
pub(crate) fn needs_quarantine(losses: u32, max_losses: u32) -> bool {
    losses > 0 && losses + 1 >= max_losses
}

/// Returns how long a task with these losses runs alone.
pub(crate) fn time_alone(losses: u32, max_losses: u32) -> Duration {
    ALONE_FIRST * 2_u32.pow((losses + 1).saturating_sub(max_losses).min(DOUBLINGS_MAX))
}

impl State {
    fn drain_until(&self) -> Option<Instant> {
        let bound = DRAIN_FIRST * 2_u32.pow(self.failed_drains.min(DOUBLINGS_MAX));
        self.since.map(|since| since + bound.min(DRAIN_MAX))
    }

    /// Ends the time without claims.
    fn rest(&mut self, now: Instant) {
        self.alone = None;
        if let Some(since) = self.since.take() {
            self.rest_until = Some(now + (now - since) * REST);
        }
    }

    fn back_in(&self, now: Instant, chance: f64) -> Duration {
        let rest = self.rest_until.map_or(Duration::ZERO, |until| until - now);
        rest.clamp(BACK_MIN, BACK_MAX).mul_f64(0.5 + chance / 2.0)
    }
}

impl Quarantine {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a task until it can run alone. The heartbeat keeps its lease like that of a running
    /// task. If the task can't be held, returns it and how long to give it back for.
    pub(crate) fn hold(
        &self,
        lease: Lease,
        now: Instant,
        chance: f64,
    ) -> Option<(Lease, Duration)> {
        let mut state = self.state();
        if state.alone.is_some() || state.rest_until.is_some_and(|until| until > now) {
            return Some((lease, state.back_in(now, chance)));
        }
        state.since.get_or_insert(now);
        state.held.push(lease);
        None
    }

    /// Returns whether this held task is not logged yet. After this call, it counts as logged.
    pub(crate) fn is_new(&self, id: &TaskId) -> bool {
        self.state().logged.is_new(id)
    }

    /// Ends the rest, because the worker has nothing else to do.
    pub(crate) fn end_rest(&self) {
        self.state().rest_until = None;
    }

    pub(crate) fn holds(&self, id: &TaskId, fence: u64) -> bool {
        self.state().held.iter().any(|lease| lease.id == *id && lease.token.fence == fence)
    }

    /// Removes the held tasks that match.
    pub(crate) fn remove(&self, matches: impl Fn(&Lease) -> bool) -> Vec<Lease> {
        let mut state = self.state();
        let removed = state.held.extract_if(.., |lease| matches(lease)).collect();
        if state.held.is_empty() && state.alone.is_none() {
            state.since = None;
        }
        removed
    }

    /// Returns whether the worker must claim nothing except quarantined tasks.
    pub(crate) fn any(&self) -> bool {
        let state = self.state();
        state.alone.is_some() || !state.held.is_empty()
    }

    /// Handles the end of all other tasks: removes all held tasks, so that they are given back, and
    /// returns the queue from which one of them is claimed alone.
    pub(crate) fn release(&self, now: Instant) -> (Vec<Lease>, Option<QueueName>) {
        let mut state = self.state();
        if state.alone.is_some() {
            state.rest(now);
        }
        let held = std::mem::take(&mut state.held);
        let queue = held.first().map(|lease| lease.id.queue().clone());
        if let Some(queue) = &queue {
            state.failed_drains = 0;
            state.alone = Some(Alone { queue: queue.clone(), until: None });
        }
        (held, queue)
    }

    /// Removes all held tasks if the drain took too long. Returns them, and how long to give them
    /// back for.
    pub(crate) fn give_up(&self, now: Instant, chance: f64) -> Vec<(Lease, Duration)> {
        let mut state = self.state();
        let is_over = state.drain_until().is_some_and(|until| until <= now);
        if state.held.is_empty() || !is_over {
            return Vec::new();
        }
        state.rest(now);
        state.failed_drains += 1;
        let back_in = state.back_in(now, chance);
        state.held.drain(..).map(|lease| (lease, back_in)).collect()
    }

    /// Notes that a task that was claimed alone starts.
    pub(crate) fn started(&self, now: Instant, time_alone: Duration) {
        if let Some(alone) = &mut self.state().alone {
            alone.until = Some(now + time_alone);
        }
    }

    /// Returns the queue of a task whose time limit for a run alone is over. A claim from this
    /// queue removes its mark.
    pub(crate) fn out_of_time(&self, now: Instant) -> Option<QueueName> {
        let state = self.state();
        let alone = state.alone.as_ref()?;
        alone.until.is_some_and(|until| until <= now).then(|| alone.queue.clone())
    }

    /// Notes that no task was granted to run alone, or that the running task no longer has the
    /// mark.
    pub(crate) fn end(&self, now: Instant) {
        self.state().rest(now);
    }

    /// Notes that the claim that removes the mark was refused.
    pub(crate) fn ask_later(&self, now: Instant) {
        self.started(now, AFTER_REFUSAL);
    }

    /// Returns when the time limit of a drain or of a run alone is over.
    pub(crate) fn next(&self) -> Option<Instant> {
        let state = self.state();
        match &state.alone {
            Some(alone) => alone.until,
            None => state.drain_until(),
        }
    }
}

#[cfg(test)]
#[path = "quarantine_tests.rs"]
mod tests;
