//! The queue in plain Rust. This is the specification.
//!
//! A task has one [`Place`], so it can't be in two states. Where the store may choose (in which
//! order lost tasks are taken, how many tombstones a claim skips), the reference follows the store
//! after it has checked that the choice is allowed.

mod after;
mod biz;
mod keys;
mod lanes;
mod lease;
mod operate;
mod read;
mod ready;
mod relay;
mod report;
mod submit;
mod work;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    num::NonZeroU16,
};

use optimus_core::{
    After, Lane, Lease, OnLost, QueueName, TaskId, TaskState, Token, WorkerId,
    broker::{Refusal, Totals},
};

use crate::{answer::Answer, call::Call, observed::Observed};

pub(crate) use self::{
    after::{Outbox, Tie, Unmet},
    biz::Mark,
    ready::Entry,
    submit::Ledger,
};

/// One queue: its tasks, its workers, and its history.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    /// Every task that has not succeeded and is not forgotten.
    pub(crate) tasks: BTreeMap<TaskId, Task>,
    /// The ready list of tasks without a priority, including tombstones.
    pub(crate) ready: VecDeque<Entry>,
    pub(crate) workers: BTreeMap<WorkerId, Worker>,
    /// The holder of each biz id, by `<task>:<biz id>`.
    pub(crate) marks: BTreeMap<String, Mark>,
    pub(crate) ledgers: BTreeMap<String, Ledger>,
    /// Summaries of the last 1,000 successes, the latest last.
    pub(crate) success: VecDeque<(TaskId, String)>,
    /// Results of handlers.
    pub(crate) results: BTreeMap<TaskId, Vec<u8>>,
    /// The completion messages of each client, in order.
    pub(crate) completions: BTreeMap<String, VecDeque<(TaskId, TaskState)>>,
    /// The attempts that each worker was asked to stop, in order.
    pub(crate) cancel_wakeups: BTreeMap<WorkerId, VecDeque<Lease>>,
    /// The fence of the last claim that granted something.
    pub(crate) fence: u64,
    pub(crate) paused_since: Option<u64>,
    /// Claims check for due tasks from this time on; `None` while no task is delayed or waits for a
    /// retry.
    pub(crate) due_hint: Option<u64>,
    /// When a worker last renewed or reaped.
    pub(crate) watched_at: Option<u64>,
    /// The worker that waits for the next due time, and that time.
    pub(crate) timer: Option<(WorkerId, u64)>,
    /// The shortest lease of a worker.
    pub(crate) lease_min: Option<u64>,
    /// How many tasks were purged or deleted so far.
    pub(crate) purged: u64,
    /// What ended so far.
    pub(crate) totals: Totals,
    /// The latest time of an id that was purged, or deleted long ago.
    pub(crate) purged_born: Option<u64>,
    /// How many of the oldest dead tasks the next purge skips, because they block their lanes.
    pub(crate) purge_from: usize,
    /// Tasks that were deleted recently, and when.
    pub(crate) deleted: BTreeMap<TaskId, u64>,
    /// The place of the last task that began to wait in a lane.
    pub(crate) places: i64,
    /// The lanes in which tasks wait, and since when.
    pub(crate) lanes_since: BTreeMap<String, u64>,
    /// The largest width of a lane that a stored task has had; 0 if none had a lane. After the
    /// first one, older scripts must not change the queue. It has a value of its own if widths are
    /// set, or were set.
    pub(crate) widest: u32,
    /// The widths of lanes that are set.
    pub(crate) widths: BTreeMap<String, u16>,
    /// A task with prerequisites was stored, so older scripts must not change the queue.
    pub(crate) has_after: bool,
    /// The tasks that wait for one, by the reference to it.
    pub(crate) ties: BTreeMap<String, Tie>,
    /// Successes that are remembered, by reference: the task, and when.
    pub(crate) outcomes: BTreeMap<String, (TaskId, u64)>,
    pub(crate) outbox: Outbox,
    /// The name of the queue.
    pub(crate) own: Option<String>,
    /// The lanes that tasks leave in this call, in the order in which it meets them.
    leaving: Vec<lanes::Leaving>,
    /// The places in lanes that this call has given.
    placed: lanes::Placed,
    /// Every task that has succeeded.
    pub(crate) succeeded: BTreeSet<TaskId>,
    /// Whether the store is full: then submits are refused, and all other calls work.
    pub(crate) full: bool,
    /// Whether a waiter took the token of the wakeup list and no worker has claimed since then.
    pub(crate) woken: bool,
}

/// A task: its submit, and what happened to it.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) name: &'static str,
    pub(crate) priority: i8,
    pub(crate) biz: Option<String>,
    pub(crate) window_ms: Option<u64>,
    pub(crate) lane: Option<Lane>,
    /// Where it is in its lane, as stored; `None` before it joins.
    pub(crate) lane_at: Option<i64>,
    pub(crate) after: Option<After>,
    /// The prerequisites that are not met.
    pub(crate) unmet: Option<Unmet>,
    /// Those that were not met when it ended. A requeue waits for them again.
    pub(crate) unmet_ended: Option<Unmet>,
    pub(crate) on_lost: OnLost,
    pub(crate) max_losses: u32,
    /// When the store accepted the task; only known if the task can expire.
    pub(crate) accepted_ms: Option<u64>,
    pub(crate) expires_in_ms: Option<u64>,
    /// The time by which the task must start after a requeue; 0 if it was started and released.
    pub(crate) start_by_ms: Option<u64>,
    pub(crate) large: bool,
    /// The bytes of the task's record and payload.
    pub(crate) bytes: u64,
    pub(crate) place: Place,
    /// Counts of failures, losses and misfits; `None` before the first.
    pub(crate) tries: Option<(u32, u32, u32)>,
    /// When it was due, if it was cancelled before.
    pub(crate) due_again: Option<u64>,
    /// The last ten errors, as `<ms> <json>`.
    pub(crate) errors: VecDeque<String>,
    /// When the running task was asked to stop.
    pub(crate) stop_asked: Option<u64>,
    /// The clients that wait for the task's end.
    pub(crate) waiters: Vec<String>,
}

/// The place of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Until this time.
    Delayed(u64),
    /// Waits in its lane.
    Blocked,
    /// Waits for its prerequisites.
    Waits,
    /// In the ready list; the task's entry is in [`Queue::ready`].
    Ready,
    /// Ready with a rank, the smallest first: the ready time in ms, minus a minute per step of
    /// priority.
    Ranked(i64),
    /// Held by a worker under the token of a claim; see [`Queue::holder`].
    Working(Token),
    /// Until this time.
    Retry(u64),
    /// Since this time.
    Dead(u64),
    /// Since this time.
    Cancelled(u64),
}

/// A registered worker that was not reaped and has not left.
#[derive(Debug, Clone, Default)]
pub(crate) struct Worker {
    /// When the worker's lease is over.
    pub(crate) expiry: u64,
    /// Whether the lease is long. Then the expiry is half a ms later, and the lease becomes usual
    /// with the next grant.
    pub(crate) is_long: bool,
    pub(crate) lease_ms: u64,
    /// The expiry that the worker got after an outage.
    pub(crate) graced: Option<(u64, bool)>,
    /// The token of the worker's last claim that granted something.
    pub(crate) last_claim: Option<Token>,
    /// Whether that claim was for one task that runs alone.
    pub(crate) alone: bool,
    /// The tasks that the worker holds.
    pub(crate) holds: BTreeMap<TaskId, Token>,
}

/// A difference between the store and the specification.
pub(crate) type Departure = String;

impl Queue {
    /// An empty queue of that name.
    pub(crate) fn named(name: &QueueName) -> Self {
        Self { own: Some(name.to_string()), ..Self::default() }
    }

    /// Applies the call at this time, and compares the answer with that of the store.
    pub(crate) fn follow(
        &mut self,
        now: u64,
        call: &Call,
        seen: &Observed<'_>,
    ) -> Result<(), Departure> {
        let expected = match call {
            Call::Submit(submit_call) => self.submit(now, submit_call),
            Call::Claim { worker, seq, want, alone } => {
                self.claim(now, worker, *seq, *want, *alone, seen)?
            }
            Call::Complete { done, .. } => self.complete(now, done),
            Call::Fail { failed, .. } => self.fail(now, failed),
            Call::Release { given, .. } => self.release(now, given),
            Call::Register { worker, lease_ms } => self.register(now, worker, *lease_ms),
            Call::Renew { worker, lease_ms } => self.renew(now, worker, *lease_ms),
            Call::Reap { worker, lease_ms, limit } => {
                self.reap(now, worker, *lease_ms, *limit, seen)?
            }
            Call::Leave { worker } => self.leave(worker),
            Call::Cancel { ids } => self.cancel_all(now, ids),
            Call::Requeue { id } => self.requeue(now, id),
            Call::Pause { paused } => self.pause(now, *paused),
            Call::Resize { lane, width } => self.resize(now, lane, width.map(NonZeroU16::get)),
            Call::Delete { ids } => self.delete_all(now, ids),
            Call::Purge { keep } => self.purge(now, *keep),
            Call::Retire { idle_ms } => self.retire(now, *idle_ms),
            Call::Await(wait) => self.wait_for_end(wait),
            Call::State { id, stored_by } => Answer::State(self.state_for(id, stored_by.as_ref())),
            Call::Inspect { id } => self.inspect(id),
            Call::Read => self.read(),
            Call::Apply { effects } => self.apply(now, effects),
            Call::Reask => self.reask(now),
        };
        self.write_posts(now, Some(seen));
        if expected == *seen.answer {
            return Ok(());
        }
        let (mut ours, mut theirs) = (seen.answer.to_string(), expected.to_string());
        if ours == theirs {
            (ours, theirs) = (format!("{:?}", seen.answer), format!("{expected:?}"));
        }
        Err(format!("the answer is\n  {ours}\nwhere the reference has\n  {theirs}"))
    }

    /// Returns the state of a task.
    pub(crate) fn state(&self, id: &TaskId) -> TaskState {
        match self.tasks.get(id).map(|task| task.place) {
            Some(Place::Delayed(_)) => TaskState::Delayed,
            Some(Place::Blocked | Place::Waits) => TaskState::Blocked,
            Some(Place::Ready | Place::Ranked(_)) => TaskState::Ready,
            Some(Place::Working(_)) => TaskState::Working,
            Some(Place::Retry(_)) => TaskState::Retry,
            Some(Place::Dead(_)) => TaskState::Dead,
            Some(Place::Cancelled(_)) => TaskState::Cancelled,
            None if self.results.contains_key(id) || self.summary(id).is_some() => {
                TaskState::Success
            }
            None => TaskState::Forgotten,
        }
    }

    /// Returns the worker that holds a task.
    pub(crate) fn holder(&self, id: &TaskId) -> Option<&WorkerId> {
        self.workers.iter().find(|(_, worker)| worker.holds.contains_key(id)).map(|(name, _)| name)
    }

    /// Returns a task of this queue, which must exist.
    fn task(&mut self, id: &TaskId) -> &mut Task {
        self.tasks.get_mut(id).expect("only tasks that are there are moved")
    }

    /// Moves a task to the place where it has ended, and notifies the waiters.
    fn end(&mut self, id: &TaskId, place: Place) {
        let task = self.task(id);
        (task.place, task.stop_asked) = (place, None);
        match place {
            Place::Dead(_) => self.totals.deaths += 1,
            Place::Cancelled(_) => self.totals.cancels += 1,
            _ => {}
        }
        let task = self.task(id);
        let waiters = std::mem::take(&mut task.waiters);
        let state = self.state(id);
        self.notify(waiters, id, state);
        self.tell_end(id, state);
    }

    /// Adds completion messages for the waiters.
    fn notify(&mut self, waiters: Vec<String>, id: &TaskId, state: TaskState) {
        for client in waiters {
            self.completions.entry(client).or_default().push_back((id.clone(), state));
        }
    }

    /// Ends a task by request, which frees its biz id.
    fn end_cancelled(&mut self, now: u64, id: &TaskId) {
        self.release_biz(id);
        self.end(id, Place::Cancelled(now));
    }
}

/// Returns a refusal with its detail.
fn refused(refusal: Refusal, detail: &str) -> Answer {
    Answer::Refused(refusal, detail.to_owned())
}
