//! The reports of one queue and kind that wait to be sent: [`ReportBuffer`].

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use crate::{
    decide_outcome::Report,
    report_batch::{ReportBatch, Single},
};

/// How long a refused buffer waits at first, and at most.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// A report that is refused this often while other reports of its buffer pass is the cause of the
/// refusals.
const REFUSALS_MAX: u32 = 3;
/// The wait before a report that Redis accepts in no form is sent again.
const PARKED: Duration = Duration::from_secs(60);

/// The batches in which reports wait. Reports are put into batches as they arrive, so that a turn
/// takes whole calls.
#[derive(Debug, Default)]
pub(crate) struct ReportBuffer {
    waiting: VecDeque<ReportBatch>,
    /// Reports that were refused together. They are sent one by one to find the cause.
    singles: VecDeque<ReportBatch>,
    /// Reports that were refused again, and wait.
    parked: Vec<ReportBatch>,
    /// How many reports are not answered, either waiting or under way.
    pub(crate) held: usize,
    /// How many reports Redis accepted.
    passed: u64,
    /// How often in a row Redis refused everything that was sent.
    refusals: u32,
    /// Whether only one batch is sent at a time. After a refusal, this shows whether reports pass
    /// again.
    is_probing: bool,
    not_before: Option<Instant>,
}

/// The treatment of a batch that was refused.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The batch is sent again.
    Held,
    /// The buffer waits, and this was the first refusal.
    BufferWaits,
    /// Redis accepts other reports, but not this one.
    Unreportable(ReportBatch),
}

impl ReportBuffer {
    pub(crate) fn push(&mut self, report: Report) {
        self.held += 1;
        match self.waiting.back_mut() {
            Some(report_batch) if report_batch.takes(&report) => report_batch.add(report),
            _ => self.waiting.push_back(ReportBatch::of(report)),
        }
    }

    /// Adds a batch that replaces a refused one.
    pub(crate) fn push_batch(&mut self, report_batch: ReportBatch) {
        self.held += report_batch.len();
        self.singles.push_back(report_batch);
    }

    /// Returns when a batch may be sent. Returns `None` while no batch can be sent.
    pub(crate) fn ready_at(&self) -> Option<Instant> {
        if self.is_probing {
            return None;
        }
        let fronts = [self.waiting.front(), self.singles.front()].into_iter().flatten();
        let parked = self.parked.iter().filter_map(ReportBatch::parked_until);
        let first = fronts.map(|report_batch| report_batch.since).chain(parked).min()?;
        Some(self.not_before.map_or(first, |at| at.max(first)))
    }

    /// Returns how many reports may be sent now.
    pub(crate) fn ready(&self, now: Instant) -> usize {
        let is_ready = self.ready_at().is_some_and(|at| at <= now);
        let waiting =
            || self.waiting.iter().map(ReportBatch::len).sum::<usize>() + self.singles.len();
        if is_ready { waiting() } else { 0 }
    }

    /// Takes one of the batches that may be sent.
    pub(crate) fn take(&mut self, now: Instant) -> Option<ReportBatch> {
        if self.is_probing || self.not_before.is_some_and(|at| at > now) {
            return None;
        }
        let over = |report_batch: &ReportBatch| {
            report_batch.parked_until().is_some_and(|until| until <= now)
        };
        if let Some(at) = self.parked.iter().position(over) {
            self.singles.push_front(self.parked.swap_remove(at));
        }
        // Batches that were not refused go first, because they may show that reports pass again.
        let report_batch = self.waiting.pop_front().or_else(|| self.singles.pop_front());
        self.is_probing = report_batch.is_some() && self.refusals > 0;
        report_batch
    }

    /// Notes that Redis accepted this many reports. Returns `true` if it refused all reports
    /// before.
    pub(crate) fn pass(&mut self, reports: usize) -> bool {
        self.held -= reports;
        self.passed += reports as u64;
        let was_refused = self.refusals > 0;
        (self.refusals, self.not_before, self.is_probing) = (0, None, false);
        was_refused
    }

    /// Notes that no answer has arrived. The batch waits again, before all others.
    pub(crate) fn give_back(&mut self, mut report_batch: ReportBatch) {
        self.is_probing = false;
        report_batch.since = Instant::now();
        let batches =
            if report_batch.single.is_some() { &mut self.singles } else { &mut self.waiting };
        batches.push_front(report_batch);
    }

    /// Handles a batch that Redis refused, and would refuse again if it were sent now.
    pub(crate) fn refuse(&mut self, mut report_batch: ReportBatch, now: Instant) -> Refused {
        let is_first = self.refusals == 0;
        if report_batch.len() > 1 {
            if !is_first {
                self.back_off(now);
            }
            self.singles.extend(report_batch.split(self.passed));
            return Refused::Held;
        }
        let single = report_batch.single.get_or_insert_with(|| Single::new(self.passed));
        single.refusals += u32::from(single.passed < self.passed);
        single.passed = self.passed;
        match single.refusals {
            0 => {
                self.back_off(now);
                report_batch.since = now;
                self.singles.push_back(report_batch);
                return if is_first { Refused::BufferWaits } else { Refused::Held };
            }
            REFUSALS_MAX.. => {
                self.held -= 1;
                self.is_probing = false;
                return Refused::Unreportable(report_batch);
            }
            refusals => {
                // The other reports do not wait for this one.
                self.is_probing = false;
                single.parked_until = Some(now + BACKOFF_FIRST * refusals);
                self.parked.push(report_batch);
            }
        }
        Refused::Held
    }

    /// Notes that Redis accepts this report in no form. The report is sent again, but rarely.
    pub(crate) fn park(&mut self, mut report_batch: ReportBatch, now: Instant) {
        self.held += 1;
        let single = report_batch.single.get_or_insert_with(|| Single::new(self.passed));
        single.parked_until = Some(now + PARKED);
        self.parked.push(report_batch);
    }

    fn back_off(&mut self, now: Instant) {
        let is_answer_to_probe = std::mem::take(&mut self.is_probing);
        // If several batches are under way, only the first refusal counts.
        if self.refusals == 0 || is_answer_to_probe {
            let wait = BACKOFF_FIRST.saturating_mul(1 << self.refusals.min(10)).min(BACKOFF_MAX);
            self.not_before = Some(now + wait);
            self.refusals += 1;
        }
    }
}

#[cfg(test)]
#[path = "report_buffer_tests.rs"]
mod tests;
