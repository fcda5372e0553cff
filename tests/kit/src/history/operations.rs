//! Checks the answers that operators received about a task.

use super::account::Execution;
use super::check::Checker;
use super::requests::{Effect, Request};
use super::verdict::Findings;
use super::{Found, How};

impl Checker<'_> {
    /// Checks the answer to each cancel, each requeue and each delete.
    pub(super) fn operations(&self, findings: &mut Findings) {
        for (cancel, told) in self.account.cancels.answered(Effect::Done) {
            self.cancelled(cancel, told, findings);
        }
        for (cancel, told) in self.account.cancels.answered(Effect::Begun) {
            self.stopping(cancel, told, findings);
        }
        for (requeue, told) in self.account.requeues.answered(Effect::Done) {
            self.requeued(requeue, told, findings);
        }
        for (delete, told) in self.account.deletes.answered(Effect::Done) {
            self.deleted(delete, told, findings);
        }
    }

    /// Checks that a cancelled task does not run, and stays cancelled.
    fn cancelled(&self, cancel: &Request, told: u64, findings: &mut Findings) {
        let account = self.account;
        let ran = account.executions.iter().any(|run| {
            run.begun > told
                && !account.requeues.may_come_within(told, run.begun)
                && !self.acts.rolled_back(cancel.asked, run.begun)
                && !self.may_begin_late(run)
        });
        if ran {
            findings.add(self.task, "ran after it was cancelled");
        }
        let stays = account.found.is_none_or(|(state, _)| state == Found::Cancelled);
        if !stays
            && !account.requeues.may_come_within(cancel.asked, u64::MAX)
            && !account.deletes.may_come_within(cancel.asked, u64::MAX)
            && !cancel.may_be_lost(self.acts)
        {
            findings.add(self.task, "was cancelled, and did not stay cancelled");
        }
    }

    /// Checks that a deleted task does not run, and that no call finds it.
    fn deleted(&self, delete: &Request, told: u64, findings: &mut Findings) {
        let account = self.account;
        let ran = account.executions.iter().any(|run| {
            run.begun > told
                && !self.acts.rolled_back(delete.asked, run.begun)
                && !self.may_begin_late(run)
        });
        if ran {
            findings.add(self.task, "ran after it was deleted");
        }
        let is_gone = account.found.is_none_or(|(state, _)| state == Found::Forgotten);
        let has_succeeded = account.executions.iter().any(|run| run.ended_as(How::Ok));
        if !is_gone && !has_succeeded && !delete.may_be_lost(self.acts) {
            findings.add(self.task, "was deleted, and still exists");
        }
    }

    /// Checks a task whose worker was asked to stop it. No attempt may follow the current one.
    fn stopping(&self, cancel: &Request, told: u64, findings: &mut Findings) {
        for pair in self.account.executions.windows(2) {
            let [held, next] = pair else { continue };
            let Some((ended, _)) = held.end else { continue };
            if held.begun <= cancel.asked
                && ended > told
                && next.begun > told
                && !self.account.requeues.may_come_within(cancel.asked, next.begun)
                && !self.acts.rolled_back(cancel.asked, next.begun)
                && !self.may_be_taken_over(held, ended)
            {
                findings.add(self.task, "ran once more after its worker was asked to stop it");
            }
        }
    }

    /// Checks that a requeued task runs again, and was dead or cancelled before.
    fn requeued(&self, requeue: &Request, told: u64, findings: &mut Findings) {
        let account = self.account;
        let runs = |at: &dyn Fn(&Execution) -> bool| account.executions.iter().any(at);
        // A task that waits for others may wait again, and end before it runs.
        let may_be_stopped = account.waits
            || account.cancels.may_come_within(requeue.asked, u64::MAX)
            || account.deletes.may_come_within(requeue.asked, u64::MAX);
        if !runs(&|run| run.begun >= requeue.asked)
            && account.found.is_some()
            && !may_be_stopped
            && !requeue.may_be_lost(self.acts)
        {
            findings.add(self.task, "was requeued, and never ran again");
        }
        let was_cancelled = account.cancels.may_come_within(0, told);
        if !was_cancelled && !account.waits && !runs(&|run| run.begun <= told) {
            findings.add(self.task, "was requeued, though it was neither dead nor cancelled");
        }
    }
}
