//! Reports on their way to Redis, and those that could not be sent: [`Reporter`].
//!
//! A report is held until Redis has answered it, however long that takes; while it is held, its
//! lease is kept. What fails goes back to the front of the line.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use optimus_core::{
    QueueName, WorkerId,
    broker::{BATCH_MAX, Broker, Completion, Failure, Release, ScriptCall},
};

use crate::judge::Report;

/// Above this many unsent reports a worker stops claiming until Redis takes some.
pub(crate) const HELD_MAX: usize = 10_000;
const CALL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The line of reports.
#[derive(Debug, Default)]
pub(crate) struct Reporter(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    waiting: VecDeque<(Instant, Report)>,
    in_flight: usize,
}

/// Reports of one kind, queue and worker: one script call.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) queue: QueueName,
    pub(crate) worker: WorkerId,
    pub(crate) reports: Vec<Report>,
    bytes: usize,
}

impl Reporter {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, report: Report) {
        self.held().waiting.push_back((Instant::now(), report));
    }

    /// Reports that are not answered yet.
    pub(crate) fn len(&self) -> usize {
        let held = self.held();
        held.waiting.len() + held.in_flight
    }

    /// How long the oldest has waited to be sent.
    pub(crate) fn waited(&self) -> Duration {
        self.held().waiting.front().map_or(Duration::ZERO, |(since, _)| since.elapsed())
    }

    /// Takes up to `calls` script calls' worth out of the line. Each group must be answered or
    /// given back.
    pub(crate) fn take(&self, calls: usize) -> Vec<Group> {
        let mut held = self.held();
        let mut groups: Vec<Group> = Vec::new();
        let mut passed = VecDeque::new();
        while let Some((since, report)) = held.waiting.pop_front() {
            let bytes = size(&report);
            let fitting = groups.iter_mut().find(|group| group.takes(&report, bytes));
            if let Some(group) = fitting {
                group.bytes += bytes;
                group.reports.push(report);
            } else if groups.len() < calls {
                let lease = report.lease();
                let (queue, worker) = (lease.id.queue().clone(), lease.worker.clone());
                groups.push(Group { queue, worker, reports: vec![report], bytes });
            } else {
                passed.push_back((since, report));
                if passed.len() > BATCH_MAX {
                    break;
                }
            }
        }
        passed.append(&mut held.waiting);
        held.waiting = passed;
        held.in_flight += groups.iter().map(|group| group.reports.len()).sum::<usize>();
        groups
    }

    /// The answer has come: nothing of the group is held any more.
    pub(crate) fn answered(&self, group: &Group) {
        self.held().in_flight -= group.reports.len();
    }

    /// No answer has come: the group waits again, foremost.
    pub(crate) fn give_back(&self, group: Group) {
        let mut held = self.held();
        held.in_flight -= group.reports.len();
        for report in group.reports.into_iter().rev() {
            held.waiting.push_front((Instant::now(), report));
        }
    }
}

fn size(report: &Report) -> usize {
    match report {
        Report::Complete(done) => done.result.as_ref().map_or(0, |(bytes, _)| bytes.len()),
        Report::Fail(failure) => failure.error.len(),
        Report::Release(_) => 0,
    }
}

impl Group {
    fn takes(&self, report: &Report, bytes: usize) -> bool {
        let first = &self.reports[0];
        std::mem::discriminant(first) == std::mem::discriminant(report)
            && self.queue == *report.lease().id.queue()
            && self.worker == report.lease().worker
            && self.reports.len() < BATCH_MAX
            && self.bytes + bytes <= CALL_BYTES_MAX
    }

    /// The call that reports the whole group.
    pub(crate) fn call(&self, broker: &Broker) -> ScriptCall {
        let (queue, worker) = (&self.queue, &self.worker);
        match &self.reports[0] {
            Report::Complete(_) => broker.complete_call(queue, worker, &self.completions()),
            Report::Fail(_) => broker.fail_call(queue, worker, &self.failures()),
            Report::Release(_) => broker.release_call(queue, worker, &self.releases()),
        }
    }

    fn completions(&self) -> Vec<Completion> {
        self.reports
            .iter()
            .filter_map(|report| match report {
                Report::Complete(completion) => Some(completion.clone()),
                _ => None,
            })
            .collect()
    }

    fn failures(&self) -> Vec<Failure> {
        self.reports
            .iter()
            .filter_map(|report| match report {
                Report::Fail(failure) => Some(failure.clone()),
                _ => None,
            })
            .collect()
    }

    fn releases(&self) -> Vec<Release> {
        self.reports
            .iter()
            .filter_map(|report| match report {
                Report::Release(release) => Some(release.clone()),
                _ => None,
            })
            .collect()
    }
}
