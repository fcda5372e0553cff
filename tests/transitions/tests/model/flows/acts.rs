//! What workers report.

use optimus_core::{
    Lease, Member, ShutScope, TaskId, TaskState,
    broker::{Completion, Failure, FailureOutcome, Give, Release, Shutting},
};

use crate::acts::done;

use super::{
    groups::result_of,
    reference::{Departure, Place},
    run::{FlowRun, Report},
    step::How,
};

impl FlowRun<'_> {
    pub(crate) async fn complete(
        &mut self,
        queue: usize,
        leases: Vec<Lease>,
    ) -> Result<(), Departure> {
        // A worker collects before its run ends, if only so that the others continue.
        for leader in &leases {
            if self.world.is_leading(&leader.id) {
                self.collect_for(queue, leader, 0).await?;
            }
        }
        let done: Vec<Completion> = leases.iter().map(|lease| self.success_of(lease)).collect();
        if done.is_empty() {
            return Ok(());
        }
        self.expect_stale(queue, &Report::Complete(queue, done.clone()), 0).await?;
        self.last = Some(Report::Complete(queue, done));
        for lease in leases {
            self.world.leave_worker(&lease.id, Place::Gone);
            self.world.count(&lease.id, TaskState::Success);
        }
        Ok(())
    }

    fn success_of(&self, lease: &Lease) -> Completion {
        let task = &self.world.tasks[&lease.id];
        let Some((group, index)) = task.member else { return done(lease) };
        let group = &self.world.groups[group];
        let member = Member { group: group.id.clone(), index, on_failure: group.policy };
        Completion {
            member: Some(member),
            result: Some((result_of(index), Self::wait(0))),
            ..done(lease)
        }
    }

    pub(crate) async fn fail(
        &mut self,
        queue: usize,
        leases: Vec<Lease>,
        how: How,
    ) -> Result<(), Departure> {
        let failed = |lease: &Lease| {
            let (outcome, shut) = match how {
                How::Retry { ms } => (FailureOutcome::Retry(Self::wait(ms)), None),
                How::Dead => (FailureOutcome::Dead, None),
                How::Cancelled => (FailureOutcome::Cancelled, None),
                How::Shut { scope, ms } => {
                    let scope = [ShutScope::Task, ShutScope::Limit, ShutScope::Queue][scope];
                    let shut = Shutting { scope, wait: Self::wait(ms), why: "asked".into() };
                    (FailureOutcome::Retry(Self::wait(ms)), Some(shut))
                }
            };
            Failure { lease: lease.clone(), outcome, shut, error: r#"{"reason":"failed"}"#.into() }
        };
        let failed: Vec<Failure> = leases.iter().map(failed).collect();
        if failed.is_empty() {
            return Ok(());
        }
        self.expect_stale(queue, &Report::Fail(queue, failed.clone()), 0).await?;
        self.last = Some(Report::Fail(queue, failed));
        for lease in leases {
            let id = &lease.id;
            match how {
                How::Dead if !self.world.tasks[id].stop_asked => self.end(id, Place::Dead),
                How::Dead | How::Cancelled => self.end(id, Place::Cancelled),
                How::Retry { ms } => self.fail_once(id, ms),
                How::Shut { scope, ms } => {
                    self.shut(queue, id, scope, ms);
                    self.fail_once(id, ms);
                }
            }
        }
        Ok(())
    }

    fn fail_once(&mut self, id: &TaskId, ms: u64) {
        self.come_back(id, self.now + ms);
        self.world.task(id).failures += 1;
    }

    fn shut(&mut self, queue: usize, id: &TaskId, scope: usize, ms: u64) {
        let own = self.world.tasks[id].limits.last().map(|limit| limit.gate.stored());
        let gate = match scope {
            1 => own.unwrap_or_else(|| "task:job".into()),
            2 => String::new(),
            _ => "task:job".into(),
        };
        self.world.shut(queue, gate, self.now + ms);
    }

    pub(crate) async fn release(
        &mut self,
        queue: usize,
        leases: Vec<Lease>,
        snooze_ms: Option<u64>,
    ) -> Result<(), Departure> {
        let give = snooze_ms.map_or(Give::Head, |ms| Give::Snooze(Self::wait(ms)));
        let given: Vec<Release> =
            leases.iter().map(|lease| Release { lease: lease.clone(), give }).collect();
        if given.is_empty() {
            return Ok(());
        }
        self.expect_stale(queue, &Report::Release(queue, given.clone()), 0).await?;
        self.last = Some(Report::Release(queue, given));
        for lease in leases {
            // One that was asked to stop is cancelled, and keeps its tokens.
            if snooze_ms.is_none() && !self.world.tasks[&lease.id].stop_asked {
                self.world.refund(self.now, &lease.id);
            }
            self.come_back(&lease.id, self.now + snooze_ms.unwrap_or(0));
        }
        Ok(())
    }

    /// Reports again what was reported last: nothing of it is held any more.
    pub(crate) async fn repeat(&mut self) -> Result<(), Departure> {
        let Some(report) = self.last.clone() else { return Ok(()) };
        let (queue, count) = match &report {
            Report::Complete(queue, all) => (*queue, all.len()),
            Report::Fail(queue, all) => (*queue, all.len()),
            Report::Release(queue, all) => (*queue, all.len()),
        };
        self.expect_stale(queue, &report, count).await
    }

    /// Sends a report. That many of its parts must be stale.
    async fn expect_stale(
        &self,
        queue: usize,
        report: &Report,
        count: usize,
    ) -> Result<(), Departure> {
        let (broker, name) = (self.benches[queue].at(self.now), &self.benches[queue].queue);
        let call = match report {
            Report::Complete(_, done) => broker.complete_call(name, &done[0].lease.worker, done),
            Report::Fail(_, failed) => broker.fail_call(name, &failed[0].lease.worker, failed),
            Report::Release(_, given) => broker.release_call(name, &given[0].lease.worker, given),
        };
        let reported = broker.report(call).await;
        let reported = reported.map_err(|problem| format!("a report fails: {problem:?}"))?;
        let stale = reported.stale.len();
        if stale == count { Ok(()) } else { Err(format!("{stale} reports are stale, not {count}")) }
    }

    /// A task ends without success.
    pub(crate) fn end(&mut self, id: &TaskId, place: Place) {
        let state = if place == Place::Dead { TaskState::Dead } else { TaskState::Cancelled };
        self.world.leave_worker(id, place);
        self.world.count(id, state);
    }
}
