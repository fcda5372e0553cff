//! How fast many tasks are changed: [`Pace`].

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How many tasks one call changes: others wait for one call at most, which takes Redis about 25 µs
/// a task. Eight tasks would be faster, but one claim in a hundred would take up to 0.5 ms longer,
/// and not 0.24 ms: docs/BENCHMARKS.md, "Claims beside an operation".
pub const PACED: usize = 4;
/// A pause is at least this many times as long as the calls before it took.
const REST: u32 = 8;
/// The longest pause is this many times longer than the shortest one.
const SLOWER_MAX: u32 = 4;
const REST_MAX: Duration = Duration::from_secs(1);

/// Keeps a pause after each call that changes tasks. The pause grows with the time that Redis takes
/// to answer: with the time of the calls themselves, and once more if small calls take longer than
/// they did, because then others keep Redis busy.
#[derive(Debug, Default)]
pub struct Pace {
    /// The shortest time of a small call so far.
    best: Option<Duration>,
    /// How many times slower the last small call was.
    slower: u32,
}

impl Pace {
    /// Notes how long Redis took for a small call.
    pub fn note(&mut self, took: Duration) {
        // A store in the same process answers in no time.
        let took = took.max(Duration::from_micros(50));
        let best = self.best.map_or(took, |best| best.min(took));
        self.best = Some(best);
        let times = took.as_micros() / best.as_micros().max(1);
        self.slower = u32::try_from(times).unwrap_or(SLOWER_MAX).clamp(1, SLOWER_MAX);
    }

    /// Waits after a call that began then.
    pub async fn rest(&self, begun: Instant) {
        sleep(self.rest_after(begun.elapsed())).await;
    }

    fn rest_after(&self, took: Duration) -> Duration {
        took.saturating_mul(REST * self.slower.max(1)).min(REST_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_pause_grows_with_the_calls_and_again_when_small_calls_get_slower() {
        let mut pace = Pace::default();
        assert_eq!(pace.rest_after(2 * MS), 16 * MS);
        pace.note(MS);
        assert_eq!(pace.rest_after(2 * MS), 16 * MS, "the first small call is the measure");
        pace.note(3 * MS);
        assert_eq!(pace.rest_after(2 * MS), 48 * MS);
        pace.note(MS);
        assert_eq!(pace.rest_after(2 * MS), 16 * MS, "Redis is fast again");
        pace.note(1_000 * MS);
        assert_eq!(pace.rest_after(2 * MS), 64 * MS, "a single slow call does not stop it");
        assert_eq!(pace.rest_after(900 * MS), REST_MAX);
    }
}
