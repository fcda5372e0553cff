//! Causes deliberate harm to processes, to the store and to their connections.

use std::time::Duration;

use optimus_testkit::history::What;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::{Cut, Network};
use crate::world::LEASE;

/// How long two members may hold one post after a failover, and after the clock was set forward:
/// the one whose grant is lost, or whose lease has ended too early, hears of it with its next
/// heartbeat, and goes on for its lease at most if no heartbeat is answered.
const OVERLAP: Duration = LEASE;

impl Network {
    /// Ends a process as kill -9 does: none of its commands reaches the store again.
    pub fn kill(&self, process: u32) {
        let at_us = self.time.now_us();
        let mut state = self.state();
        let life = state.lives.entry(process).or_default();
        if life.death.is_cancelled() {
            return;
        }
        let (death, main) = (life.death.clone(), life.main.take());
        let asked = state.asked.remove(&process);
        state.trace.note(at_us, process, "killed");
        state.tally.deaths += 1;
        drop(state);
        self.journal.write(0, What::Killed { victim: process });
        self.posts.end_all_of(self.journal.now_ns(), process);
        if let Some(since) = asked {
            self.journal.write(0, What::Left { worker: process, since });
        }
        death.cancel();
        main.inspect(AbortHandle::abort);
    }

    /// Rolls the store back by this many script calls, and breaks every connection.
    pub fn roll_back(&self, calls: usize) {
        let at_us = self.time.now_us();
        let mut state = self.state();
        let Some(copies) = &mut state.copies else { return };
        let keep = copies.len().saturating_sub(calls.max(1));
        let mut gone = copies.split_off(keep);
        let Some((since, copy)) = gone.pop_front() else { return };
        state.trace.note(at_us, 0, "rolled back");
        state.tally.rollbacks += 1;
        let reset = std::mem::take(&mut state.reset);
        drop(state);
        self.store.restore(copy);
        self.ticks.lose_since(since);
        self.excuse_overlaps();
        self.journal.write(0, What::Rollback { since });
        self.journal.write(0, What::Outage { since: self.journal.now_ns(), of: None });
        reset.cancel();
    }

    /// Removes all keys, as `FLUSHALL` does.
    pub fn flush(&self) {
        let at_us = self.time.now_us();
        let mut state = self.state();
        state.trace.note(at_us, 0, "flushed");
        if let Some(copies) = &mut state.copies {
            copies.clear();
        }
        drop(state);
        self.store.restore(self.empty.clone());
        self.ticks.lose_since(0);
        self.journal.write(0, What::Rollback { since: 0 });
    }

    /// For a while, two members may hold one post.
    fn excuse_overlaps(&self) {
        let overlap = u64::try_from(OVERLAP.as_nanos()).unwrap_or(u64::MAX);
        self.posts.excuse_until(self.journal.now_ns() + overlap);
    }

    /// Drops every exchange of that process, or of all processes, for this time.
    pub fn cut(&self, of: Option<u32>, lasting: Duration) {
        let at_us = self.time.now_us();
        let mut state = self.state();
        state.trace.note(at_us, of.unwrap_or(0), "cut off");
        let (since, until) = (self.journal.now_ns(), Instant::now() + lasting);
        state.cuts.push(Cut { of, since, until });
    }

    /// Ends lasting faults. Afterwards, no process is cut off, and the store's clock is correct.
    pub fn heal(&self) {
        let until = Instant::now();
        let mut state = self.state();
        state.cuts.iter_mut().for_each(|cut| cut.until = cut.until.min(until));
        let by_ms = -state.clock_ms;
        drop(state);
        self.note_ended_cuts();
        if by_ms != 0 {
            self.set_clock(by_ms);
        }
    }

    /// Records the cuts that are over.
    pub(super) fn note_ended_cuts(&self) {
        let now = Instant::now();
        let mut state = self.state();
        let (over, lasting) = state.cuts.drain(..).partition(|cut: &Cut| cut.until <= now);
        state.cuts = lasting;
        for cut in over {
            self.journal.write(0, What::Outage { since: cut.since, of: cut.of });
        }
    }

    /// Sets the store's clock forward or backward.
    pub fn set_clock(&self, by_ms: i64) {
        let (at_us, now_ns) = (self.time.now_us(), self.journal.now_ns());
        let mut state = self.state();
        state.trace.note(at_us, 0, &format!("clock set by {by_ms} ms"));
        state.tally.clock_steps += 1;
        state.clock_ms += by_ms;
        self.time.set_by_ms(by_ms);
        drop(state);
        if by_ms > 0 {
            self.excuse_overlaps();
        }
        self.journal.write(0, What::ClockSet { since: now_ns, by_ms });
        // This change makes all leases shorter.
        let since = now_ns.saturating_sub(by_ms.max(0).unsigned_abs() * 1_000_000);
        self.journal.write(0, What::Stalled { since });
    }

    /// Makes the store forget its loaded scripts.
    pub fn forget_scripts(&self) {
        self.store.forget_scripts();
    }
}
