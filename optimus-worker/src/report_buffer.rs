//! Reports of one queue and kind that wait to be sent: [`ReportBuffer`].

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use crate::{
    decide::Report,
    report_batch::{ReportBatch, Single},
};

/// How long a refused buffer waits, at first and at most.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// A report that is refused this often while others of its buffer pass is itself the cause.
const REFUSALS_MAX: u32 = 3;
/// How long until a report that Redis takes in no form is sent again.
const PARKED: Duration = Duration::from_secs(60);

/// Reports are put into batches as they come, so that a turn takes whole calls.
#[derive(Debug, Default)]
pub(crate) struct ReportBuffer {
    waiting: VecDeque<ReportBatch>,
    /// Reports that were refused together, and are sent one by one to find the cause.
    singles: VecDeque<ReportBatch>,
    /// Reports that were refused again, and wait.
    parked: Vec<ReportBatch>,
    /// How many reports are not answered: those that wait, and those on their way.
    pub(crate) held: usize,
    /// How many reports Redis took.
    passed: u64,
    /// How often in a row everything that was sent was refused.
    refusals: u32,
    /// After a refusal one batch is sent at a time, to find out whether reports pass again.
    is_probing: bool,
    not_before: Option<Instant>,
}

/// What happens to a batch that was refused.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It is sent again.
    Held,
    /// The buffer waits, and this was the first refusal.
    BufferWaits,
    /// Redis takes other reports, but not this one.
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

    /// When something may be sent; `None` while nothing can be.
    pub(crate) fn ready_at(&self) -> Option<Instant> {
        if self.is_probing {
            return None;
        }
        let fronts = [self.waiting.front(), self.singles.front()].into_iter().flatten();
        let parked = self.parked.iter().filter_map(ReportBatch::parked_until);
        let first = fronts.map(|report_batch| report_batch.since).chain(parked).min()?;
        Some(self.not_before.map_or(first, |at| at.max(first)))
    }

    /// How many reports may be sent now.
    pub(crate) fn ready(&self, now: Instant) -> usize {
        let is_ready = self.ready_at().is_some_and(|at| at <= now);
        let waiting =
            || self.waiting.iter().map(ReportBatch::len).sum::<usize>() + self.singles.len();
        if is_ready { waiting() } else { 0 }
    }

    /// One of the batches that may be sent.
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
        // Batches that were not refused go first: they may show that reports pass again.
        let report_batch = self.waiting.pop_front().or_else(|| self.singles.pop_front());
        self.is_probing = report_batch.is_some() && self.refusals > 0;
        report_batch
    }

    /// Redis took this many reports. `true` if it refused all before.
    pub(crate) fn pass(&mut self, reports: usize) -> bool {
        self.held -= reports;
        self.passed += reports as u64;
        let was_refused = self.refusals > 0;
        (self.refusals, self.not_before, self.is_probing) = (0, None, false);
        was_refused
    }

    /// No answer has come: the batch waits again, as the first.
    pub(crate) fn give_back(&mut self, mut report_batch: ReportBatch) {
        self.is_probing = false;
        report_batch.since = Instant::now();
        let batches =
            if report_batch.single.is_some() { &mut self.singles } else { &mut self.waiting };
        batches.push_front(report_batch);
    }

    /// Redis refused a batch, and would refuse it again if it were sent now.
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
                // The others do not wait for it.
                self.is_probing = false;
                single.parked_until = Some(now + BACKOFF_FIRST * refusals);
                self.parked.push(report_batch);
            }
        }
        Refused::Held
    }

    /// Redis takes this report in no form: it is sent again, but rarely.
    pub(crate) fn park(&mut self, mut report_batch: ReportBatch, now: Instant) {
        self.held += 1;
        let single = report_batch.single.get_or_insert_with(|| Single::new(self.passed));
        single.parked_until = Some(now + PARKED);
        self.parked.push(report_batch);
    }

    fn back_off(&mut self, now: Instant) {
        let is_answer_to_probe = std::mem::take(&mut self.is_probing);
        // Of several batches on their way only the first refusal counts.
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
