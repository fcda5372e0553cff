//! Sees to it that the handlers' runtime hears its sockets while one of its threads is idle.
//!
//! Of tokio's idle threads one waits for sockets and timers, and the others wait for tasks. Where
//! the one is woken for a single task, it wakes no other. If that is a handler that then keeps the
//! thread, answers to claims wait until something else wakes an idle thread, which may be the poll.
//! Any task from outside does, so it gets one that does nothing.

use std::{sync::Arc, time::Duration};

use tokio::runtime::{Handle, RuntimeMetrics};

use crate::{role::Role, shared::Shared};

/// A thread that was kept from one look to the next is noticed: within twice that time. Each look
/// costs some 60 µs, as long as tasks run.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const REST: Duration = Duration::from_secs(3600);
/// A thread that does not rest under load may be kept later, so an idle one is woken again after so
/// many looks.
const KNOWN_FOR: u32 = 50;
/// Tasks often follow each other; only after so many looks at nothing it sleeps.
const IDLE_LOOKS: u32 = 5;

/// Looks at the threads of the handlers' runtime, and wakes one.
pub(crate) struct DriverWatch {
    shared: Arc<Shared>,
    runtime: Handle,
    threads: Vec<Thread>,
    idle_looks: u32,
}

/// What was seen of a thread.
#[derive(Clone, Copy, Default)]
struct Thread {
    /// How often it was parked and woken. It is parked where that is odd.
    changes: u64,
    /// For so many looks more it is no news that it does not rest: an idle one was woken for it.
    known_for: u32,
}

impl DriverWatch {
    pub(crate) fn new(shared: Arc<Shared>, runtime: Handle) -> Self {
        let threads = vec![Thread::default(); runtime.metrics().num_workers()];
        Self { shared, runtime, threads, idle_looks: 0 }
    }

    /// Whether a thread was kept since the last look, while another is idle.
    fn should_wake(&mut self) -> bool {
        let metrics = self.runtime.metrics();
        let (mut kept, mut idle) = (false, false);
        for (at, thread) in self.threads.iter_mut().enumerate() {
            let changes = changes(&metrics, at);
            if changes != thread.changes {
                *thread = Thread { changes, known_for: 0 };
            } else if changes.is_multiple_of(2) {
                kept |= thread.known_for == 0;
            }
            thread.known_for = thread.known_for.saturating_sub(1);
            idle |= !changes.is_multiple_of(2);
        }
        if !(kept && idle) {
            return false;
        }
        for thread in self.threads.iter_mut().filter(|thread| thread.changes.is_multiple_of(2)) {
            thread.known_for = KNOWN_FOR;
        }
        true
    }
}

#[cfg(target_has_atomic = "64")]
fn changes(metrics: &RuntimeMetrics, thread: usize) -> u64 {
    metrics.worker_park_unpark_count(thread)
}

/// tokio does not count there, so nothing is seen.
#[cfg(not(target_has_atomic = "64"))]
fn changes(_: &RuntimeMetrics, _: usize) -> u64 {
    0
}

impl Role for DriverWatch {
    async fn tick(&mut self) -> Duration {
        if self.threads.len() < 2 {
            return REST;
        }
        if self.should_wake() {
            self.runtime.spawn(async {});
        }
        let table = &self.shared.attempts;
        self.idle_looks = if table.is_empty() { self.idle_looks + 1 } else { 0 };
        let sleeper = &self.shared.wakeups.driver_watch;
        if self.idle_looks > IDLE_LOOKS && sleeper.fall_asleep(|| table.is_empty()) {
            return REST;
        }
        LOOK_EVERY
    }
}
