//! Reports that one script call sends: [`ReportBatch`].

use optimus_core::{
    AttemptError, Lease, QueueName, Reason,
    broker::{BATCH_MAX, Broker, Failure, ScriptCall},
};
use tokio::time::Instant;

use crate::decide::{self, Report};

const CALL_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Which script sends a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Complete,
    Fail,
    Release,
}

/// Reports of one kind, queue and worker id. It is never empty.
#[derive(Debug)]
pub(crate) struct ReportBatch {
    pub(crate) kind: Kind,
    /// When it was created, or last given back.
    pub(crate) since: Instant,
    pub(crate) bytes: usize,
    /// Set for a report that was refused; nothing is added to it.
    pub(crate) single: Option<Single>,
    /// It was sent before and not answered, so Redis may already have taken it.
    pub(crate) is_resent: bool,
    reports: Vec<Report>,
}

/// What is remembered of a report that Redis refused.
#[derive(Debug)]
pub(crate) struct Single {
    /// How many reports of its buffer had passed when it was last refused.
    pub(crate) passed: u64,
    /// How often it was refused although others had passed since.
    pub(crate) refusals: u32,
    /// It is not sent before this time.
    pub(crate) parked_until: Option<Instant>,
    /// It replaces the task's own report, which was refused, and marks the task Dead.
    pub(crate) is_dead: bool,
}

impl Single {
    pub(crate) fn new(passed: u64) -> Self {
        Self { passed, refusals: 0, parked_until: None, is_dead: false }
    }
}

impl Kind {
    pub(crate) const COUNT: usize = 3;

    pub(crate) fn of(report: &Report) -> Self {
        match report {
            Report::Complete(_) => Self::Complete,
            Report::Fail(_) => Self::Fail,
            Report::Release(_) => Self::Release,
        }
    }
}

impl ReportBatch {
    pub(crate) fn of(report: Report) -> Self {
        let (kind, bytes) = (Kind::of(&report), report.bytes());
        let reports = vec![report];
        Self { kind, since: Instant::now(), bytes, single: None, is_resent: false, reports }
    }

    /// Whether a report belongs to this batch and fits.
    pub(crate) fn takes(&self, report: &Report) -> bool {
        let (ours, its) = (self.first(), report.lease());
        // A report that is added was not sent before.
        self.single.is_none()
            && !self.is_resent
            && self.kind == Kind::of(report)
            && self.reports.len() < BATCH_MAX
            && self.bytes + report.bytes() <= CALL_BYTES_MAX
            && ours.id.queue() == its.id.queue()
            && ours.worker == its.worker
    }

    /// Adds what it [`takes`](Self::takes).
    pub(crate) fn add(&mut self, report: Report) {
        self.bytes += report.bytes();
        self.reports.push(report);
    }

    pub(crate) fn len(&self) -> usize {
        self.reports.len()
    }

    fn first(&self) -> &Lease {
        self.lease(0).expect("a batch has a report")
    }

    /// The lease of the report at that position.
    pub(crate) fn lease(&self, position: usize) -> Option<&Lease> {
        self.reports.get(position).map(Report::lease)
    }

    pub(crate) fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.reports.iter().map(Report::lease)
    }

    /// The queue of all of them.
    pub(crate) fn queue(&self) -> &QueueName {
        self.first().id.queue()
    }

    /// The script call that sends the whole batch.
    pub(crate) fn call(&self, broker: &Broker) -> ScriptCall {
        let (queue, worker) = (self.queue(), &self.first().worker);
        let (mut done, mut failed, mut given) = (Vec::new(), Vec::new(), Vec::new());
        for report in &self.reports {
            match report {
                Report::Complete(completion) => done.push(completion),
                Report::Fail(failure) => failed.push(failure),
                Report::Release(release) => given.push(release),
            }
        }
        match self.kind {
            Kind::Complete => broker.complete_call(queue, worker, &done),
            Kind::Fail => broker.fail_call(queue, worker, &failed),
            Kind::Release => broker.release_call(queue, worker, &given),
        }
    }

    /// The failure at that position, if these are failures.
    pub(crate) fn failure(&self, position: usize) -> Option<&Failure> {
        match self.reports.get(position) {
            Some(Report::Fail(failure)) => Some(failure),
            _ => None,
        }
    }

    /// The failure that replaces the task's own report, which Redis refused.
    pub(crate) fn dead(&self) -> Option<&Failure> {
        let is_dead = self.single.as_ref().is_some_and(|single| single.is_dead);
        self.failure(0).filter(|_| is_dead)
    }

    /// The time before which it is not sent.
    pub(crate) fn parked_until(&self) -> Option<Instant> {
        self.single.as_ref().and_then(|single| single.parked_until)
    }

    /// Each report as a batch of its own; `passed`: how many of their buffer have passed.
    pub(crate) fn split(self, passed: u64) -> impl Iterator<Item = Self> {
        let is_resent = self.is_resent;
        let single = move || Some(Single::new(passed));
        let alone = move |report| Self { single: single(), is_resent, ..Self::of(report) };
        self.reports.into_iter().map(alone)
    }

    /// Replaces a report that Redis does not take with one that marks its task Dead. `Err` if there
    /// is no such replacement.
    pub(crate) fn into_dead(self, problem: &str) -> Result<Self, Self> {
        if self.single.as_ref().is_some_and(|single| single.is_dead) {
            return Err(self);
        }
        let (attempt, what) = match self.reports.first() {
            Some(Report::Complete(done)) => {
                (done.attempt, "it succeeded, but Redis refused its report")
            }
            Some(Report::Fail(failure)) => {
                let entry = serde_json::from_str::<AttemptError>(&failure.error);
                (entry.map_or(0, |entry| entry.attempt), "it failed, and Redis refused its report")
            }
            _ => return Err(self),
        };
        let message = format!("{what}: {problem}");
        let lease = self.first().clone();
        let dead = Self::of(decide::mark_dead(lease, attempt, Reason::Unreported, &message));
        Ok(Self { single: Some(Single { is_dead: true, ..Single::new(0) }), ..dead })
    }
}
