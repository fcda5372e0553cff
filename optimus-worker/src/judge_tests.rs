//! What is reported of an attempt, by how it ended and why it was asked to stop.

use std::time::Instant;

use optimus_core::{
    BoxError, Cancel, Context, Data, Fatal, QueueName, Retry, Snooze, TaskId, Token, WorkerId,
};

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn attempt(failures: u32) -> Attempt {
    let lease = Lease {
        id: TaskId::new(QueueName::new("q").unwrap()),
        worker: WorkerId::from_stored("w"),
        token: Token { seq: 1, fence: 1 },
    };
    let facts = Facts {
        task: "t",
        attempt: failures + 1,
        failures,
        max_retry: 2,
        backoff: Backoff::Fixed { wait: MINUTE, jitter: 0.0 },
        result_ttl: MINUTE,
        biz_id: None,
    };
    let deadline = Instant::now() + MINUTE;
    let ctx = Context::new(lease.id.clone(), failures + 1, 1, deadline, Data::new().into());
    Attempt::new(lease, 0, facts, ctx)
}

fn error(problem: impl Into<BoxError>) -> Ended {
    Ended::Returned(Err(RunError::Failed(problem.into())))
}

fn verdict(attempt: &Attempt, ended: Ended) -> Verdict {
    match judge(attempt, ended, 0.5) {
        Some(Report::Fail(failure)) => failure.verdict,
        other => panic!("not a failure: {other:?}"),
    }
}

fn give(attempt: &Attempt, ended: Ended) -> Give {
    match judge(attempt, ended, 0.5) {
        Some(Report::Release(release)) => release.give,
        other => panic!("not given back: {other:?}"),
    }
}

#[test]
fn failures_panics_and_timeouts_are_retried_while_retries_are_left() {
    for make in [|| error("boom"), || Ended::Panicked("boom".into()), || Ended::TimedOut] {
        assert_eq!(verdict(&attempt(0), make()), Verdict::Retry(MINUTE));
        assert_eq!(verdict(&attempt(1), make()), Verdict::Retry(MINUTE));
        assert_eq!(verdict(&attempt(2), make()), Verdict::Dead);
    }
}

#[test]
fn control_words_are_obeyed() {
    let second = Duration::from_secs(1);
    assert_eq!(verdict(&attempt(0), error(Retry::after(second))), Verdict::Retry(second));
    assert_eq!(verdict(&attempt(2), error(Retry::after(second))), Verdict::Dead);
    assert_eq!(verdict(&attempt(0), error(Fatal::new("no"))), Verdict::Dead);
    assert_eq!(verdict(&attempt(0), error(Cancel)), Verdict::Cancelled);
    assert_eq!(give(&attempt(2), error(Snooze::lasting(second))), Give::Snooze(second));
}

#[test]
fn arguments_that_do_not_fit_bury_the_task_at_once() {
    let problem = serde_json::from_str::<u8>("x").unwrap_err();
    let ended = Ended::Returned(Err(RunError::Undecodable(problem)));
    assert_eq!(verdict(&attempt(0), ended), Verdict::Dead);
}

#[test]
fn a_handler_that_stops_for_a_shutdown_or_an_outage_spends_no_attempt() {
    for why in [Stop::Shutdown, Stop::Uncertain] {
        for ended in [error("stopped"), Ended::Abandoned] {
            let attempt = attempt(0);
            attempt.stop(why);
            assert_eq!(give(&attempt, ended), Give::Head);
        }
    }
}

#[test]
fn a_cancelled_handler_that_still_succeeds_has_succeeded() {
    let attempt = attempt(0);
    attempt.stop(Stop::Cancelled);
    let report = judge(&attempt, Ended::Returned(Ok(None)), 0.5);
    assert!(matches!(report, Some(Report::Complete(_))));
    assert_eq!(verdict(&attempt, error("stopped")), Verdict::Cancelled);
}

#[test]
fn nothing_is_reported_of_a_lost_attempt_that_failed() {
    let attempt = attempt(0);
    attempt.stop(Stop::Uncertain);
    attempt.stop(Stop::Lost);
    assert!(judge(&attempt, error("late"), 0.5).is_none());
}

#[test]
fn a_message_is_cut_at_8_kib_between_characters_and_stays_on_one_line() {
    let message = format!("a\n{}", "ä".repeat(10_000));
    let entry = super::error(&attempt(0), Reason::Failed, &message);
    assert!(!entry.contains('\n'));
    let read: AttemptError = serde_json::from_str(&entry).unwrap();
    assert!(read.message.len() <= MESSAGE_BYTES_MAX && read.message.starts_with("a\nä"));
}
