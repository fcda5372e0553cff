//! Finds a sharded function that spins: it asks for the next round again and again, although its
//! rounds do nothing. [`SpinWatch`] says when to warn of it.

use std::time::Duration;

use tokio::time::Instant;

/// A round that takes as long has done something.
const QUICK: Duration = Duration::from_millis(1);
/// How long rounds are counted before a warning.
const WINDOW: Duration = Duration::from_secs(3);
/// This many quick rounds in a second are too many.
const RATE_MAX: u32 = 1_000;
/// The least time between two warnings.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// Counts the quick rounds of one shard that ask for another one.
#[derive(Debug, Default)]
pub(crate) struct SpinWatch {
    /// The beginning of the present window.
    since: Option<Instant>,
    quick: u32,
    warned_at: Option<Instant>,
    /// The position after the last round.
    position: Option<String>,
}

impl SpinWatch {
    /// Counts a round that asks for another one. Returns how many quick rounds there were in a
    /// second, if a warning is due. A round that has stored a position has done something.
    pub(crate) fn again(
        &mut self,
        (began, ended): (Instant, Instant),
        position: Option<&str>,
    ) -> Option<u32> {
        let since = *self.since.get_or_insert(began);
        if self.position.as_deref() != position {
            self.position = position.map(str::to_owned);
        } else if ended.duration_since(began) < QUICK {
            // Others are not held against it: a busy machine makes some quick rounds slow.
            self.quick = self.quick.saturating_add(1);
        }
        let span = ended.duration_since(since);
        if span < WINDOW {
            return None;
        }
        let rate = f64::from(self.quick) / span.as_secs_f64();
        self.rest();
        let is_told = self.warned_at.is_some_and(|at| ended.duration_since(at) < WARN_EVERY);
        if rate <= f64::from(RATE_MAX) || is_told {
            return None;
        }
        self.warned_at = Some(ended);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within u32")]
        Some(rate as u32)
    }

    /// Begins a new count: the shard rests.
    pub(crate) fn rest(&mut self) {
        (self.since, self.quick) = (None, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts so many rounds of so many microseconds, and returns the warnings.
    fn warnings(watch: &mut SpinWatch, from: Instant, rounds: u32, us: u64) -> Vec<u32> {
        let took = Duration::from_micros(us);
        let round = |at| watch.again((from + took * at, from + took * (at + 1)), None);
        (0..rounds).filter_map(round).collect()
    }

    #[test]
    fn a_function_that_spins_is_named_once_a_minute() {
        let (mut watch, now) = (SpinWatch::default(), Instant::now());
        assert_eq!(warnings(&mut watch, now, 100_000, 100), [10_000]);
        let later = now + Duration::from_secs(10);
        assert!(warnings(&mut watch, later, 500_000, 100).is_empty());
        let later = later + WARN_EVERY;
        assert_eq!(warnings(&mut watch, later, 100_000, 100), [10_000]);
    }

    #[test]
    fn rounds_that_take_their_time_rest_or_go_on_do_not_spin() {
        let (mut watch, now) = (SpinWatch::default(), Instant::now());
        assert!(warnings(&mut watch, now, 10_000, 1_000).is_empty());
        for at in 0..10_u32 {
            let from = now + Duration::from_secs(20 + u64::from(at));
            assert!(warnings(&mut watch, from, 10_000, 100).is_empty());
            watch.rest();
        }
        let (from, took) = (now + Duration::from_secs(40), Duration::from_micros(100));
        for at in 0..100_000_u32 {
            let (began, position) = (from + took * at, at.to_string());
            assert_eq!(watch.again((began, began + took), Some(&position)), None);
        }
    }
}
