//! The queue as one reads of it, in plain Rust: this is the specification.
//!
//! A task stands in one [`Place`], so it can't be in two states. What the store may choose (in
//! which order lost tasks are taken, how many tombstones a claim passes over) the reference takes
//! from it after it has checked that the choice is a lawful one.

mod biz;
mod keys;
mod lease;
mod line;
mod look;
mod operate;
mod report;
mod submit;
mod work;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use optimus_core::{Lease, OnLost, TaskId, TaskState, Token, WorkerId, broker::Refusal};

use crate::{answer::Answer, call::Call, observed::Observed};

pub(crate) use self::{biz::Mark, line::Entry, submit::Ledger};

/// One queue: its tasks, who works on them, and what is remembered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    /// Every task that has not been forgotten but for its success.
    pub(crate) tasks: BTreeMap<TaskId, Task>,
    /// The line of those without a priority, tombstones among them.
    pub(crate) line: VecDeque<Entry>,
    pub(crate) workers: BTreeMap<WorkerId, Worker>,
    /// Whose each biz id is, by `<task>:<biz id>`.
    pub(crate) marks: BTreeMap<String, Mark>,
    pub(crate) ledgers: BTreeMap<String, Ledger>,
    /// Summaries of the last 1,000 that ended well, the latest last.
    pub(crate) success: VecDeque<(TaskId, String)>,
    /// What handlers returned.
    pub(crate) results: BTreeMap<TaskId, Vec<u8>>,
    /// What each client was told, in order.
    pub(crate) completions: BTreeMap<String, VecDeque<(TaskId, TaskState)>>,
    /// What each worker was asked to stop, in order.
    pub(crate) cancel_wakeups: BTreeMap<WorkerId, VecDeque<Lease>>,
    /// The fence of the last claim that granted something.
    pub(crate) fence: u64,
    pub(crate) paused_since: Option<u64>,
    /// No claim looks for what is due before then; none while nothing is delayed or retried.
    pub(crate) due_hint: Option<u64>,
    /// When somebody last looked after the leases.
    pub(crate) watched_at: Option<u64>,
    /// Who waits for the next due time, and which.
    pub(crate) timer: Option<(WorkerId, u64)>,
    /// The shortest lease that a worker has.
    pub(crate) lease_min: Option<u64>,
    /// How many tasks were purged or deleted so far.
    pub(crate) purged: u64,
    /// The latest birth in ms of what was purged, or deleted long ago.
    pub(crate) purged_born: Option<u64>,
    /// What was deleted lately, and when.
    pub(crate) deleted: BTreeMap<TaskId, u64>,
    /// Every task that ever ended well.
    pub(crate) succeeded: BTreeSet<TaskId>,
    /// The store has no room for more: submits are refused, all else goes on.
    pub(crate) full: bool,
    /// Somebody took the wakeup list's token and has not claimed since.
    pub(crate) woken: bool,
}

/// A task: what was wanted, and what became of it.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) name: &'static str,
    pub(crate) priority: i8,
    pub(crate) biz: Option<String>,
    pub(crate) window_ms: Option<u64>,
    pub(crate) on_lost: OnLost,
    pub(crate) max_losses: u32,
    /// Kept where it can expire.
    pub(crate) accepted_ms: Option<u64>,
    pub(crate) expires_in_ms: Option<u64>,
    /// By when it must be started after a requeue; 0 once it was started and given back.
    pub(crate) start_by_ms: Option<u64>,
    pub(crate) large: bool,
    /// Those of its record and of the payload beside that.
    pub(crate) bytes: u64,
    pub(crate) place: Place,
    /// Failures, losses and misfits, from the first on.
    pub(crate) tries: Option<(u32, u32, u32)>,
    /// The last ten, as `<ms> <json>`.
    pub(crate) errors: VecDeque<String>,
    /// When it was asked to stop, while it works.
    pub(crate) stop_asked: Option<u64>,
    /// Who waits for its end.
    pub(crate) waiters: Vec<String>,
}

/// The one place where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Until this time.
    Delayed(u64),
    /// In line; its entry is in [`Queue::line`].
    Ready,
    /// In line by its rank, the smallest first: ms in line, less a minute a step of priority.
    Ranked(i64),
    /// Under the token of a claim, by the worker of [`Task::place`]'s holder.
    Working(Token),
    /// Until this time.
    Retry(u64),
    /// Since this time.
    Dead(u64),
    /// Since this time.
    Cancelled(u64),
}

/// A worker that has registered and was neither reaped nor has left.
#[derive(Debug, Clone, Default)]
pub(crate) struct Worker {
    /// When its lease is over.
    pub(crate) expiry: u64,
    /// That is half a ms later: the lease is long, and usual from the next grant on.
    pub(crate) is_long: bool,
    pub(crate) lease_ms: u64,
    /// The expiry that it was given after an outage.
    pub(crate) graced: Option<(u64, bool)>,
    /// The token of its last claim that granted something.
    pub(crate) last_claim: Option<Token>,
    /// That claim was for one task to run alone.
    pub(crate) alone: bool,
    /// What it holds.
    pub(crate) holds: BTreeMap<TaskId, Token>,
}

/// In what the store departs from the specification.
pub(crate) type Departure = String;

impl Queue {
    /// Does the call at this time, and compares the answer of the store.
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
            Call::Delete { ids } => self.delete_all(now, ids),
            Call::Purge { keep, bytes, age_ms } => self.purge(now, *keep, *bytes, *age_ms),
            Call::Retire { idle_ms } => self.retire(now, *idle_ms),
            Call::Await(wait) => self.wait_for_end(wait),
            Call::State { id, stored_by } => Answer::State(self.state_told(id, stored_by.as_ref())),
            Call::Inspect { id } => self.inspect(id),
            Call::Look => self.look(),
        };
        if expected == *seen.answer {
            return Ok(());
        }
        let (mut ours, mut theirs) = (seen.answer.to_string(), expected.to_string());
        if ours == theirs {
            (ours, theirs) = (format!("{:?}", seen.answer), format!("{expected:?}"));
        }
        Err(format!("the answer is\n  {ours}\nwhere the reference has\n  {theirs}"))
    }

    /// Where a task is.
    pub(crate) fn state(&self, id: &TaskId) -> TaskState {
        match self.tasks.get(id).map(|task| task.place) {
            Some(Place::Delayed(_)) => TaskState::Delayed,
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

    /// Who holds a task.
    pub(crate) fn holder(&self, id: &TaskId) -> Option<&WorkerId> {
        self.workers.iter().find(|(_, worker)| worker.holds.contains_key(id)).map(|(name, _)| name)
    }

    /// A task of this queue that must be there.
    fn task(&mut self, id: &TaskId) -> &mut Task {
        self.tasks.get_mut(id).expect("only tasks that are there are moved")
    }

    /// Puts a task where it has ended, and tells who waits.
    fn end(&mut self, id: &TaskId, place: Place) {
        let task = self.task(id);
        (task.place, task.stop_asked) = (place, None);
        let waiters = std::mem::take(&mut task.waiters);
        let state = self.state(id);
        self.tell(waiters, id, state);
    }

    /// Mail to those who waited.
    fn tell(&mut self, waiters: Vec<String>, id: &TaskId, state: TaskState) {
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

/// A refusal with what stands behind its word.
fn refused(refusal: Refusal, detail: &str) -> Answer {
    Answer::Refused(refusal, detail.to_owned())
}
