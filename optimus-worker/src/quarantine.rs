//! Tasks that must run alone, because the next lost worker would mark them Dead: [`Quarantine`].
//!
//! One of them may kill its process, and nobody can tell which. So the worker holds them while what
//! else it runs comes to its end, and claims nothing. Then it gives them all back but claims one
//! again, alone, and claims nothing else while that runs. Redis marks no lost task as Dead but one
//! that was claimed alone.
//!
//! No worker stands still for this. A drain and a run alone have bounds; what is over its bound is
//! given up, and the worker spends no more than a fifth of its time so. While it rests from it,
//! quarantined tasks that it claims come back later, to whichever worker is idle then.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use optimus_core::{Lease, QueueName, TaskId};
use tokio::time::Instant;

/// How long a worker that holds a quarantined task claims nothing. Each drain in vain doubles it.
const DRAIN_FIRST: Duration = Duration::from_secs(10);
const DRAIN_MAX: Duration = Duration::from_secs(300);
/// How long a task may run alone before its worker claims others. Each loss beyond doubles it, so
/// that a task that kills late runs alone to its end at last.
const ALONE_FIRST: Duration = Duration::from_secs(60);
const DOUBLINGS_MAX: u32 = 10;
/// After it claimed nothing for a time, a worker holds no quarantined task for so many times as
/// long.
const REST: u32 = 4;
/// When a quarantined task comes back that a worker did not hold.
const BACK_MIN: Duration = Duration::from_millis(200);
const BACK_MAX: Duration = Duration::from_secs(5);
/// A queue that grants no claim now is asked again this much later.
const AFTER_REFUSAL: Duration = Duration::from_secs(1);

/// The quarantined tasks that a worker holds, and whether one runs.
#[derive(Debug, Default)]
pub(crate) struct Quarantine(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    held: Vec<Lease>,
    alone: Option<Alone>,
    /// Since when nothing was claimed, because of quarantined tasks.
    since: Option<Instant>,
    drains_in_vain: u32,
    rest_until: Option<Instant>,
}

/// A task that was claimed alone, and has not ended.
#[derive(Debug)]
struct Alone {
    queue: QueueName,
    /// When others may be claimed beside it; not known before it was granted.
    until: Option<Instant>,
}

/// Whether the next lost worker would mark a task Dead that was lost so often.
pub(crate) fn needs_quarantine(losses: u32, max_losses: u32) -> bool {
    losses > 0 && losses + 1 >= max_losses
}

/// How long a task that was lost so often runs alone.
pub(crate) fn time_alone(losses: u32, max_losses: u32) -> Duration {
    ALONE_FIRST * 2_u32.pow((losses + 1).saturating_sub(max_losses).min(DOUBLINGS_MAX))
}

impl State {
    fn drain_until(&self) -> Option<Instant> {
        let bound = DRAIN_FIRST * 2_u32.pow(self.drains_in_vain.min(DOUBLINGS_MAX));
        self.since.map(|since| since + bound.min(DRAIN_MAX))
    }

    /// Claims others again.
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

    /// Holds one until it can run alone; its lease is kept like that of a running task. Else it is
    /// to come back later: in so long.
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

    /// The worker has nothing else to do.
    pub(crate) fn end_rest(&self) {
        self.state().rest_until = None;
    }

    pub(crate) fn holds(&self, id: &TaskId, fence: u64) -> bool {
        self.state().held.iter().any(|lease| lease.id == *id && lease.token.fence == fence)
    }

    /// Lets go of those that match.
    pub(crate) fn let_go(&self, matches: impl Fn(&Lease) -> bool) -> Vec<Lease> {
        let mut state = self.state();
        let gone = state.held.extract_if(.., |lease| matches(lease)).collect();
        if state.held.is_empty() && state.alone.is_none() {
            state.since = None;
        }
        gone
    }

    /// Whether the worker must claim nothing but for these.
    pub(crate) fn any(&self) -> bool {
        let state = self.state();
        state.alone.is_some() || !state.held.is_empty()
    }

    /// All else has ended. Lets go of all that are held, to be given back; and whose queue one is
    /// to be claimed from, alone.
    pub(crate) fn release(&self, now: Instant) -> (Vec<Lease>, Option<QueueName>) {
        let mut state = self.state();
        if state.alone.is_some() {
            state.rest(now);
        }
        let held = std::mem::take(&mut state.held);
        let queue = held.first().map(|lease| lease.id.queue().clone());
        if let Some(queue) = &queue {
            state.drains_in_vain = 0;
            state.alone = Some(Alone { queue: queue.clone(), until: None });
        }
        (held, queue)
    }

    /// The drain took too long. Lets go of all that are held, to come back in so long.
    pub(crate) fn give_up(&self, now: Instant, chance: f64) -> Vec<(Lease, Duration)> {
        let mut state = self.state();
        let is_over = state.drain_until().is_some_and(|until| until <= now);
        if state.held.is_empty() || !is_over {
            return Vec::new();
        }
        state.rest(now);
        state.drains_in_vain += 1;
        let back_in = state.back_in(now, chance);
        state.held.drain(..).map(|lease| (lease, back_in)).collect()
    }

    /// A task that was claimed alone starts.
    pub(crate) fn started(&self, now: Instant, time_alone: Duration) {
        if let Some(alone) = &mut self.state().alone {
            alone.until = Some(now + time_alone);
        }
    }

    /// The queue of a task that ran alone for as long as it may: a claim there takes its mark.
    pub(crate) fn out_of_time(&self, now: Instant) -> Option<QueueName> {
        let state = self.state();
        let alone = state.alone.as_ref()?;
        alone.until.is_some_and(|until| until <= now).then(|| alone.queue.clone())
    }

    /// Nothing was granted to run alone, or what runs has its mark no more.
    pub(crate) fn end(&self, now: Instant) {
        self.state().rest(now);
    }

    /// The claim that takes the mark was refused.
    pub(crate) fn ask_later(&self, now: Instant) {
        self.started(now, AFTER_REFUSAL);
    }

    /// When something is to be done about them, whatever else happens.
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
