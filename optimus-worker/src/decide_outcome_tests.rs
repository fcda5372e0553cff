//! What is reported of an attempt, by how it ended and why it was asked to stop.

use std::{fmt, time::Instant};

use optimus_core::{
    BoxError, Cancel, Context, Data, Fatal, QueueName, Retry, ShutScope, Snooze, TaskId, Token,
    WorkerId,
};

use super::*;
use crate::test_worker::first_facts;

const MINUTE: Duration = Duration::from_secs(60);

fn attempt(failures: u32) -> Attempt {
    let lease = Lease {
        id: TaskId::new(QueueName::new("q").unwrap()),
        worker: WorkerId::from_stored("w"),
        token: Token { seq: 1, fence: 1 },
    };
    let facts = Facts {
        attempt: failures + 1,
        failures,
        max_retry: 2,
        backoff: Backoff::Fixed { wait: MINUTE, jitter: 0.0 },
        result_ttl: MINUTE,
        result_limit: SizeLimit::new(100, "WorkerBuilder::result_limit"),
        ..first_facts()
    };
    let deadline = Instant::now() + MINUTE;
    let first = optimus_core::AttemptFacts::first(lease.id.clone(), deadline);
    let ctx = Context::new(first, Data::new().into());
    Attempt::new(lease, 0, facts, ctx)
}

fn error(problem: impl Into<BoxError>) -> HandlerEnd {
    HandlerEnd::Returned(Err(RunError::Failed(problem.into())))
}

fn decide(attempt: &Attempt, ended: &mut HandlerEnd, random: f64) -> Option<Report> {
    super::decide(attempt, ended, random).map(|decision| decision.report)
}

fn outcome(attempt: &Attempt, mut ended: HandlerEnd) -> FailureOutcome {
    match decide(attempt, &mut ended, 0.5) {
        Some(Report::Fail(failure)) => failure.outcome,
        other => panic!("not a failure: {other:?}"),
    }
}

fn give(attempt: &Attempt, mut ended: HandlerEnd) -> Give {
    match decide(attempt, &mut ended, 0.5) {
        Some(Report::Release(release)) => release.give,
        other => panic!("not given back: {other:?}"),
    }
}

#[test]
fn failures_panics_and_timeouts_are_retried_while_retries_are_left() {
    for make in
        [|| error("boom"), || HandlerEnd::Panicked(Box::new("boom"), None), || HandlerEnd::TimedOut]
    {
        assert_eq!(outcome(&attempt(0), make()), FailureOutcome::Retry(MINUTE));
        assert_eq!(outcome(&attempt(1), make()), FailureOutcome::Retry(MINUTE));
        assert_eq!(outcome(&attempt(2), make()), FailureOutcome::Dead);
    }
}

#[test]
fn a_retry_that_pauses_reports_what_pauses_even_if_no_retry_is_left() {
    for (failures, expected) in [(0, FailureOutcome::Retry(MINUTE)), (2, FailureOutcome::Dead)] {
        for (word, scope) in [
            (Retry::after(MINUTE).pause_lane().because("429"), Some(ShutScope::Lane)),
            (Retry::after(MINUTE).pause_task().because("429"), Some(ShutScope::Task)),
            (Retry::after(MINUTE).pause_limit().because("429"), Some(ShutScope::Limit)),
            (Retry::after(MINUTE).pause_queue().because("429"), Some(ShutScope::Queue)),
            (Retry::after(MINUTE), None),
        ] {
            let mut attempt = attempt(failures);
            attempt.facts.lane = Some(Lane::new("tenant"));
            let Some(Report::Fail(failure)) = decide(&attempt, &mut error(word), 0.5) else {
                panic!("it is a failure");
            };
            assert_eq!(failure.outcome, expected);
            let shut = failure.shut.map(|Shutting { scope, wait, why }| {
                assert!(why.starts_with("retry in 60s") && why.ends_with("pauses: 429"), "{why}");
                (scope, wait)
            });
            assert_eq!(shut, scope.map(|scope| (scope, MINUTE)));
        }
    }
}

#[test]
fn the_error_of_a_retry_says_whether_one_is_left() {
    let left = "asked to be retried in 60s, but no retry is left\n  caused by: 429";
    for (failures, expected) in [(1, "retry in 60s\n  caused by: 429"), (2, left)] {
        let mut ended = error(Retry::after(MINUTE).because("429"));
        let Some(Report::Fail(failure)) = decide(&attempt(failures), &mut ended, 0.5) else {
            panic!("it is a failure");
        };
        let stored: AttemptError = serde_json::from_str(&failure.error).unwrap();
        assert_eq!(stored.message, expected);
    }
}

#[test]
fn a_task_without_a_lane_that_asks_for_a_pause_of_its_lane_waits_alone() {
    let word = Retry::after(MINUTE).pause_lane().because("429");
    let Some(Report::Fail(failure)) = decide(&attempt(0), &mut error(word), 0.5) else {
        panic!("it is a failure");
    };
    assert_eq!((failure.outcome, failure.shut), (FailureOutcome::Retry(MINUTE), None));
}

#[test]
fn a_control_word_decides_the_outcome() {
    let second = Duration::from_secs(1);
    assert_eq!(outcome(&attempt(0), error(Retry::after(second))), FailureOutcome::Retry(second));
    assert_eq!(outcome(&attempt(2), error(Retry::after(second))), FailureOutcome::Dead);
    assert_eq!(outcome(&attempt(0), error(Fatal::new("no"))), FailureOutcome::Dead);
    assert_eq!(outcome(&attempt(0), error(Cancel)), FailureOutcome::Cancelled);
    assert_eq!(give(&attempt(2), error(Snooze::new(second))), Give::Snooze(second));
}

#[test]
fn arguments_that_do_not_fit_mark_the_task_dead_at_once() {
    let problem = serde_json::from_str::<u8>("x").unwrap_err();
    let ended = HandlerEnd::Returned(Err(RunError::Undecodable(problem)));
    assert_eq!(outcome(&attempt(0), ended), FailureOutcome::Dead);
}

#[test]
fn a_handler_that_stops_for_a_shutdown_or_an_outage_spends_no_attempt() {
    for why in [Stop::Shutdown, Stop::Uncertain] {
        for ended in [error("stopped"), HandlerEnd::Abandoned] {
            let attempt = attempt(0);
            attempt.stop(why);
            assert_eq!(give(&attempt, ended), Give::Interrupted);
        }
    }
}

#[test]
fn a_handler_that_stops_because_its_process_was_stopped_is_lost() {
    for ended in [error("stopped"), HandlerEnd::Abandoned] {
        let attempt = attempt(2);
        attempt.stop(Stop::Frozen);
        attempt.stop(Stop::Uncertain);
        assert_eq!(outcome(&attempt, ended), FailureOutcome::Lost);
    }
    let mut once = attempt(0);
    once.facts.on_lost = OnLost::Dead;
    once.stop(Stop::Frozen);
    assert_eq!(outcome(&once, HandlerEnd::Abandoned), FailureOutcome::Dead);
    let ends = attempt(0);
    ends.stop(Stop::Frozen);
    ends.stop(Stop::Shutdown);
    assert_eq!(give(&ends, HandlerEnd::Abandoned), Give::Interrupted);
}

#[test]
fn a_task_that_may_start_only_once_is_dead_if_its_worker_interrupts_it() {
    let mut attempt = attempt(0);
    attempt.facts.on_lost = OnLost::Dead;
    assert_eq!(outcome(&attempt, HandlerEnd::Abandoned), FailureOutcome::Dead);
    attempt.stop(Stop::Shutdown);
    assert_eq!(outcome(&attempt, HandlerEnd::Abandoned), FailureOutcome::Dead);
    // The handler's own error still counts.
    assert_eq!(outcome(&attempt, error("stopped")), FailureOutcome::Retry(MINUTE));
    assert_eq!(give(&attempt, error(Snooze::new(MINUTE))), Give::Snooze(MINUTE));
}

#[test]
fn a_cancelled_handler_that_still_succeeds_has_succeeded() {
    let attempt = attempt(0);
    attempt.stop(Stop::Cancelled);
    let report = decide(&attempt, &mut HandlerEnd::Returned(Ok(Ran::All(None))), 0.5);
    assert!(matches!(report, Some(Report::Complete(_))));
    assert_eq!(outcome(&attempt, error("stopped")), FailureOutcome::Cancelled);
}

#[test]
fn a_task_that_was_asked_to_stop_is_cancelled_however_its_handler_fails() {
    for failures in [0, 2] {
        for ended in [
            error("boom"),
            HandlerEnd::Panicked(Box::new("boom"), None),
            HandlerEnd::TimedOut,
            HandlerEnd::Abandoned,
        ] {
            let attempt = attempt(failures);
            attempt.stop(Stop::Cancelled);
            assert_eq!(outcome(&attempt, ended), FailureOutcome::Cancelled);
        }
        let keeps_its_thread = attempt(failures);
        keeps_its_thread.stop(Stop::Cancelled);
        let Some(Report::Fail(failure)) = time_out(&keeps_its_thread, "", 0.5) else {
            panic!("not a failure")
        };
        assert_eq!(failure.outcome, FailureOutcome::Cancelled);
    }
}

#[test]
fn a_handler_that_returns_after_its_timeout_has_timed_out_whatever_it_returns() {
    for ended in [HandlerEnd::Returned(Ok(Ran::All(None))), error(Fatal::new("late"))] {
        let attempt = attempt(0);
        attempt.stop(Stop::TimedOut);
        assert_eq!(outcome(&attempt, ended), FailureOutcome::Retry(MINUTE));
    }
}

#[test]
fn nothing_is_reported_of_a_lost_attempt_that_failed() {
    let attempt = attempt(0);
    attempt.stop(Stop::Uncertain);
    attempt.stop(Stop::Lost);
    assert!(decide(&attempt, &mut error("late"), 0.5).is_none());
}

#[test]
fn a_message_is_cut_at_8_kib_between_characters_and_stays_on_one_line() {
    let message = format!("a\n{}", "ä".repeat(10_000));
    let entry = super::error(&attempt(0), Reason::Failed, &message);
    assert!(!entry.contains('\n'));
    let read: AttemptError = serde_json::from_str(&entry).unwrap();
    assert!(read.message.len() <= TEXT_BYTES_MAX && read.message.starts_with("a\nä"));
}

#[test]
fn a_handler_that_keeps_its_thread_is_timed_out_without_its_own_back_off() {
    let of = |backoff| {
        let mut attempt = attempt(0);
        attempt.facts.backoff = backoff;
        match time_out(&attempt, "", 0.5) {
            Some(Report::Fail(failure)) => failure.outcome,
            other => panic!("not a failure: {other:?}"),
        }
    };
    assert_eq!(of(Backoff::Fixed { wait: MINUTE, jitter: 0.0 }), FailureOutcome::Retry(MINUTE));
    let sidekiq = Backoff::Sidekiq.wait(1, &fmt::Error, 0.5);
    assert_eq!(of(Backoff::Custom(|_, _| unreachable!())), FailureOutcome::Retry(sidekiq));
}

#[test]
fn a_back_off_function_receives_panics_and_timeouts_as_a_type_that_it_can_name() {
    let by_reason = |_: u32, error: &(dyn Error + 'static)| match error.downcast_ref() {
        Some(Interrupted::Panicked(text)) if text == "boom" => MINUTE,
        Some(Interrupted::TimedOut { .. }) => 2 * MINUTE,
        _ => 3 * MINUTE,
    };
    let mut attempt = attempt(0);
    attempt.facts.backoff = Backoff::Custom(by_reason);
    let panicked = HandlerEnd::Panicked(Box::new("boom"), None);
    assert_eq!(outcome(&attempt, panicked), FailureOutcome::Retry(MINUTE));
    assert_eq!(outcome(&attempt, HandlerEnd::TimedOut), FailureOutcome::Retry(2 * MINUTE));
    assert_eq!(outcome(&attempt, error("boom")), FailureOutcome::Retry(3 * MINUTE));
}

/// An error that is its own source, and whose text never ends.
#[derive(Debug)]
struct Endless;

impl fmt::Display for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        loop {
            f.write_str("on and on, ")?;
        }
    }
}

impl Error for Endless {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self)
    }
}

#[test]
fn an_endless_error_is_cut() {
    assert_eq!(text(&Endless).len(), TEXT_BYTES_MAX);
    assert_eq!(outcome(&attempt(0), error(Endless)), FailureOutcome::Retry(MINUTE));
}

#[test]
fn a_result_above_the_limit_ends_its_task_unless_it_is_not_kept() {
    let returned = |bytes| HandlerEnd::Returned(Ok(Ran::All(Some(vec![b'1'; bytes]))));
    let is_success = |attempt: &Attempt, bytes| {
        matches!(decide(attempt, &mut returned(bytes), 0.5), Some(Report::Complete(_)))
    };
    assert!(is_success(&attempt(0), 100));
    let Some(Report::Fail(failure)) = decide(&attempt(0), &mut returned(101), 0.5) else {
        panic!("a result that is kept is checked");
    };
    assert_eq!(failure.outcome, FailureOutcome::Dead, "a result that is too large is not retried");
    let entry: AttemptError = serde_json::from_str(&failure.error).unwrap();
    assert_eq!(entry.reason, Reason::ResultTooLarge);
    assert!(entry.message.contains("101") && entry.message.contains("result_limit"));
    let mut unkept = attempt(0);
    unkept.facts.result_ttl = Duration::ZERO;
    assert!(is_success(&unkept, 101));
}

#[test]
fn only_an_expired_task_is_reported_as_one_that_never_blocks_its_lane() {
    for (reason, expected) in
        [(Reason::Expired, FailureOutcome::Expired), (Reason::Unknown, FailureOutcome::Dead)]
    {
        let Report::Fail(failure) = mark_dead(attempt(0).lease, (None, 1), reason, "late") else {
            panic!("a dead task has failed");
        };
        assert_eq!(failure.outcome, expected, "{reason:?}");
    }
}
