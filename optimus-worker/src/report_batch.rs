//! A batch of reports that one script call sends: [`ReportBatch`].

use optimus_core::{
    AttemptError, Lease, QueueName, Reason,
    broker::{BATCH_MAX, Broker, Failure, ScriptCall},
};
use tokio::time::Instant;

use crate::decide_outcome::{self, Report};

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
    /// When the batch was created, or last given back.
    pub(crate) since: Instant,
    pub(crate) bytes: usize,
    /// Set for a report that was refused. Nothing is added to such a batch.
    pub(crate) single: Option<Single>,
    /// Whether the batch was sent before without an answer. In this case, Redis may already have
    /// the reports.
    pub(crate) is_resent: bool,
    reports: Vec<Report>,
}

/// The refusals of a report.
#[derive(Debug)]
pub(crate) struct Single {
    /// How many reports of its buffer had passed when this report was last refused.
    pub(crate) passed: u64,
    /// How often the report was refused although others had passed since the last time.
    pub(crate) refusals: u32,
    /// The report is not sent before this time.
    pub(crate) parked_until: Option<Instant>,
    /// Whether this is the replacement for the task's own report, which was refused. The
    /// replacement marks the task Dead.
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

    /// Returns whether a report belongs to this batch and fits into it.
    pub(crate) fn takes(&self, report: &Report) -> bool {
        let (ours, its) = (self.first(), report.lease());
        // A batch that was sent takes no new report, because a new report was not sent before.
        self.single.is_none()
            && !self.is_resent
            && self.kind == Kind::of(report)
            && self.reports.len() < BATCH_MAX
            && self.bytes + report.bytes() <= CALL_BYTES_MAX
            && ours.id.queue() == its.id.queue()
            && ours.worker == its.worker
    }

    /// Adds a report that the batch [`takes`](Self::takes).
    pub(crate) fn add(&mut self, report: Report) {
        self.bytes += report.bytes();
        self.reports.push(report);
    }

    pub(crate) fn len(&self) -> usize {
        self.reports.len()
    }

    fn first(&self) -> &Lease {
        self.lease(0).expect("a batch has at least one report")
    }

    /// Returns the lease of the report at that position.
    pub(crate) fn lease(&self, position: usize) -> Option<&Lease> {
        self.reports.get(position).map(Report::lease)
    }

    pub(crate) fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.reports.iter().map(Report::lease)
    }

    /// Returns the queue of all reports in the batch.
    pub(crate) fn queue(&self) -> &QueueName {
        self.first().id.queue()
    }

    /// Returns the script call that sends the whole batch.
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

    /// Returns the failure at that position, if the batch contains failures.
    pub(crate) fn failure(&self, position: usize) -> Option<&Failure> {
        match self.reports.get(position) {
            Some(Report::Fail(failure)) => Some(failure),
            _ => None,
        }
    }

    /// Returns the failure that replaces the task's own report, which Redis refused.
    pub(crate) fn dead(&self) -> Option<&Failure> {
        let is_dead = self.single.as_ref().is_some_and(|single| single.is_dead);
        self.failure(0).filter(|_| is_dead)
    }

    /// Returns the time before which the batch is not sent.
    pub(crate) fn parked_until(&self) -> Option<Instant> {
        self.single.as_ref().and_then(|single| single.parked_until)
    }

    /// Splits the batch into one batch for each report. `passed` is how many reports of the buffer
    /// have passed.
    pub(crate) fn split(self, passed: u64) -> impl Iterator<Item = Self> {
        let is_resent = self.is_resent;
        let single = move || Some(Single::new(passed));
        let alone = move |report| Self { single: single(), is_resent, ..Self::of(report) };
        self.reports.into_iter().map(alone)
    }

    /// Replaces a report that Redis does not accept with one that marks its task Dead. Returns
    /// `Err` if there is no such replacement.
    pub(crate) fn into_dead(self, problem: &str) -> Result<Self, Self> {
        if self.single.as_ref().is_some_and(|single| single.is_dead) {
            return Err(self);
        }
        let (task, attempt, what) = match self.reports.first() {
            Some(Report::Complete(done)) => {
                let what = "the task succeeded, but Redis refused the report";
                (Some(done.task), done.attempt, what)
            }
            Some(Report::Fail(failure)) => {
                let entry = serde_json::from_str::<AttemptError>(&failure.error);
                (
                    None,
                    entry.map_or(0, |entry| entry.attempt),
                    "the task failed, and Redis refused the report",
                )
            }
            _ => return Err(self),
        };
        let message = format!("{what}: {problem}");
        let lease = self.first().clone();
        let dead = Self::of(decide_outcome::mark_dead(
            lease,
            (task, attempt),
            Reason::Unreported,
            &message,
        ));
        Ok(Self { single: Some(Single { is_dead: true, ..Single::new(0) }), ..dead })
    }
}
