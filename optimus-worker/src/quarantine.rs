//! Tasks that must run alone, because the next lost worker would mark them Dead: [`Quarantine`].
//!
//! One of them may kill its process, and it is not known which. So the worker holds them and claims
//! nothing until everything else that it runs has ended. Then it gives all of them back and claims
//! one again, alone, and claims nothing else while that runs. Redis marks a lost task Dead only if
//! it was claimed alone.
//!
//! No worker stands still for this. A drain and a run alone have bounds, and end there. The worker
//! spends no more than a fifth of its time this way. While it rests, quarantined tasks that it
//! claims go back for a time, and any idle worker may then claim them.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use optimus_core::{Lease, QueueName, TaskId};
use tokio::time::Instant;

/// How long a worker that holds a quarantined task claims nothing. Each failed drain doubles it.
const DRAIN_FIRST: Duration = Duration::from_secs(10);
const DRAIN_MAX: Duration = Duration::from_secs(300);
/// How long a task may run alone before its worker claims others. Each loss above the limit doubles
/// it, so that a task that kills late in the end runs alone for long enough.
const ALONE_FIRST: Duration = Duration::from_secs(60);
const DOUBLINGS_MAX: u32 = 10;
/// After a time without claims a worker holds no quarantined task for this many times as long.
const REST: u32 = 4;
/// When a quarantined task that a worker did not hold can be claimed again.
const BACK_MIN: Duration = Duration::from_millis(200);
const BACK_MAX: Duration = Duration::from_secs(5);
/// A queue that refuses a claim is asked again this much later.
const AFTER_REFUSAL: Duration = Duration::from_secs(1);

/// How many logged tasks a worker remembers before it forgets them all.
const LOGGED_MAX: usize = 10_000;

/// The quarantined tasks that a worker holds, and whether one runs.
#[derive(Debug, Default)]
pub(crate) struct Quarantine(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    held: Vec<Lease>,
    alone: Option<Alone>,
    /// Since when the worker claims nothing, because of quarantined tasks.
    since: Option<Instant>,
    failed_drains: u32,
    rest_until: Option<Instant>,
    /// Tasks that were logged as held; a task is held again after each that runs alone before it.
    logged: HashSet<TaskId>,
}

/// A task that was claimed alone, and has not ended.
#[derive(Debug)]
struct Alone {
    queue: QueueName,
    /// When others may be claimed while it runs; unknown until it is granted.
    until: Option<Instant>,
}

/// Whether the next loss would mark a task with these losses Dead.
pub(crate) fn needs_quarantine(losses: u32, max_losses: u32) -> bool {
    losses > 0 && losses + 1 >= max_losses
}

/// How long a task with these losses runs alone.
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
        let took = self.since.take().map_or(Duration::ZERO, |since| now - since);
        self.rest_until = Some(now + took * REST);
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

    /// Holds a task until it can run alone; its lease is kept like that of a running task.
    /// Otherwise returns it, and how long to give it back for.
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

    /// Whether the log lacks this held task. After this call it counts as logged.
    pub(crate) fn is_new(&self, id: &TaskId) -> bool {
        let logged = &mut self.state().logged;
        if logged.len() >= LOGGED_MAX {
            logged.clear();
        }
        logged.insert(id.clone())
    }

    /// Ends the rest: the worker has nothing else to do.
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

    /// Whether the worker must claim nothing, except for quarantined tasks.
    pub(crate) fn any(&self) -> bool {
        let state = self.state();
        state.alone.is_some() || !state.held.is_empty()
    }

    /// Everything else has ended. Removes all held tasks, to be given back, and returns the queue
    /// from which one is to be claimed alone.
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

    /// If the drain took too long, removes all held tasks, with how long to give them back for.
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

    /// A task that was claimed alone starts.
    pub(crate) fn started(&self, now: Instant, time_alone: Duration) {
        if let Some(alone) = &mut self.state().alone {
            alone.until = Some(now + time_alone);
        }
    }

    /// The queue of a task whose time alone is over: a claim there removes its mark.
    pub(crate) fn out_of_time(&self, now: Instant) -> Option<QueueName> {
        let state = self.state();
        let alone = state.alone.as_ref()?;
        alone.until.is_some_and(|until| until <= now).then(|| alone.queue.clone())
    }

    /// Nothing was granted to run alone, or the running task no longer has the mark.
    pub(crate) fn end(&self, now: Instant) {
        self.state().rest(now);
    }

    /// The claim that removes the mark was refused.
    pub(crate) fn ask_later(&self, now: Instant) {
        self.started(now, AFTER_REFUSAL);
    }

    /// When a drain or a time alone is over.
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
