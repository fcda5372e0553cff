//! What a worker says of the rounds of a shard: that they fail, work again, or spin.

use std::{sync::PoisonError, time::Duration};

use optimus_core::{Progress, ShardFailure, log_event, platform};
use tokio::time::Instant;

use crate::{
    outcome_log::millis,
    post_run::{State, Work},
    spin_watch::SpinWatch,
};

impl Work {
    /// Warns of a function that always asks for another round and does nothing.
    pub(crate) fn watch(&self, spins: &mut SpinWatch, began: Instant, progress: &Progress) {
        let position = progress.own.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = spins.again((began, Instant::now()), position.as_deref());
        drop(position);
        let Some(rounds_per_s) = rate else { return };
        let (name, shard) = (self.function.name(), self.granted.0.index);
        let text = "the rounds of the shard do next to nothing, and follow each other without a \
                    rest, which takes a CPU; return `Round::Idle` when a round finds no work";
        log_event!(self.shared.log, WARN, name, shard, rounds_per_s, "{text}");
    }

    /// Notes that a round has succeeded after this many failures.
    pub(crate) fn works_again(&self, state: &State, failures: u32) {
        if failures > 0 {
            state.set_failure(None);
            let (name, shard) = (self.function.name(), self.granted.0.index);
            let text = "a round of the shard has succeeded after failures";
            log_event!(self.shared.log, INFO, name, shard, failures, "{text}");
        }
    }

    /// Notes that so many rounds have failed, for the log and for the next heartbeat.
    pub(crate) fn failed(&self, state: &State, error: String, failures: u32, wait: Duration) {
        state.set_failure(Some(ShardFailure::new(failures, platform::now_ms(), &error)));
        let (name, shard, wait_ms) = (self.function.name(), self.granted.0.index, millis(wait));
        let text = "a round of the shard failed; the next one begins after a wait";
        log_event!(self.shared.log, WARN, name, shard, failures, wait_ms, error, "{text}");
    }
}
