//! Handlers that are overdue because they block, and those that were stopped with their process.

use std::sync::{Mutex, mpsc};

use futures_util::FutureExt;
use optimus_core::{AttemptFacts, Context, Data, Lease, TaskId, Token};
use optimus_testkit::{EachEvent, LogEvent};

use super::*;
use crate::{
    on_thread::UntilSettled,
    test_worker::{first_facts, idle_worker},
};

const TIMEOUT: Duration = Duration::from_secs(5);

/// The role, with an attempt whose handler has begun and does not return.
async fn begun(name: &str) -> (Deadlines, Arc<Attempt>) {
    begun_for(name, TIMEOUT).await
}

/// The same, with this timeout.
async fn begun_for(name: &str, timeout: Duration) -> (Deadlines, Arc<Attempt>) {
    let (_, shared) = idle_worker(name).await;
    let queue = &shared.queues[0];
    let (id, token) = (TaskId::new(queue.name.clone()), Token { seq: 1, fence: 1 });
    let deadline = (Instant::now() + timeout).into_std();
    let ctx = Context::new(AttemptFacts::first(id.clone(), deadline), Data::new().into());
    let lease = Lease { id, worker: queue.worker(), token };
    let attempt = Arc::new(Attempt::new(lease, 0, first_facts(), ctx));
    assert!(attempt.begin());
    shared.attempts.insert(std::iter::once(&attempt));
    (Deadlines::new(shared), attempt)
}

/// Runs the role for so long, each turn in time.
async fn run_for(role: &mut Deadlines, time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        let rest = role.tick().await;
        tokio::time::advance(rest).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_blocks_its_runtime_is_ended_shortly_after_its_deadline() {
    let (mut role, attempt) = begun("deadline-blocked").await;
    run_for(&mut role, TIMEOUT + TIMEOUT_GRACE).await;
    assert!(!attempt.is_settled());
    run_for(&mut role, CHECK_EVERY * 2).await;
    assert!(attempt.is_settled());
}

#[tokio::test(start_paused = true)]
async fn only_a_handler_that_is_on_a_thread_goes_on_after_its_timeout() {
    for on_thread in [false, true] {
        let (mut role, attempt) = begun("deadline-without-a-thread").await;
        if on_thread {
            attempt.takes_thread();
        }
        run_for(&mut role, TIMEOUT + TIMEOUT_GRACE + CHECK_EVERY * 2).await;
        assert!(attempt.is_settled());
        assert_eq!(role.shared.attempts.late.all().len(), usize::from(on_thread));
        let polled = UntilSettled::new(&attempt, std::future::ready(()));
        assert!(polled.now_or_never().is_none(), "it is not polled after its end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_blocks_since_a_stop_of_the_process_has_its_whole_timeout_again() {
    let (mut role, attempt) = begun("deadline-frozen").await;
    run_for(&mut role, TIMEOUT / 2).await;
    // No code of the process runs meanwhile.
    tokio::time::advance(TIMEOUT * 4).await;
    run_for(&mut role, TIMEOUT + TIMEOUT_GRACE).await;
    assert_eq!(attempt.stopped().unwrap().0, Stop::Frozen, "it is asked to stop");
    assert!(!attempt.is_settled(), "its time passed while it had no CPU");
    run_for(&mut role, CHECK_EVERY * 2).await;
    assert!(attempt.is_settled());
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_blocks_since_a_stop_of_the_process_times_out_a_whole_timeout_later() {
    let (mut role, attempt) = begun("deadline-frozen-thread").await;
    let (release, released) = mpsc::channel::<()>();
    let ctx = attempt.ctx.clone();
    let work = async move { ctx.run_blocking(move || released.recv().is_ok()).await };
    let work = tokio::spawn(work);
    while !attempt.ctx.is_blocking() {
        tokio::task::yield_now().await;
    }
    run_for(&mut role, TIMEOUT / 2).await;
    // No code of the process runs meanwhile.
    tokio::time::advance(TIMEOUT * 4).await;
    run_for(&mut role, TIMEOUT + TIMEOUT_GRACE).await;
    assert_eq!(attempt.stopped().unwrap().0, Stop::Frozen);
    run_for(&mut role, CHECK_EVERY * 2).await;
    assert_eq!(attempt.stopped().unwrap().0, Stop::TimedOut);
    assert!(!attempt.is_settled(), "its thread keeps the task");
    drop(release);
    work.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_time_passes_soon_after_a_stop_of_the_process_may_end_by_itself() {
    let (mut role, attempt) = begun("deadline-thawed").await;
    role.tick().await;
    // No code of the process runs meanwhile.
    tokio::time::advance(TIMEOUT.saturating_sub(CHECK_EVERY)).await;
    run_for(&mut role, THAWED_GRACE).await;
    assert!(!attempt.is_settled(), "its own runtime has had no time to end it");
    run_for(&mut role, CHECK_EVERY * 2).await;
    assert!(attempt.is_settled());
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_blocks_ends_even_if_each_check_is_late() {
    let (mut role, attempt) = begun("deadline-overloaded").await;
    let end = Instant::now() + TIMEOUT + TIMEOUT_GRACE;
    while Instant::now() < end {
        let rest = role.tick().await;
        tokio::time::advance(rest + FROZEN_FOR * 2).await;
    }
    role.tick().await;
    assert!(attempt.is_settled());
}

fn is_asked_to_be_dropped(attempt: &Attempt) -> bool {
    attempt.abandon.notified().now_or_never().is_some()
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_goes_on_while_its_lease_may_be_over_is_dropped() {
    let (mut role, attempt) = begun_for("doubt-dropped", Duration::from_secs(3_600)).await;
    let certain = role.shared.config.lease.mul_f64(0.9);
    run_for(&mut role, certain + STOP_GRACE).await;
    assert_eq!(attempt.stopped().unwrap().0, Stop::Uncertain);
    assert!(!is_asked_to_be_dropped(&attempt));
    run_for(&mut role, CHECK_EVERY * 2).await;
    assert!(is_asked_to_be_dropped(&attempt));
}

#[tokio::test(start_paused = true)]
async fn a_handler_goes_on_if_redis_answers_soon_after_its_lease_may_have_been_over() {
    let (mut role, attempt) = begun_for("doubt-over", Duration::from_secs(3_600)).await;
    let (shared, certain) = (role.shared.clone(), role.shared.config.lease.mul_f64(0.9));
    let queue = &shared.queues[0];
    for _ in 0..3 {
        run_for(&mut role, certain + STOP_GRACE.saturating_sub(CHECK_EVERY * 5)).await;
        assert_eq!(attempt.stopped().unwrap().0, Stop::Uncertain);
        queue.renewed(Instant::now(), shared.config.lease, queue.grants());
        run_for(&mut role, CHECK_EVERY * 2).await;
        assert!(!is_asked_to_be_dropped(&attempt));
    }
}

/// Returns the first warning about leases after these steps of the role.
async fn doubt(name: &str, steps: impl AsyncFnOnce(&mut Deadlines)) -> LogEvent {
    let (events, seen) = mpsc::channel::<LogEvent>();
    let events = Mutex::new(events);
    let each = EachEvent::new(move |event| drop(events.lock().unwrap().send(event)));
    let _heard = tracing::subscriber::set_default(each.at(tracing::Level::WARN));
    let (mut role, _attempt) = begun(name).await;
    steps(&mut role).await;
    loop {
        let event = seen.recv_timeout(Duration::from_secs(20)).expect("a warning about leases");
        if event.message().contains("leases may be over") {
            return event;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn when_leases_may_be_over_because_redis_is_silent_the_log_says_so() {
    let event = doubt("doubt-silent", async |role| {
        let lease = role.shared.config.lease;
        run_for(role, lease).await;
    });
    let event = event.await;
    assert!(event.message().starts_with("Redis has not answered for so long"), "{event:?}");
}

#[tokio::test(start_paused = true)]
async fn when_leases_may_be_over_because_the_process_was_stopped_the_log_blames_no_redis() {
    let event = doubt("doubt-stopped", async |role| {
        run_for(role, TIMEOUT / 2).await;
        // No code of the process runs meanwhile.
        let lease = role.shared.config.lease;
        tokio::time::advance(lease).await;
        role.tick().await;
    });
    let event = event.await;
    assert!(event.message().starts_with("this process did not run for so long"), "{event:?}");
    assert!(event.get("stopped_ms").parse::<u64>().unwrap() >= 1_000, "{event:?}");
}
