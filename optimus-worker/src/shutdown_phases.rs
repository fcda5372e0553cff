//! Ends a worker, in named phases: [`end`]. They run on the maintenance thread.
//!
//! *Quiet*: the worker claims and starts no more tasks, and gives back the tasks that have not
//! begun. It asks the rounds of its shards to end, and gives each shard back when its round has
//! ended. *Drain*: running tasks may finish within the grace. *Cancel*: the worker asks the
//! remaining handlers to stop. *Release*: the worker drops the handlers that still run and gives
//! their tasks back, which uses no attempt. It reports the attempts that have ended, and asks its
//! services to end, such as the relay of a database. The heartbeat
//! continues until then, so no lease ends during these phases. If Redis does not answer, all
//! phases, the end of the roles and the leave together take at most 8 s after the grace, for any
//! number of queues.

use std::time::Duration;

use optimus_core::log_event;
use tokio::time::timeout;

use crate::{attempts::Stop, executor, shared::Shared};

const CANCEL_GRACE: Duration = Duration::from_secs(2);
/// How long the claimer has to send its reports. A claimer with a thread receives the answers
/// sooner.
const CLAIMER_GRACE: Duration = Duration::from_millis(500);
/// How long the maintenance thread then has to send the remaining reports itself.
const RELEASE_GRACE: Duration = Duration::from_secs(2);

/// Waits until the worker must end, and runs the phases. The roles still run during the phases.
pub(crate) async fn end(shared: &Shared) {
    let Shared { config, attempts, reporter, slots, shutdown, posts, services, .. } = shared;
    shutdown.quieted().await;
    shared.wakeups.posts_must_end();
    let running = attempts.running();
    log_event!(shared.log, INFO, running, "the worker ends: it claims nothing more");
    executor::give_back_all_waiting(shared);
    let is_idle = || slots.busy() == 0 && posts.count() == 0;
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
    posts.abandon();
    shared.wakeups.posts_must_end();
    // What the last handlers have committed is theirs to carry.
    services.stop();
    let is_over = || is_idle() && reporter.len() == 0;
    until(shared, CLAIMER_GRACE, is_over).await;
    reporter.reclaim();
    until(shared, RELEASE_GRACE, || is_over() && services.open() == 0).await;
    services.abandon();
}

/// Waits until a condition holds, but no longer than `within`.
async fn until(shared: &Shared, within: Duration, condition: impl Fn() -> bool) {
    let ending = &shared.wakeups.ending;
    let met = async {
        while !condition() {
            if ending.fall_asleep(|| !condition()) {
                ending.wakeup.woken().await;
            }
        }
    };
    // After that time, the next phase begins in any case.
    drop(timeout(within, met).await);
}
