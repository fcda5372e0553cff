//! When the loops of a worker ran last: [`Beats`]. Probes and metrics read it from their thread.

use std::{
    future::poll_fn,
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::config::Config;

/// How often a loop that has nothing to do shows that it could run.
const EVERY: Duration = Duration::from_secs(2);

/// When the loops of a worker ran last, and its turns.
#[derive(Debug, Default)]
pub(crate) struct Beats {
    /// The claim loop, which runs on the runtime of the handlers.
    pub(crate) claimer: Beat,
    /// The loop of the maintenance thread.
    pub(crate) maintenance: Beat,
    pub(crate) turns: Turns,
}

/// When a loop ran last.
#[derive(Debug)]
pub(crate) struct Beat {
    made: Instant,
    /// In ms after `made`.
    at_ms: AtomicU64,
}

/// The turns of the claimer.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    answered: AtomicU64,
    failed: AtomicU64,
}

impl Default for Beat {
    fn default() -> Self {
        Self { made: Instant::now(), at_ms: AtomicU64::new(0) }
    }
}

impl Beat {
    /// Runs a loop, and notes each time when its runtime runs it. If nobody asks for metrics,
    /// nothing is noted.
    pub(crate) async fn watch<F: Future>(&self, config: &Config, running: F) -> F::Output {
        if config.metrics.is_none() {
            return running.await;
        }
        let (mut running, mut timer) = (pin!(running), interval(EVERY));
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        poll_fn(|cx| {
            self.beat();
            while timer.poll_tick(cx).is_ready() {}
            running.as_mut().poll(cx)
        })
        .await
    }

    fn beat(&self) {
        let ms = u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.at_ms.store(ms, Ordering::Relaxed);
    }

    /// Returns the time since the last beat, or since the start.
    pub(crate) fn age(&self) -> Duration {
        let at = Duration::from_millis(self.at_ms.load(Ordering::Relaxed));
        self.made.elapsed().saturating_sub(at)
    }
}

impl Turns {
    /// Notes that a turn has ended with all its answers.
    pub(crate) fn ended(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a turn has ended without some of its answers.
    pub(crate) fn ended_in_part(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}
