//! Ensures that a thread of the handlers' runtime listens to the sockets: [`DriverWatch`].
//!
//! One of tokio's idle threads waits for sockets and timers, and the others wait for tasks. If the
//! waiting thread is woken for a single task, it wakes no other thread. If this task is a handler
//! that blocks the thread, the runtime reads no answers to claims until another event wakes an idle
//! thread, possibly only the next poll. A task that is spawned from outside the runtime wakes an
//! idle thread, so this role spawns a task that does nothing.

use std::{sync::Arc, time::Duration};

use tokio::runtime::{Handle, RuntimeMetrics};

use crate::{role::Role, shared::Shared};

/// The interval of the checks. A check finds a thread that was already blocked at the previous
/// check, so it finds each blocked thread within two intervals. While tasks run, each check costs
/// about 60 µs.
const CHECK_EVERY: Duration = Duration::from_millis(20);
const REST: Duration = Duration::from_secs(3600);
/// A loaded thread may become blocked later, so an idle thread is woken again after this many
/// checks.
const KNOWN_FOR: u32 = 50;
/// Tasks often follow each other, so the role sleeps only after this many checks that found no
/// attempt.
const IDLE_CHECKS: u32 = 5;

/// The role that checks the threads of the handlers' runtime, and wakes an idle thread.
pub(crate) struct DriverWatch {
    shared: Arc<Shared>,
    runtime: Handle,
    threads: Vec<Thread>,
    idle_checks: u32,
}

/// What the role knows of a thread.
#[derive(Clone, Copy, Default)]
struct Thread {
    /// How often the thread was parked and unparked. The thread is parked while this number is odd.
    changes: u64,
    /// The thread is ignored for this many more checks, because an idle thread was woken for it.
    known_for: u32,
}

impl DriverWatch {
    pub(crate) fn new(shared: Arc<Shared>, runtime: Handle) -> Self {
        let threads = vec![Thread::default(); runtime.metrics().num_workers()];
        Self { shared, runtime, threads, idle_checks: 0 }
    }

    /// Returns whether a thread was blocked since the last check while another one is idle.
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

/// Returns zero, because tokio does not count parks on these targets. So no blocked thread is found
/// there.
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
