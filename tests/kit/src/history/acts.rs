//! The acts of the nemesis, and their possible effects on each process: [`Acts`].

use std::collections::HashMap;
use std::time::Duration;

use super::account::Execution;
use super::{Event, How, What, Why};

/// The longest time in which a worker delivers a report while no fault is active.
const REPORT_WITHIN: Duration = Duration::from_secs(1);

/// The longest time for a report after an outage. A lost reply is given up after 8 s, and the wait
/// for a new connection grows to 3 s.
const REPORT_AFTER_OUTAGE: Duration = Duration::from_secs(12);

/// A worker that was frozen or disconnected may begin a task this long after its claim.
pub(super) const LATE_BEGIN: Duration = Duration::from_secs(30);

/// A worker repeats a failed heartbeat after this time. Until then, it can't renew its leases.
const BEATS_AGAIN: Duration = Duration::from_millis(250);

/// An interval in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) since: u64,
    pub(super) until: u64,
}

impl Span {
    pub(super) fn meets(self, since: u64, until: u64) -> bool {
        self.since <= until && since <= self.until
    }

    /// Returns how much of this interval is inside the other one.
    fn within(self, other: Self) -> u64 {
        self.until.min(other.until).saturating_sub(self.since.max(other.since))
    }

    /// Returns the interval with the effects of an outage. A client that tries to connect waits for
    /// up to as long again as the outage lasts, within limits.
    fn works_on(self, lease: Duration) -> Self {
        Self { until: self.until + self.lasts().min(ns(lease * 5 / 8)), ..self }
    }

    fn lasts(self) -> u64 {
        self.until - self.since
    }
}

/// The acts, grouped by the process that they affected.
#[derive(Debug, Default)]
pub(super) struct Acts {
    /// The times at which processes were killed. The system gives the id of a dead process to a
    /// later one, so an id may have several.
    killed: HashMap<u32, Vec<u64>>,
    left: HashMap<u32, Vec<Span>>,
    pub(super) frozen: HashMap<u32, Vec<Span>>,
    /// The process, or none for all processes.
    pub(super) outages: Vec<(Span, Option<u32>)>,
    /// The times from each failed heartbeat of a worker until its next one.
    missed: HashMap<u32, Vec<Span>>,
    pub(super) stalls: Vec<Span>,
    pub(super) rollbacks: Vec<Span>,
    /// From when on tasks that wait for others may give up.
    pub(super) give_ups: Option<u64>,
    /// The leases that workers reported.
    leases: HashMap<u32, Duration>,
    /// The times at which the clock of Redis was set forward.
    pub(super) hastened: Vec<Span>,
    /// Whether the clock of Redis was set, forward or back.
    pub(super) clock_was_set: bool,
}

impl Acts {
    pub(super) fn add(&mut self, event: &Event) {
        let span = |since: u64| Span { since: since.min(event.at), until: event.at };
        match event.what {
            What::Killed { victim } => self.killed.entry(victim).or_default().push(event.at),
            What::Left { worker, since } => {
                self.left.entry(worker).or_default().push(span(since));
            }
            What::Frozen { victim, since } => {
                self.frozen.entry(victim).or_default().push(span(since));
            }
            What::Outage { since, of } => self.outages.push((span(since), of)),
            What::Missed { worker } => {
                let until = event.at + ns(BEATS_AGAIN);
                self.missed.entry(worker).or_default().push(Span { since: event.at, until });
            }
            What::Stalled { since } => self.stalls.push(span(since)),
            What::ClockSet { since, by_ms } => {
                self.clock_was_set = true;
                if by_ms > 0 {
                    self.hastened.push(span(since));
                }
            }
            What::GiveUps => self.give_ups = self.give_ups.or(Some(event.at)),
            What::Rollback { since } => self.rollbacks.push(span(since)),
            What::Lease { worker, ms } => {
                self.leases.insert(worker, Duration::from_millis(ms));
            }
            _ => {}
        }
    }

    /// Sorts outages by their start times, on which [`held_until`](Self::held_until) relies, and
    /// the kills of each process id.
    pub(super) fn sort(&mut self) {
        self.outages.sort_by_key(|(span, _)| span.since);
        self.killed.values_mut().for_each(|kills| kills.sort_unstable());
    }

    /// Returns how many processes were killed.
    pub(super) fn kills(&self) -> u64 {
        self.killed.values().map(|kills| kills.len() as u64).sum()
    }

    /// Returns when the process with this id at that time was killed, if it was.
    pub(super) fn killed_since(&self, pid: u32, since: u64) -> Option<u64> {
        self.killed.get(&pid)?.iter().copied().find(|at| *at >= since)
    }

    /// Returns whether a worker with this id ended as it was asked to, in this interval.
    pub(super) fn left(&self, pid: u32, since: u64, until: u64) -> bool {
        self.left.get(&pid).into_iter().flatten().any(|span| span.meets(since, until))
    }

    /// Returns until when the worker may have held the report of this execution. The time is
    /// unlimited if the execution has not ended.
    pub(super) fn held_until(&self, execution: &Execution) -> u64 {
        let Some((ended, how)) = execution.end else { return u64::MAX };
        let mut until = ended + ns(REPORT_WITHIN);
        let frozen = self.frozen.get(&execution.pid).into_iter().flatten();
        for span in frozen.chain(&self.stalls) {
            if span.meets(ended, until) {
                until = until.max(span.until + ns(REPORT_WITHIN));
            }
        }
        for span in self.outages_of(execution.pid) {
            if span.meets(ended, until) {
                until = until.max(span.until + ns(REPORT_AFTER_OUTAGE));
            }
        }
        // A stopped execution has no report.
        if how == How::Stopped { u64::MAX } else { until }
    }

    /// Returns what kept a process from its heartbeats in this interval, if that lasted so long
    /// that the lease may have ended. Several short faults that follow each other count together. A
    /// fault that has just ended counts until the next heartbeat. A fault that made a heartbeat
    /// fail counts until the worker repeats the heartbeat, however short the fault was. The lease
    /// is `usual` unless the worker reported another.
    pub(super) fn kept(&self, pid: u32, since: u64, until: u64, usual: Duration) -> Option<Why> {
        let lease = self.leases.get(&pid).copied().unwrap_or(usual);
        let frozen = self.frozen.get(&pid).into_iter().flatten().map(|span| (*span, Why::Frozen));
        let outages = self.outages_of(pid).map(|span| (span.works_on(lease), Why::Outage));
        let stalls = self.stalls.iter().map(|span| (*span, Why::Stalled));
        let since = since.saturating_sub(ns(lease));
        let all = frozen.chain(outages).chain(stalls);
        let spans: Vec<_> = all.filter(|(span, _)| span.meets(since, until)).collect();
        let missed = self.missed.get(&pid).into_iter().flatten();
        let missed: Vec<Span> = missed.copied().filter(|span| span.meets(since, until)).collect();
        let too_long = |last: Span| {
            let window = Span { since: last.until.saturating_sub(ns(lease)), ..last };
            let faults = || spans.iter().map(|(span, _)| *span);
            let hindered: u64 = faults().map(|span| span.within(window)).sum();
            // A failed heartbeat adds only what no other fault covers.
            let all = covered(faults().chain(missed.iter().copied()), window);
            let hindered = hindered + all - covered(faults(), window);
            hindered.max(last.lasts()) > ns(lease / 2)
        };
        let missed = missed.iter().map(|span| (*span, Why::Outage));
        let mut all = spans.iter().copied().chain(missed);
        all.find(|(last, _)| too_long(*last)).map(|(_, why)| why)
    }

    /// Returns whether, in this interval, a worker may have lost a task that it had claimed and not
    /// begun.
    pub(super) fn may_have_lost(&self, since: u64, until: u64, usual: Duration) -> bool {
        let killed = self.killed.values().flatten().any(|at| (since..=until).contains(at));
        let away = self.outages.iter().map(|(_, of)| of.unwrap_or_default());
        let mut workers = self.leases.keys().chain(self.frozen.keys()).copied().chain(away);
        killed || workers.any(|pid| self.kept(pid, since, until, usual).is_some())
    }

    fn outages_of(&self, pid: u32) -> impl Iterator<Item = &Span> {
        let outages = self.outages.iter();
        outages.filter(move |(_, of)| of.is_none_or(|of| of == pid)).map(|(span, _)| span)
    }

    /// Returns whether the clock moved forward, so that a task with a later due time may have been
    /// due at once.
    pub(super) fn hastened(&self, since: u64, until: u64) -> bool {
        self.hastened.iter().any(|span| span.meets(since, until))
    }

    /// Returns whether Redis may have lost a write that it acknowledged in this interval.
    pub(super) fn rolled_back(&self, since: u64, until: u64) -> bool {
        self.rollbacks.iter().any(|span| span.meets(since, until))
    }
}

/// Returns how much of the window these intervals cover together.
fn covered(spans: impl Iterator<Item = Span>, window: Span) -> u64 {
    let mut spans: Vec<Span> = spans.collect();
    spans.sort_by_key(|span| span.since);
    let (mut covered, mut reached) = (0, window.since);
    for span in spans {
        let until = span.until.min(window.until);
        covered += until.saturating_sub(span.since.max(reached));
        reached = reached.max(until);
    }
    covered
}

pub(super) fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
