//! Notices when the machine itself stalls, because a stall explains a lease that was not renewed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use optimus_testkit::history::{HistoryLog, What, now_ns};

const CHECK_EVERY: Duration = Duration::from_millis(20);
/// The shortest stall. A shorter delay is ordinary scheduling.
const STALL_MIN_NS: u64 = 250_000_000;

/// A thread that sleeps for short times, and records when a sleep took too long.
pub(crate) struct StallWatch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl StallWatch {
    pub(crate) fn start(log: Arc<HistoryLog>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let since = now_ns();
                thread::sleep(CHECK_EVERY);
                if now_ns() - since > STALL_MIN_NS {
                    log.write(What::Stalled { since });
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for StallWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread ends within one sleep, and has no result.
            let _ = thread.join();
        }
    }
}
