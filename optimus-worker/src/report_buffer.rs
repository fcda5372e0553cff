//! Reports of one queue and kind that wait to be sent: [`ReportBuffer`].

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use crate::{
    decide::Report,
    report_batch::{ReportBatch, Single},
};

/// How long a lane waits that was refused, at first and at most.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// A report that was refused so often while others of its lane passed is refused for what it is.
const STRIKES_MAX: u32 = 3;
/// A report that is taken in no form is sent again so rarely.
const PARKED: Duration = Duration::from_secs(60);

/// What waits is grouped as it comes, so that a turn takes whole calls.
#[derive(Debug, Default)]
pub(crate) struct ReportBuffer {
    waiting: VecDeque<ReportBatch>,
    /// Reports that were refused with others, and are sent alone to see which of them it was.
    singles: VecDeque<ReportBatch>,
    /// Those that were refused again, and wait.
    parked: Vec<ReportBatch>,
    /// Reports that are not answered: those that wait, and those on their way.
    pub(crate) held: usize,
    /// Reports that Redis took.
    passed: u64,
    /// How often in a row all that was sent was refused.
    refusals: u32,
    /// After a refusal one group is sent at a time, to see whether reports pass again.
    is_probing: bool,
    not_before: Option<Instant>,
}

/// What becomes of a group that was refused.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It is sent again.
    Held,
    /// The lane waits, and this was the first time.
    LaneWaits,
    /// Redis takes others, but not this one.
    Culprit(ReportBatch),
}

impl ReportBuffer {
    pub(crate) fn push(&mut self, report: Report) {
        self.held += 1;
        match self.waiting.back_mut() {
            Some(report_batch) if report_batch.takes(&report) => report_batch.add(report),
            _ => self.waiting.push_back(ReportBatch::of(report)),
        }
    }

    /// Adds a group that was refused in another form.
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

    /// The reports that may be sent now.
    pub(crate) fn ready(&self, now: Instant) -> usize {
        let is_ready = self.ready_at().is_some_and(|at| at <= now);
        let waiting =
            || self.waiting.iter().map(ReportBatch::len).sum::<usize>() + self.singles.len();
        if is_ready { waiting() } else { 0 }
    }

    /// One of those that may be sent.
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
        // What was not refused before goes first: it may show that reports pass.
        let report_batch = self.waiting.pop_front().or_else(|| self.singles.pop_front());
        self.is_probing = report_batch.is_some() && self.refusals > 0;
        report_batch
    }

    /// Redis took so many reports. `true` if it refused all before.
    pub(crate) fn pass(&mut self, reports: usize) -> bool {
        self.held -= reports;
        self.passed += reports as u64;
        let was_refused = self.refusals > 0;
        (self.refusals, self.not_before, self.is_probing) = (0, None, false);
        was_refused
    }

    /// No answer has come: the group waits again, foremost.
    pub(crate) fn give_back(&mut self, mut report_batch: ReportBatch) {
        self.is_probing = false;
        report_batch.since = Instant::now();
        report_batch.is_resent = true;
        let line =
            if report_batch.single.is_some() { &mut self.singles } else { &mut self.waiting };
        line.push_front(report_batch);
    }

    /// Redis refused a group, and would refuse it again at once.
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
        single.strikes += u32::from(single.passed < self.passed);
        single.passed = self.passed;
        match single.strikes {
            0 => {
                self.back_off(now);
                report_batch.since = now;
                self.singles.push_back(report_batch);
                return if is_first { Refused::LaneWaits } else { Refused::Held };
            }
            STRIKES_MAX.. => {
                self.held -= 1;
                self.is_probing = false;
                return Refused::Culprit(report_batch);
            }
            strikes => {
                // The others need not wait for it.
                self.is_probing = false;
                single.parked_until = Some(now + BACKOFF_FIRST * strikes);
                self.parked.push(report_batch);
            }
        }
        Refused::Held
    }

    /// A report that Redis takes in no form is sent again, but rarely.
    pub(crate) fn park(&mut self, mut report_batch: ReportBatch, now: Instant) {
        self.held += 1;
        let single = report_batch.single.get_or_insert_with(|| Single::new(self.passed));
        single.parked_until = Some(now + PARKED);
        self.parked.push(report_batch);
    }

    fn back_off(&mut self, now: Instant) {
        let is_answer_to_probe = std::mem::take(&mut self.is_probing);
        // Of several that were under way the first one counts.
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
