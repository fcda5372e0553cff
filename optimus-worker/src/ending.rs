//! Ends a worker, in named phases: [`end`]. They run on the maintenance thread.
//!
//! *Quiet*: nothing new is claimed or started; what has not begun is given back. *Drain*: what runs
//! may finish, for the grace. *Cancel*: the rest is asked to stop. *Release*: what still runs is
//! dropped and given back, and costs no attempt; what has ended is reported. The heartbeat goes on
//! until then, so no lease ends meanwhile. If Redis does not answer, all phases, the end of the
//! roles and the leave take at most 8 s after the grace, however many queues there are.

use std::time::Duration;

use optimus_core::log_event;
use tokio::time::timeout;

use crate::{attempts::Stop, executor, shared::Shared};

/// In effect without a limit, and short enough to add to an instant.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
const CANCEL_GRACE: Duration = Duration::from_secs(2);
/// A claimer with a thread has its reports answered sooner.
const CLAIMER_GRACE: Duration = Duration::from_millis(500);
/// After that, the maintenance thread sends the reports itself.
const RELEASE_GRACE: Duration = Duration::from_secs(2);

/// Waits until the worker is to end, and runs the phases. The roles still run.
pub(crate) async fn end(shared: &Shared) {
    let Shared { config, attempts, reporter, slots, shutdown, .. } = shared;
    shutdown.quieted().await;
    let running = attempts.running();
    log_event!(shared.log, INFO, running, "the worker ends: it claims nothing more");
    executor::give_back_all_waiting(shared);
    let is_idle = || slots.busy() == 0;
    tokio::select! {
        biased;
        () = until(shared, config.shutdown_grace, is_idle) => {}
        () = shutdown.hurried() => {}
    }
    attempts.stop_all(Stop::Shutdown);
    tokio::select! {
        biased;
        () = until(shared, CANCEL_GRACE, is_idle) => {}
        () = shutdown.hurried() => {}
    }
    for attempt in attempts.snapshot() {
        attempt.abandon.notify_one();
    }
    let is_over = || is_idle() && reporter.len() == 0;
    until(shared, CLAIMER_GRACE, is_over).await;
    reporter.reclaim();
    until(shared, RELEASE_GRACE, is_over).await;
}

/// Waits for a condition, but no longer than `within`.
async fn until(shared: &Shared, within: Duration, condition: impl Fn() -> bool) {
    let ending = &shared.wakeups.ending;
    let met = async {
        while !condition() {
            if ending.fall_asleep(|| !condition()) {
                ending.wakeup.woken().await;
            }
        }
    };
    // After that time the next phase begins in any case.
    drop(timeout(within.min(FOREVER), met).await);
}
