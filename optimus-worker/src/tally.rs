//! Counts how many attempts had each outcome since the last summary: [`Tally`].

use std::{
    mem,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{misfit::Misfits, outcome_log::Outcome};

/// One counter for each outcome, and one for attempts that were lost with their worker. A count
/// costs an atomic addition, at every log level.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    outcomes: [AtomicU64; OUTCOMES],
    lost: AtomicU64,
    /// The tasks that had no attempt here.
    pub(crate) misfits: Misfits,
    /// The counts at the last summary.
    summed_up: Mutex<Counts>,
}

const OUTCOMES: usize = 8;

/// The counts of a [`Tally`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) success: u64,
    pub(crate) retry: u64,
    pub(crate) dead: u64,
    pub(crate) snoozed: u64,
    pub(crate) cancelled: u64,
    pub(crate) given_back: u64,
    pub(crate) stale: u64,
    pub(crate) unanswered: u64,
    /// The attempts of lost workers, which this worker took back. Each has an outcome, too.
    pub(crate) lost: u64,
}

impl Tally {
    pub(crate) fn count(&self, outcome: &Outcome) {
        let index = match outcome {
            Outcome::Success(_) => 0,
            Outcome::Retry { .. } => 1,
            Outcome::Dead(_) => 2,
            Outcome::Snoozed { .. } => 3,
            Outcome::Cancelled(_) => 4,
            Outcome::GivenBack => 5,
            Outcome::Stale => 6,
            Outcome::Unanswered => 7,
        };
        self.outcomes[index].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an attempt that was lost with its worker, with its outcome.
    pub(crate) fn count_lost(&self, outcome: &Outcome) {
        self.count(outcome);
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts since the last call.
    pub(crate) fn take(&self) -> Counts {
        let mut before = self.summed_up.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.all();
        now.since(&mem::replace(&mut *before, now))
    }

    /// Returns the counts since the start of the worker.
    pub(crate) fn all(&self) -> Counts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let [success, retry, dead, snoozed, cancelled, given_back, stale, unanswered] =
            self.outcomes.each_ref().map(read);
        let lost = read(&self.lost);
        Counts { success, retry, dead, snoozed, cancelled, given_back, stale, unanswered, lost }
    }
}

impl Counts {
    /// Returns what was counted since earlier counts.
    fn since(&self, before: &Self) -> Self {
        Self {
            success: self.success - before.success,
            retry: self.retry - before.retry,
            dead: self.dead - before.dead,
            snoozed: self.snoozed - before.snoozed,
            cancelled: self.cancelled - before.cancelled,
            given_back: self.given_back - before.given_back,
            stale: self.stale - before.stale,
            unanswered: self.unanswered - before.unanswered,
            lost: self.lost - before.lost,
        }
    }

    /// Returns each count with its text in the log.
    fn texts(&self) -> [(u64, &'static str); OUTCOMES] {
        [
            (self.success, "succeeded"),
            (self.retry, "will be retried"),
            (self.dead, "died"),
            (self.snoozed, "snoozed"),
            (self.cancelled, "cancelled"),
            (self.given_back, "given back"),
            (self.stale, "stale"),
            (self.unanswered, "unanswered"),
        ]
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the text of all counts above zero: `12 succeeded, 1 will be retried`.
    pub(crate) fn text(&self) -> String {
        let parts = self.texts().into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
        match (parts.join(", "), self.lost) {
            (text, _) if text.is_empty() => "none ended".to_owned(),
            (text, 0) => text,
            // The counts before have other retries and deaths, too.
            (text, 1) => format!("{text}; 1 attempt was lost with another worker"),
            (text, lost) => format!("{text}; {lost} attempts were lost with another worker"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::outcome_log::Why;

    #[test]
    fn each_count_is_returned_once() {
        let tally = Tally::default();
        for _ in 0..12 {
            tally.count(&Outcome::Success(tracing::Level::DEBUG));
        }
        tally.count(&Outcome::Snoozed { next_in: Duration::ZERO, because: None });
        tally.count(&Outcome::Stale);
        let counts = tally.take();
        assert_eq!(counts, Counts { success: 12, snoozed: 1, stale: 1, ..Counts::default() });
        assert_eq!(counts.text(), "12 succeeded, 1 snoozed, 1 stale");
        assert!(tally.take().is_empty());
        assert_eq!(tally.take().text(), "none ended");
    }

    #[test]
    fn an_attempt_of_a_lost_worker_counts_as_lost_and_with_its_outcome() {
        let tally = Tally::default();
        let why = Why::Failed;
        let retry = Outcome::Retry { next_in: Duration::ZERO, why, error: None };
        tally.count(&retry);
        tally.count_lost(&retry);
        tally.count(&Outcome::Unanswered);
        let counts = tally.take();
        let expected = Counts { retry: 2, lost: 1, unanswered: 1, ..Counts::default() };
        assert_eq!(counts, expected);
        let text = "2 will be retried, 1 unanswered; 1 attempt was lost with another worker";
        assert_eq!(counts.text(), text);
        let text = "2 will be retried; 2 attempts were lost with another worker";
        assert_eq!(Counts { retry: 2, lost: 2, ..Counts::default() }.text(), text);
    }
}
