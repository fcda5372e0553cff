//! Logs one event a minute about all attempts of the worker: [`Summary`].

use std::{sync::Arc, time::Duration};

use optimus_core::log_event;
use tokio::time::Instant;

use crate::{role::Role, shared::Shared};

const EVERY: Duration = Duration::from_secs(60);
/// Added before the fraction is cut off, so that seconds are rounded.
const HALF_A_SECOND: Duration = Duration::from_millis(500);

/// The role that logs the summaries. If no attempt has ended and none runs, it logs nothing.
pub(crate) struct Summary {
    shared: Arc<Shared>,
    since: Instant,
}

impl Summary {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, since: Instant::now() }
    }

    /// Logs the attempts that have ended since the last summary.
    pub(crate) fn log(&mut self) {
        let seconds = (self.since.elapsed() + HALF_A_SECOND).as_secs().max(1);
        self.since = Instant::now();
        let (counts, running) = (self.shared.tally.take(), self.shared.attempts.running());
        if counts.is_empty() && running == 0 {
            return;
        }
        log_event!(
            self.shared.log,
            target: "optimus::summary",
            INFO,
            success = counts.success,
            retry = counts.retry,
            dead = counts.dead,
            snoozed = counts.snoozed,
            cancelled = counts.cancelled,
            given_back = counts.given_back,
            stale = counts.stale,
            unanswered = counts.unanswered,
            lost = counts.lost,
            running,
            seconds,
            "in {seconds} s: {}; {running} running",
            counts.text()
        );
    }
}

impl Role for Summary {
    async fn tick(&mut self) -> Duration {
        // The first turn is at the start of the worker.
        let left = EVERY.saturating_sub(self.since.elapsed());
        if !left.is_zero() {
            return left;
        }
        self.log();
        EVERY
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;
    use tracing::Level;

    use super::*;
    use crate::{outcome_log::Outcome, test_worker::idle_worker};

    #[tokio::test(start_paused = true)]
    async fn what_has_ended_is_summed_up_when_a_minute_is_over() {
        let (_, shared) = idle_worker("summed-up").await;
        let mut summary = Summary::new(shared.clone());
        shared.tally.count(&Outcome::Success(Level::DEBUG));
        assert_eq!(summary.tick().await, EVERY);
        advance(Duration::from_secs(50)).await;
        assert_eq!(summary.tick().await, Duration::from_secs(10));
        shared.tally.count(&Outcome::Stale);
        advance(Duration::from_secs(10)).await;
        assert_eq!(summary.tick().await, EVERY);
        assert!(shared.tally.take().is_empty(), "the summary has reset the count");
    }
}
