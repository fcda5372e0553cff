//! The end of a run: after any steps, a queue with one healthy worker becomes empty.

use std::time::Duration;

use optimus_core::{TaskId, WorkerId, broker::BATCH_MAX};

use crate::{actors::relay, acts::keep, call::Call, run::Run};

const LEASE_MS: u64 = 15_000;

/// A time that is longer than all delays and windows of the steps, with any changes of the clock.
const LATER_MS: u64 = 26 * 60 * 60 * 1000;

/// After this many turns, an operator deletes tasks that wait in their lanes.
const LANE_TURNS_MAX: u64 = 40;

/// A limit above the number of calls that any queue of a run needs.
const CALLS_MAX: u64 = 100;

impl Run<'_> {
    /// Resumes the queues, waits until all leases are over and all tasks are due, and works until
    /// no task is left.
    pub(crate) async fn drain(&mut self, at: usize) -> Result<(), String> {
        self.now += LATER_MS;
        self.fill(false).await;
        for queue in 0..2 {
            self.drain_one(at, queue).await?;
        }
        Ok(())
    }

    /// Leaves a queue unused until all of it is removed.
    pub(crate) async fn abandon(&mut self, at: usize, queue: u8) -> Result<(), String> {
        self.now += LATER_MS;
        self.fill(false).await;
        self.drain_one(at, queue).await?;
        let purge = || Call::Purge { keep: keep(0, Duration::ZERO) };
        for _ in 0..CALLS_MAX {
            self.send_new(at, queue, purge()).await?;
            let reference = &self.sides[usize::from(queue)].reference;
            // A purge keeps the dead tasks that block their lanes.
            let ids: Vec<TaskId> = reference.tasks.keys().take(BATCH_MAX).cloned().collect();
            match relay(reference) {
                Some(call) => self.send_new(at, queue, call).await?,
                None if ids.is_empty() => break,
                None => self.send_new(at, queue, Call::Delete { ids }).await?,
            }
        }
        self.now += LATER_MS;
        self.send_new(at, queue, purge()).await?;
        self.send_new(at, queue, Call::Retire { idle_ms: LATER_MS / 2 }).await?;
        self.sides[usize::from(queue)].assert_retired()
    }

    async fn drain_one(&mut self, at: usize, queue: u8) -> Result<(), String> {
        let worker = WorkerId::from_stored(&format!("last-{at}"));
        self.send_new(at, queue, Call::Pause { paused: false }).await?;
        for lane in self.sides[usize::from(queue)].reference.widths.clone().into_keys() {
            self.send_new(at, queue, Call::Resize { lane, width: None }).await?;
        }
        self.outlive_all(at, queue, &worker).await?;
        self.work_off(at, queue, &worker).await?;
        self.send_new(at, queue, Call::Leave { worker }).await?;
        self.sides[usize::from(queue)].assert_drained()
    }

    /// Renews one worker's lease while all other leases end, and reaps those workers.
    async fn outlive_all(&mut self, at: usize, queue: u8, last: &WorkerId) -> Result<(), String> {
        let (worker, lease_ms) = (last.clone(), LEASE_MS);
        self.send_new(at, queue, Call::Register { worker, lease_ms }).await?;
        // The lease of a worker that holds nothing is at most ten usual leases long.
        for _ in 0..21 {
            self.now += LEASE_MS / 2;
            let worker = last.clone();
            self.send_new(at, queue, Call::Renew { worker, lease_ms }).await?;
        }
        for _ in 0..CALLS_MAX {
            let worker = last.clone();
            self.send_new(at, queue, Call::Reap { worker, lease_ms, limit: 128 }).await?;
            if self.sides[usize::from(queue)].reference.workers.len() == 1 {
                return Ok(());
            }
        }
        Err("the reaper does not finish".into())
    }

    /// Claims and completes until there is nothing to claim.
    async fn work_off(&mut self, at: usize, queue: u8, last: &WorkerId) -> Result<(), String> {
        for seq in 1..CALLS_MAX {
            let worker = last.clone();
            self.send_new(at, queue, Call::Claim { worker, seq, want: 128, alone: false }).await?;
            let side = &self.sides[usize::from(queue)];
            let empty = !side.reference.claimable() && side.reference.ready.is_empty();
            if let Some(call) = relay(&side.reference) {
                self.send_new(at, queue, call).await?;
                continue;
            }
            match side.actors.complete_all(self.now, last, &side.reference) {
                Some(call) => self.send_new(at, queue, call).await?,
                None if empty && !side.reference.has_blocked() => return Ok(()),
                None if empty => self.unblock(at, queue).await?,
                None => {}
            }
            if seq > LANE_TURNS_MAX {
                self.unblock(at, queue).await?;
            }
        }
        Err("the queue does not become empty".into())
    }

    /// Deletes the dead tasks, which may block their lanes, and some of the tasks that wait.
    async fn unblock(&mut self, at: usize, queue: u8) -> Result<(), String> {
        self.send_new(at, queue, Call::Purge { keep: keep(0, Duration::ZERO) }).await?;
        let ids = self.sides[usize::from(queue)].reference.some_blocked(128);
        if ids.is_empty() {
            return Ok(());
        }
        self.send_new(at, queue, Call::Delete { ids }).await
    }
}
