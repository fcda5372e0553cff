//! Reports on their way to Redis, and those that could not be sent: [`Reporter`].
//!
//! A report is held until Redis has answered it, however long that takes; while it is held, its
//! lease is kept. What fails goes back to the front of the line.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use optimus_core::{
    Lease, QueueName,
    broker::{BATCH_MAX, Broker, BrokerError, Completion, Failure, Release, Reply, ScriptCall},
};
use tokio::time::Instant;

use crate::{judge::Report, shared::Shared};

/// Above this many unsent reports a worker stops claiming until Redis takes some.
pub(crate) const HELD_MAX: usize = 10_000;
const CALL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The line of reports.
#[derive(Debug, Default)]
pub(crate) struct Reporter(Mutex<Held>);

/// What waits is grouped as it comes, so that a turn takes whole calls.
#[derive(Debug, Default)]
struct Held {
    waiting: VecDeque<Group>,
    reports: usize,
}

/// Reports of one kind, queue and worker: one script call.
#[derive(Debug)]
pub(crate) struct Group {
    since: Instant,
    reports: Reports,
    bytes: usize,
}

#[derive(Debug)]
enum Reports {
    Complete(Vec<Completion>),
    Fail(Vec<Failure>),
    Release(Vec<Release>),
}

impl Reporter {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, report: Report) {
        let mut held = self.held();
        held.reports += 1;
        let bytes = size(&report);
        match held.waiting.iter_mut().rev().find(|group| group.takes(&report, bytes)) {
            Some(group) => group.add(report, bytes),
            None => held.waiting.push_back(Group::of(report, bytes)),
        }
    }

    /// Reports that are not answered yet.
    pub(crate) fn len(&self) -> usize {
        self.held().reports
    }

    /// Reports that are not sent yet.
    pub(crate) fn waiting(&self) -> usize {
        self.held().waiting.iter().map(Group::len).sum()
    }

    /// How long the oldest has waited to be sent.
    pub(crate) fn waited(&self) -> Duration {
        self.held().waiting.front().map_or(Duration::ZERO, |group| group.since.elapsed())
    }

    /// Takes up to so many script calls' worth out of the line. Each group must be answered or
    /// given back.
    pub(crate) fn take(&self, calls: usize) -> Vec<Group> {
        let mut held = self.held();
        let calls = calls.min(held.waiting.len());
        held.waiting.drain(..calls).collect()
    }

    /// The answer has come: nothing of the group is held any more.
    pub(crate) fn answered(&self, group: &Group) {
        self.held().reports -= group.len();
    }

    /// No answer has come: the group waits again, foremost.
    pub(crate) fn give_back(&self, mut group: Group) {
        group.since = Instant::now();
        self.held().waiting.push_front(group);
    }
}

/// Takes in the answers of reports; those that got none are held on. `true` if all got one.
pub(crate) fn take_in_reports(
    shared: &Shared,
    groups: Vec<Group>,
    answers: &mut impl Iterator<Item = Result<Reply, BrokerError>>,
) -> bool {
    let mut worked = true;
    for group in groups {
        let answer = answers.next().expect("an answer for each call");
        match answer.and_then(Broker::read_report) {
            Ok(stale) => {
                for position in stale {
                    if let Some(lease) = group.lease(position) {
                        tracing::debug!(id = %lease.id, "reported before, or lost");
                    }
                }
                shared.attempts.remove(group.leases());
                shared.reporter.answered(&group);
            }
            Err(problem) => {
                if !problem.is_transient() {
                    let queue = group.queue();
                    tracing::error!(%queue, %problem, "a report was rejected; held");
                }
                shared.reporter.give_back(group);
                worked = false;
            }
        }
    }
    worked
}

fn size(report: &Report) -> usize {
    match report {
        Report::Complete(done) => done.result.as_ref().map_or(0, |(bytes, _)| bytes.len()),
        Report::Fail(failure) => failure.error.len(),
        Report::Release(_) => 0,
    }
}

impl Group {
    fn of(report: Report, bytes: usize) -> Self {
        let reports = match report {
            Report::Complete(completion) => Reports::Complete(vec![completion]),
            Report::Fail(failure) => Reports::Fail(vec![failure]),
            Report::Release(release) => Reports::Release(vec![release]),
        };
        Self { since: Instant::now(), reports, bytes }
    }

    fn takes(&self, report: &Report, bytes: usize) -> bool {
        let same_kind = matches!(
            (&self.reports, report),
            (Reports::Complete(_), Report::Complete(_))
                | (Reports::Fail(_), Report::Fail(_))
                | (Reports::Release(_), Report::Release(_))
        );
        let (ours, its) = (self.first(), report.lease());
        same_kind
            && self.len() < BATCH_MAX
            && self.bytes + bytes <= CALL_BYTES_MAX
            && ours.id.queue() == its.id.queue()
            && ours.worker == its.worker
    }

    fn add(&mut self, report: Report, bytes: usize) {
        self.bytes += bytes;
        match (&mut self.reports, report) {
            (Reports::Complete(done), Report::Complete(completion)) => done.push(completion),
            (Reports::Fail(failed), Report::Fail(failure)) => failed.push(failure),
            (Reports::Release(given), Report::Release(release)) => given.push(release),
            _ => unreachable!("a group takes its own kind only"),
        }
    }

    fn len(&self) -> usize {
        match &self.reports {
            Reports::Complete(done) => done.len(),
            Reports::Fail(failed) => failed.len(),
            Reports::Release(given) => given.len(),
        }
    }

    fn first(&self) -> &Lease {
        self.lease(0).expect("a group has a report")
    }

    /// The lease of the report at that position.
    pub(crate) fn lease(&self, position: usize) -> Option<&Lease> {
        match &self.reports {
            Reports::Complete(done) => done.get(position).map(|completion| &completion.lease),
            Reports::Fail(failed) => failed.get(position).map(|failure| &failure.lease),
            Reports::Release(given) => given.get(position).map(|release| &release.lease),
        }
    }

    pub(crate) fn leases(&self) -> impl Iterator<Item = &Lease> {
        (0..self.len()).filter_map(|position| self.lease(position))
    }

    /// The queue of all of them.
    pub(crate) fn queue(&self) -> &QueueName {
        self.first().id.queue()
    }

    /// The call that reports the whole group.
    pub(crate) fn call(&self, broker: &Broker) -> ScriptCall {
        let (queue, worker) = (self.queue(), &self.first().worker);
        match &self.reports {
            Reports::Complete(done) => broker.complete_call(queue, worker, done),
            Reports::Fail(failed) => broker.fail_call(queue, worker, failed),
            Reports::Release(given) => broker.release_call(queue, worker, given),
        }
    }
}
