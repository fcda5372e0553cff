//! `complete`, `fail`, `release`: the reports of a worker about its tasks. Only a report with the
//! token under which the worker holds a task changes anything.

use std::collections::BTreeSet;

use optimus_core::{
    Lease, OnLost, TaskId, TaskState,
    broker::{Completion, Failure, FailureOutcome, Give, Release, Reported},
};

use super::{Place, Queue, Task, biz::mark_of};
use crate::answer::Answer;

/// How many entries of a task's error history are kept.
const ERRORS_MAX: usize = 10;

/// The number of summaries that are kept, and how many more there may be before the list is
/// trimmed.
const SUCCESS_MAX: usize = 1_000;
const SUCCESS_STEP: usize = 128;

impl Queue {
    /// Takes the tasks that the worker holds under the reported token, each once. Returns the
    /// positions of the other reports.
    fn take_held(&mut self, leases: impl Iterator<Item = Lease>) -> (BTreeSet<usize>, Reported) {
        let (mut held, mut reported) = (BTreeSet::new(), Reported::default());
        for (position, lease) in leases.enumerate() {
            let worker = self.workers.get_mut(&lease.worker);
            let holds = worker.filter(|worker| worker.holds.get(&lease.id) == Some(&lease.token));
            match holds {
                Some(worker) => {
                    worker.holds.remove(&lease.id);
                    held.insert(position);
                }
                None => reported.stale.push(position),
            }
        }
        (held, reported)
    }

    /// Working → Success. Keeps the summary and the result of the task.
    pub(super) fn complete(&mut self, now: u64, done: &[Completion]) -> Answer {
        let (held, mut reported) = self.take_held(done.iter().map(|d| d.lease.clone()));
        let mut names = Vec::new();
        for completion in held.iter().map(|position| &done[*position]) {
            let id = &completion.lease.id;
            self.leave_lane(id);
            let task = self.tasks.remove(id).expect("a held task exists");
            self.success.push_back((id.clone(), summary(completion)));
            self.succeeded.insert(id.clone());
            self.totals.successes += 1;
            if let Some((result, _)) = &completion.result {
                self.results.insert(id.clone(), result.clone());
            }
            if let Some(biz) = &completion.biz_id {
                self.succeed_biz(now, &mark_of(completion.task, biz), id);
            }
            self.notify(task.waiters, id, TaskState::Success);
            let biz = completion.biz_id.as_ref().map(|biz| mark_of(completion.task, biz));
            for name in std::iter::once(id.stored()).chain(biz) {
                if completion.outcome_ttl.is_some() {
                    self.outcomes.insert(name.clone(), (id.clone(), now));
                }
                names.push(name);
            }
        }
        self.pass_permits(now);
        self.answer_success(&names);
        self.let_go(now);
        reported.posted = self.write_posts(now, None);
        if self.success.len() > SUCCESS_MAX + SUCCESS_STEP {
            self.success.drain(..self.success.len() - SUCCESS_MAX);
        }
        Answer::Reported(reported)
    }

    /// Working → Retry, Dead or Cancelled, with one more failure or loss. A task that was asked to
    /// stop is cancelled.
    pub(super) fn fail(&mut self, now: u64, failed: &[Failure]) -> Answer {
        let worker = failed.first().and_then(|first| self.workers.get(&first.lease.worker));
        let is_alone = worker.is_some_and(|worker| worker.alone && worker.holds.len() == 1);
        let (held, mut reported) = self.take_held(failed.iter().map(|f| f.lease.clone()));
        for position in held {
            let Failure { lease, outcome, error, .. } = &failed[position];
            let task = self.task(&lease.id);
            let (failures, losses, misfits) = task.tries.unwrap_or_default();
            let is_lost = *outcome == FailureOutcome::Lost;
            let ran_alone_at_limit = is_alone && losses + 1 >= task.max_losses;
            let dies = is_lost && (task.on_lost == OnLost::Dead || ran_alone_at_limit);
            // A worker that asks for a retry has started the task, so it is not a misfit.
            let is_retried = matches!(outcome, FailureOutcome::Retry(_) | FailureOutcome::Lost)
                && !dies
                && task.stop_asked.is_none();
            let misfits = if is_retried { 0 } else { misfits };
            let (failures, losses) =
                if is_lost { (failures, losses + 1) } else { (failures + 1, losses) };
            (task.tries, task.start_by_ms) = (Some((failures, losses, misfits)), None);
            self.totals.losses += u64::from(is_lost);
            let task = self.task(&lease.id);
            if !error.is_empty() {
                task.remember(now, error);
            }
            match outcome {
                FailureOutcome::Cancelled | FailureOutcome::Unstarted => {
                    self.end_cancelled(now, &lease.id);
                    self.leave_lane(&lease.id);
                }
                _ if task.stop_asked.is_some() => {
                    reported.cancelled.push(position);
                    self.end_cancelled(now, &lease.id);
                    self.leave_lane(&lease.id);
                }
                FailureOutcome::Retry(wait) => {
                    task.place = Place::Retry(now + ms(*wait));
                    self.totals.retries += 1;
                    self.due_at_latest(now + ms(*wait));
                    self.step_aside(&lease.id);
                }
                FailureOutcome::Lost if !dies => {
                    task.place = Place::Retry(now);
                    self.due_at_latest(now);
                    self.step_aside(&lease.id);
                }
                FailureOutcome::Dead | FailureOutcome::Lost => {
                    if is_lost {
                        reported.dead.push(position);
                    }
                    self.end(&lease.id, Place::Dead(now));
                    self.die_in_lane(&lease.id);
                }
                FailureOutcome::Expired => {
                    self.end(&lease.id, Place::Dead(now));
                    self.leave_lane(&lease.id);
                }
            }
        }
        self.pass_permits(now);
        reported.posted = self.write_posts(now, None);
        Answer::Reported(reported)
    }

    /// Working → Ready or Delayed, without using an attempt; Cancelled if it was asked to stop.
    pub(super) fn release(&mut self, now: u64, given: &[Release]) -> Answer {
        let (held, mut reported) = self.take_held(given.iter().map(|g| g.lease.clone()));
        let mut back: Vec<TaskId> = Vec::new();
        for position in held {
            let Release { lease, give } = &given[position];
            let task = self.task(&lease.id);
            match give {
                _ if task.stop_asked.is_some() => {
                    reported.cancelled.push(position);
                    self.end_cancelled(now, &lease.id);
                    self.leave_lane(&lease.id);
                }
                Give::Head => back.push(lease.id.clone()),
                Give::Interrupted => {
                    task.was_started();
                    back.push(lease.id.clone());
                }
                Give::Snooze(wait) => {
                    task.was_started();
                    task.place = Place::Delayed(now + ms(*wait));
                    self.due_at_latest(now + ms(*wait));
                    self.step_aside(&lease.id);
                }
                Give::Misfit(wait) => {
                    let (failures, losses, misfits) = task.tries.unwrap_or_default();
                    task.tries = Some((failures, losses, misfits + 1));
                    task.place = Place::Delayed(now + ms(*wait));
                    self.due_at_latest(now + ms(*wait));
                    self.step_aside(&lease.id);
                }
            }
        }
        self.back_to_ready(now, &back);
        self.pass_permits(now);
        reported.posted = self.write_posts(now, None);
        Answer::Reported(reported)
    }
}

impl Task {
    /// Notes that a worker started the task. The task can no longer expire, which is stored unless
    /// a failure or a loss shows it.
    fn was_started(&mut self) {
        if let Some((_, _, misfits)) = &mut self.tries {
            *misfits = 0;
        }
        let (failures, losses, _) = self.tries.unwrap_or_default();
        if self.accepted_ms.is_some() && failures + losses == 0 {
            (self.tries, self.start_by_ms) = (Some(self.tries.unwrap_or_default()), Some(0));
        }
    }

    /// Adds an entry to the task's error history.
    pub(super) fn remember(&mut self, now: u64, error: &str) {
        self.errors.push_back(format!("{now} {error}"));
        if self.errors.len() > ERRORS_MAX {
            self.errors.pop_front();
        }
    }
}

fn ms(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).expect("the time is short")
}

/// Returns the summary of a success.
fn summary(completion: &Completion) -> String {
    let Completion { lease, task, attempt, took, ended_ms, .. } = completion;
    let (id, took_ms, worker) = (lease.id.stored(), took.as_millis(), &lease.worker);
    format!("{id} {ended_ms} {task} {attempt} {took_ms} {worker}")
}
