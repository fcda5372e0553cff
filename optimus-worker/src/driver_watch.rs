//! Makes an idle thread of the handlers' runtime listen to the sockets: [`DriverWatch`].
//!
//! One of tokio's idle threads waits for sockets and timers, and the others wait for tasks. If that
//! thread is woken for a single task, it wakes no other thread. If the task is a handler that then
//! keeps the thread, answers to claims wait until something else wakes an idle thread, which may be
//! the poll. Any task from outside wakes one, so this role spawns a task that does nothing.

use std::{sync::Arc, time::Duration};

use tokio::runtime::{Handle, RuntimeMetrics};

use crate::{role::Role, shared::Shared};

/// A thread that is kept from one check to the next is found, so within twice this time. Each check
/// costs about 60 µs, as long as tasks run.
const CHECK_EVERY: Duration = Duration::from_millis(20);
const REST: Duration = Duration::from_secs(3600);
/// A busy thread under load may be kept later, so an idle one is woken again after this many
/// checks.
const KNOWN_FOR: u32 = 50;
/// Tasks often follow each other, so the role sleeps only after this many checks without one.
const IDLE_CHECKS: u32 = 5;

/// Checks the threads of the handlers' runtime, and wakes an idle one.
pub(crate) struct DriverWatch {
    shared: Arc<Shared>,
    runtime: Handle,
    threads: Vec<Thread>,
    idle_checks: u32,
}

/// What is known of a thread.
#[derive(Clone, Copy, Default)]
struct Thread {
    /// How often it was parked and woken. It is parked while this is odd.
    changes: u64,
    /// For this many more checks the thread is ignored: an idle one was woken because of it.
    known_for: u32,
}

impl DriverWatch {
    pub(crate) fn new(shared: Arc<Shared>, runtime: Handle) -> Self {
        let threads = vec![Thread::default(); runtime.metrics().num_workers()];
        Self { shared, runtime, threads, idle_checks: 0 }
    }

    /// Whether a thread was kept since the last check, while another is idle.
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

/// tokio does not count on these targets, so no kept thread is found.
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
        self.idle_checks = if table.is_empty() { self.idle_checks + 1 } else { 0 };
        let sleeper = &self.shared.wakeups.driver_watch;
        if self.idle_checks > IDLE_CHECKS && sleeper.fall_asleep(|| table.is_empty()) {
            return REST;
        }
        CHECK_EVERY
    }
}
