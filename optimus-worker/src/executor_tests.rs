//! Handlers whose time has passed.

use optimus_core::{AttemptFacts, Context, Data, Token};

use super::*;
use crate::test_worker::{first_facts, idle_worker};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Lets the time of an attempt pass, while the process is stopped for so long until the last `rest`
/// of it. Returns whether the handler was interrupted, and why it was asked to stop.
async fn passed(store: &str, stopped: Duration, rest: Duration) -> (bool, Option<Stop>) {
    let (_, shared) = idle_worker(store).await;
    let queue = &shared.queues[0];
    let (id, token) = (TaskId::new(queue.name.clone()), Token { seq: 1, fence: 1 });
    let deadline = (Instant::now() + TIMEOUT).into_std();
    let ctx = Context::new(AttemptFacts::first(id.clone(), deadline), Data::new().into());
    let lease = Lease { id, worker: queue.worker(), token };
    let attempt = Attempt::new(lease, 0, first_facts(), ctx);
    let slot = shared.slots.take(0).expect("a slot is idle");
    // The role for deadlines checks until the process is stopped.
    shared.stops.check_next(Instant::now(), Instant::now() + TIMEOUT - stopped - rest);
    tokio::time::advance(TIMEOUT.saturating_sub(rest)).await;
    let thawed = Instant::now();
    if !rest.is_zero() {
        shared.stops.check(thawed);
        shared.stops.check_next(thawed, thawed + TIMEOUT);
        tokio::time::advance(rest).await;
    }
    let ended = must_end(&shared, &attempt, &slot).await;
    (matches!(ended, HandlerEnd::Abandoned), attempt.stopped().map(|(why, _)| why))
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_time_passes_has_timed_out() {
    assert_eq!(
        passed("time-over", Duration::ZERO, Duration::ZERO).await,
        (false, Some(Stop::TimedOut))
    );
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_time_passed_while_the_process_was_stopped_is_interrupted() {
    let half_a_lease = idle_worker("time-lease").await.1.config.lease / 2;
    let ended = passed("time-stopped", half_a_lease, Duration::ZERO).await;
    assert_eq!(ended, (true, Some(Stop::Frozen)));
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_time_passes_soon_after_a_stop_of_the_process_is_interrupted() {
    let half_a_lease = idle_worker("time-thawed-lease").await.1.config.lease / 2;
    let soon = passed("time-thawed", half_a_lease, Duration::from_millis(100)).await;
    assert_eq!(soon, (true, Some(Stop::Frozen)), "it had no time to end");
    let later = passed("time-thawed-long-ago", half_a_lease, Duration::from_millis(1_100)).await;
    assert_eq!(later, (false, Some(Stop::TimedOut)));
}
