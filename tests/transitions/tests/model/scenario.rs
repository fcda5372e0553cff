//! Steps of several calls, for cases that single calls reach too rarely.

use std::time::Duration;

use optimus_core::broker::FailureOutcome;

use crate::{
    call::Call,
    run::Run,
    side::Side,
    step::{Pick, Step},
};

/// Half a lease: after this time without a renewal the queue still counts as watched.
const WATCHED_MS: u64 = 7_500;

const RETRY_AT_ONCE: FailureOutcome = FailureOutcome::Retry(Duration::ZERO);

impl Run<'_> {
    /// Fills the store to its limit, or frees it again.
    pub(crate) async fn fill(&mut self, full: bool) {
        for side in &mut self.sides {
            side.bench.set_full(full).await;
            side.reference.full = full;
        }
    }

    /// Moves the clock to about the end of a worker's lease. Another worker sends heartbeats
    /// meanwhile, and reaps at the end.
    pub(crate) async fn outlive(
        &mut self,
        at: usize,
        (queue, worker): (u8, u8),
        ms: i64,
        reap: u8,
    ) -> Result<(), String> {
        let Side { actors, reference, .. } = &self.sides[usize::from(queue)];
        let name = actors.busy(worker, reference);
        let Some(lapsing) = reference.workers.get(&name) else { return Ok(()) };
        let Some(other) = reference.workers.keys().find(|other| **other != name).cloned() else {
            return Ok(());
        };
        let end = lapsing.expiry.saturating_add_signed(ms).max(self.now);
        let lease_ms = 2 * WATCHED_MS;
        while self.now < end {
            self.now = end.min(self.now + WATCHED_MS);
            let renew = Call::Renew { worker: other.clone(), lease_ms };
            self.send_new(at, queue, renew).await?;
        }
        if reap > 0 {
            let reap = Call::Reap { worker: other, lease_ms, limit: reap.into() };
            self.send_new(at, queue, reap).await?;
        }
        Ok(())
    }

    /// Repeatedly claims all tasks and fails them, as after a bad deploy.
    pub(crate) async fn fail_all(
        &mut self,
        at: usize,
        (queue, worker): (u8, u8),
        rounds: u8,
    ) -> Result<(), String> {
        let picks: Vec<_> = (0..128).map(|index| (Pick::Held(index), RETRY_AT_ONCE)).collect();
        for _ in 0..rounds {
            for step in [
                Step::Claim { queue, worker, want: 128 },
                Step::Fail { queue, worker, picks: picks.clone() },
            ] {
                let Side { actors, reference, .. } = &mut self.sides[usize::from(queue)];
                if let Some(call) = actors.call(self.now, &step, reference) {
                    self.send_new(at, queue, call).await?;
                }
            }
        }
        Ok(())
    }
}
