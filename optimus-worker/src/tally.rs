//! Counts how many attempts had each outcome since the last summary: [`Tally`].

use std::sync::atomic::{AtomicU64, Ordering};

use crate::outcome_log::Outcome;

/// One counter for each outcome. A count costs an atomic addition, at every log level.
#[derive(Debug, Default)]
pub(crate) struct Tally([AtomicU64; OUTCOMES]);

const OUTCOMES: usize = 7;

/// The counts of a [`Tally`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) success: u64,
    pub(crate) retry: u64,
    pub(crate) dead: u64,
    pub(crate) snoozed: u64,
    pub(crate) cancelled: u64,
    pub(crate) given_back: u64,
    pub(crate) lost: u64,
}

impl Tally {
    pub(crate) fn count(&self, outcome: &Outcome) {
        let index = match outcome {
            Outcome::Success(_) => 0,
            Outcome::Retry { .. } => 1,
            Outcome::Dead(_) => 2,
            Outcome::Snoozed(_) => 3,
            Outcome::Cancelled(_) => 4,
            Outcome::GivenBack => 5,
            Outcome::Lost | Outcome::Unanswered => 6,
        };
        self.0[index].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts since the last call.
    pub(crate) fn take(&self) -> Counts {
        let [success, retry, dead, snoozed, cancelled, given_back, lost] =
            self.0.each_ref().map(|count| count.swap(0, Ordering::Relaxed));
        Counts { success, retry, dead, snoozed, cancelled, given_back, lost }
    }
}

impl Counts {
    /// Returns each count with its text in the log.
    fn texts(&self) -> [(u64, &'static str); OUTCOMES] {
        [
            (self.success, "succeeded"),
            (self.retry, "will be retried"),
            (self.dead, "died"),
            (self.snoozed, "snoozed"),
            (self.cancelled, "cancelled"),
            (self.given_back, "given back"),
            (self.lost, "lost their lease"),
        ]
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the text of all counts above zero: `12 succeeded, 1 will be retried`.
    pub(crate) fn text(&self) -> String {
        let parts = self.texts().into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
        if parts.is_empty() { "none ended".to_owned() } else { parts.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_count_is_returned_once() {
        let tally = Tally::default();
        for _ in 0..12 {
            tally.count(&Outcome::Success(tracing::Level::DEBUG));
        }
        tally.count(&Outcome::Snoozed(Duration::ZERO));
        tally.count(&Outcome::Lost);
        let counts = tally.take();
        assert_eq!(counts, Counts { success: 12, snoozed: 1, lost: 1, ..Counts::default() });
        assert_eq!(counts.text(), "12 succeeded, 1 snoozed, 1 lost their lease");
        assert!(tally.take().is_empty());
        assert_eq!(tally.take().text(), "none ended");
    }
}
