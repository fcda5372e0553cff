//! The table of all attempts that run here or whose report is still held: [`Attempts`].

use std::{
    collections::HashMap,
    hash::BuildHasherDefault,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use optimus_core::{Context, Interrupted, Lease, TaskId};
use tokio::{sync::Notify, time::Instant};

use crate::{
    decide_outcome::Facts, id_hasher::IdHasher, late_handlers::LateHandlers,
    layer_ended::EndedCalls, outcome_log::Outcome, role_wakeups::Wakeups, run_log::Calls,
    run_part::Part,
};

/// A time of the standard clock. The standard clock is necessary because handlers can read the
/// deadline.
type Deadline = std::time::Instant;

/// Why a running handler was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The deadline of the attempt has passed.
    TimedOut,
    /// The task was cancelled.
    Cancelled,
    /// The lease may be over: no heartbeat was acknowledged for too long.
    Uncertain,
    /// The process was stopped for so long that the lease may be over.
    Frozen,
    /// The lease is over: another worker has the task, or will claim it.
    Lost,
    /// The worker shuts down.
    Shutdown,
}

/// One attempt at one task.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) lease: Lease,
    /// The time of the claim, in ms by Redis' clock.
    pub(crate) claimed_ms: u64,
    pub(crate) facts: Facts,
    pub(crate) started_at: Instant,
    /// The part of the attempt that the handler can read. It also asks the handler to stop.
    pub(crate) ctx: Context,
    /// Asks the executor to drop the handler.
    pub(crate) abandon: Notify,
    /// The calls of `ended` on the attempt's layers, once the attempt has ended.
    pub(crate) ended_calls: Mutex<EndedCalls>,
    /// The part that the task has in a run of several calls.
    pub(crate) part: Part,
    begun: AtomicBool,
    settled: AtomicBool,
    on_thread: AtomicBool,
    stop: Mutex<Option<(Stop, Instant)>>,
    /// When the attempt times out, if its time has passed while the process was stopped.
    spared_until: Mutex<Option<Deadline>>,
    hang_logged: AtomicBool,
    /// How the attempt ended. The outcome is counted and logged once Redis has answered the report.
    ended: OnceLock<Ended>,
}

impl Attempt {
    pub(crate) fn new(lease: Lease, claimed_ms: u64, facts: Facts, ctx: Context) -> Self {
        Self {
            lease,
            claimed_ms,
            facts,
            started_at: Instant::now(),
            ctx,
            abandon: Notify::new(),
            ended_calls: Mutex::default(),
            part: Part::Alone,
            begun: AtomicBool::new(false),
            settled: AtomicBool::new(false),
            on_thread: AtomicBool::new(false),
            stop: Mutex::new(None),
            spared_until: Mutex::new(None),
            hang_logged: AtomicBool::new(false),
            ended: OnceLock::new(),
        }
    }

    /// Reserves the right to decide whether the handler begins. Returns `true` only for the first
    /// caller. At a shutdown, the executor and the maintenance thread race for this right.
    pub(crate) fn begin(&self) -> bool {
        !self.begun.swap(true, Ordering::AcqRel)
    }

    /// Reserves the right to decide how the attempt ended. Returns `true` only for the first
    /// caller. When a deadline passes, the executor and the maintenance thread race for this right.
    pub(crate) fn settle(&self) -> bool {
        !self.settled.swap(true, Ordering::SeqCst)
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.settled.load(Ordering::SeqCst)
    }

    /// Notes that a thread runs code of the attempt from now on.
    pub(crate) fn takes_thread(&self) {
        self.on_thread.store(true, Ordering::SeqCst);
    }

    /// Notes that the thread has returned.
    pub(crate) fn leaves_thread(&self) {
        self.on_thread.store(false, Ordering::SeqCst);
    }

    /// Returns whether a thread runs code of the attempt. If none does after the attempt is
    /// settled, its handler is never polled again: all four accesses are in one order.
    pub(crate) fn is_on_thread(&self) -> bool {
        self.on_thread.load(Ordering::SeqCst)
    }

    /// Returns whether it was already logged that the blocking handler hangs. After this call, the
    /// hang counts as logged.
    pub(crate) fn hang_was_logged(&self) -> bool {
        self.hang_logged.swap(true, Ordering::AcqRel)
    }

    /// Returns whether the task runs with others, in the attempt of another one.
    pub(crate) fn follows(&self) -> bool {
        matches!(self.part, Part::Follows { .. })
    }

    /// Stores how the attempt ended. Only the caller that has settled the attempt may call this.
    pub(crate) fn set_ended(&self, outcome: Outcome) {
        // An attempt is settled once, so no outcome is set before.
        let run = self.started_at.elapsed();
        let is_in_run = !matches!(self.part, Part::Alone);
        let line = if is_in_run { Line::OfRun(Calls::one()) } else { Line::Own };
        self.ended.set(Ended { outcome, run, line }).ok();
    }

    /// Stores how a call of a run ended.
    pub(crate) fn set_ended_in_run(&self, ended: Ended) {
        self.ended.set(ended).ok();
    }

    /// Returns how the attempt ended, once that is decided.
    pub(crate) fn ended(&self) -> Option<&Ended> {
        self.ended.get()
    }

    /// Asks the handler to stop. A later reason replaces [`Stop::Uncertain`], and all except that
    /// one replace [`Stop::Frozen`].
    pub(crate) fn stop(&self, why: Stop) {
        let mut stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        let is_replaced = |earlier| match earlier {
            Stop::Uncertain => why != Stop::Uncertain,
            Stop::Frozen => !matches!(why, Stop::Uncertain | Stop::Frozen),
            _ => false,
        };
        if stop.is_none_or(|(earlier, _)| is_replaced(earlier)) {
            *stop = Some((why, Instant::now()));
        }
        drop(stop);
        self.ctx.cancel_elsewhere();
    }

    /// Returns when the attempt times out.
    pub(crate) fn limit(&self) -> Deadline {
        let spared = *self.spared_until.lock().unwrap_or_else(PoisonError::into_inner);
        spared.unwrap_or_else(|| self.ctx.deadline())
    }

    /// Returns what a back-off function receives if the attempt times out now.
    pub(crate) fn timed_out(&self) -> Interrupted {
        let ms = u64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        // The text is for people, so it has no fractions of a millisecond.
        Interrupted::TimedOut { after: Duration::from_millis(ms) }
    }

    /// Notes that the limit has passed while the process was stopped, so that the handler had no
    /// CPU at that time, and its lease may be over. The handler is asked to stop. If it can't be
    /// dropped, it may run for its whole timeout again before it has timed out.
    pub(crate) fn spare(&self, now: Instant) {
        if self.limit() <= now.into_std() {
            let timeout = self.ctx.deadline().duration_since(self.started_at.into_std());
            let mut spared = self.spared_until.lock().unwrap_or_else(PoisonError::into_inner);
            *spared = Some(now.into_std() + timeout);
        }
        self.stop(Stop::Frozen);
    }

    /// Returns why and when the handler was asked to stop.
    pub(crate) fn stopped(&self) -> Option<(Stop, Instant)> {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How an attempt ended, as its worker decided.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) run: Duration,
    pub(crate) line: Line,
}

/// The event that is logged for the end of an attempt.
#[derive(Debug)]
pub(crate) enum Line {
    /// The event of this attempt alone.
    Own,
    /// The event of these calls of a run, which end in the same way.
    OfRun(Calls),
    /// The event of another call of its run.
    OfAnother,
}

/// The key of an attempt: its task and its fence. The fence is necessary because a worker may hold
/// a task again while its own earlier attempt still runs. The queue is part of the task's id,
/// because a program may use one uuid in several queues, and claims in the same ms have the same
/// fence in all queues.
type Key = (TaskId, u64);

/// The hash is the same in every process, so that a run can be repeated exactly. Ids that are
/// chosen to collide slow down only the slots of one worker, whichever the hasher.
type Table = HashMap<Key, Arc<Attempt>, BuildHasherDefault<IdHasher>>;

/// The table of attempts.
#[derive(Debug)]
pub(crate) struct Attempts {
    table: Mutex<Table>,
    /// The deadline of every running attempt is at or after this time.
    earliest: Mutex<Option<Deadline>>,
    wakeups: Arc<Wakeups>,
    pub(crate) late: LateHandlers,
}

fn earlier(first: Option<Deadline>, other: Deadline) -> Deadline {
    first.map_or(other, |first| first.min(other))
}

fn key(lease: &Lease) -> Key {
    (lease.id.clone(), lease.token.fence)
}

impl Attempts {
    pub(crate) fn new(wakeups: Arc<Wakeups>) -> Self {
        let (table, earliest, late) = Default::default();
        Self { table, earliest, wakeups, late }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn earliest(&self) -> MutexGuard<'_, Option<Deadline>> {
        self.earliest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time before which no running attempt has to end.
    pub(crate) fn earliest_deadline(&self) -> Option<Deadline> {
        *self.earliest()
    }

    /// Returns all attempts, and finds the earliest deadline.
    pub(crate) fn all_for_deadlines(&self) -> Vec<Arc<Attempt>> {
        // Reset the deadline first, because attempts that begin at the same time add their
        // deadlines.
        *self.earliest() = None;
        let all = self.snapshot();
        let is_over = |attempt: &Attempt| {
            attempt.is_settled()
                || attempt.follows()
                || attempt.stopped().is_some_and(|(why, _)| why == Stop::TimedOut)
        };
        let running = all.iter().filter(|attempt| !is_over(attempt));
        if let Some(first) = running.map(|attempt| attempt.limit()).min() {
            let mut earliest = self.earliest();
            *earliest = Some(earlier(*earliest, first));
        }
        all
    }

    /// Adds attempts. They must be in the table before they run, so that the heartbeat keeps their
    /// lease.
    pub(crate) fn insert<'a>(&self, attempts: impl Iterator<Item = &'a Arc<Attempt>>) {
        let mut first: Option<Deadline> = None;
        let keyed = attempts.map(|attempt| {
            first = Some(earlier(first, attempt.ctx.deadline()));
            (key(&attempt.lease), attempt.clone())
        });
        self.table().extend(keyed);
        if let Some(first) = first {
            let mut earliest = self.earliest();
            *earliest = Some(earlier(*earliest, first));
        }
        self.wakeups.attempts_began();
    }

    /// Removes attempts, and passes each one that was in the table to `each`, with its position.
    pub(crate) fn remove<'a>(
        &self,
        leases: impl Iterator<Item = &'a Lease>,
        mut each: impl FnMut(usize, Arc<Attempt>),
    ) {
        let mut table = self.table();
        for (position, lease) in leases.enumerate() {
            if let Some(attempt) = table.remove(&key(lease)) {
                each(position, attempt);
            }
        }
    }

    /// Returns whether the attempt runs or its report is held.
    pub(crate) fn holds(&self, id: &TaskId, fence: u64) -> bool {
        self.table().contains_key(&(id.clone(), fence))
    }

    /// Returns all attempts.
    pub(crate) fn snapshot(&self) -> Vec<Arc<Attempt>> {
        self.table().values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.table().len()
    }

    /// Returns whether no attempt runs and no report of an attempt is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.table().is_empty()
    }

    /// Returns the attempt under exactly this lease.
    pub(crate) fn of(&self, lease: &Lease) -> Option<Arc<Attempt>> {
        self.table().get(&key(lease)).filter(|attempt| attempt.lease == *lease).cloned()
    }

    /// Returns how many handlers have not ended.
    pub(crate) fn running(&self) -> usize {
        let runs = |attempt: &&Arc<Attempt>| !attempt.is_settled() && !attempt.follows();
        self.table().values().filter(runs).count()
    }

    /// Returns how many blocking handlers were logged as hanging and have not returned.
    pub(crate) fn hung(&self) -> usize {
        let hangs = |attempt: &&Arc<Attempt>| {
            !attempt.is_settled() && attempt.hang_logged.load(Ordering::Acquire)
        };
        self.table().values().filter(hangs).count()
    }

    /// Asks all running handlers to stop.
    pub(crate) fn stop_all(&self, why: Stop) {
        for attempt in self.snapshot() {
            if !attempt.is_settled() {
                attempt.stop(why);
            }
        }
    }
}

#[cfg(test)]
#[path = "attempts_tests.rs"]
mod tests;
