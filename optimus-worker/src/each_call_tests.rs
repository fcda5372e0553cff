//! What is reported of the calls of a run, if each has a result of its own.

use std::{sync::Arc, time::Duration};

use optimus_core::{AttemptError, Fatal, Ran, Retry, RunError, Snooze, broker::Give};

use super::*;
use crate::{
    handler_end::HandlerEnd,
    run_outcome::{of_calls, run_tests::run_of},
};

fn failed(problem: impl Into<optimus_core::BoxError>) -> CallOutput {
    Err(RunError::Failed(problem.into()))
}

#[expect(clippy::unnecessary_wraps, reason = "it is a call's output, like that of `failed`")]
fn ok(number: u8) -> CallOutput {
    Ok(Some(vec![number]))
}

fn ends(leader: &Attempt, others: &[Arc<Attempt>], results: Vec<CallOutput>) -> Vec<Report> {
    let mut ended = HandlerEnd::Returned(Ok(Ran::Each(results)));
    let decision = decide_outcome::decide(leader, &mut ended, 0.5);
    let all = of_calls(decision, leader, others).into_iter();
    all.map(|decision| decision.expect("all are reported").report).collect()
}

#[test]
fn each_call_ends_with_its_own_result() {
    let (leader, others) = run_of(0, &[0, 0]);
    let reports = ends(&leader, &others, vec![ok(1), failed("no"), ok(3)]);
    let [Report::Complete(first), Report::Fail(failure), Report::Complete(last)] = &reports[..]
    else {
        panic!("the second fails: {reports:?}");
    };
    for (done, attempt, number) in [(first, &leader, 1), (last, &others[1], 3)] {
        assert_eq!(done.lease, attempt.lease);
        assert_eq!(done.result.as_ref().map(|(bytes, _)| &bytes[..]), Some(&[number][..]));
    }
    assert_eq!(failure.lease, others[0].lease);
    let error: AttemptError = serde_json::from_str(&failure.error).unwrap();
    assert_eq!((&*error.message, error.attempt), ("no", 1));
    assert!(matches!(failure.outcome, FailureOutcome::Retry(_)));
}

#[test]
fn each_call_that_fails_has_its_own_retries_and_its_own_control_word() {
    let (leader, others) = run_of(2, &[2, 0, 0]);
    let results = vec![failed("no"), ok(1), failed(Fatal::new("never")), failed("no")];
    let reports = ends(&leader, &others, results);
    let outcomes: Vec<_> = reports
        .iter()
        .map(|report| match report {
            Report::Fail(failure) => Some(failure.outcome),
            _ => None,
        })
        .collect();
    let [Some(FailureOutcome::Dead), None, Some(FailureOutcome::Dead), Some(last)] = outcomes[..]
    else {
        panic!("the first has no retries left: {outcomes:?}");
    };
    assert!(matches!(last, FailureOutcome::Retry(_)));
    let snooze = failed(Snooze::new(Duration::from_secs(9)));
    let reports = ends(&leader, &others, vec![ok(1), ok(2), ok(3), snooze]);
    let Report::Release(release) = &reports[3] else { panic!("it snoozes: {reports:?}") };
    assert_eq!(release.give, Give::Snooze(Duration::from_secs(9)));
}

#[test]
fn a_call_whose_last_retry_was_spent_does_not_say_that_it_is_retried() {
    let (leader, others) = run_of(2, &[0]);
    let retry = || failed(Retry::after(Duration::from_secs(9)));
    let reports = ends(&leader, &others, vec![retry(), retry()]);
    let messages = reports.iter().map(|report| match report {
        Report::Fail(failure) => {
            serde_json::from_str::<AttemptError>(&failure.error).unwrap().message
        }
        other => panic!("it fails: {other:?}"),
    });
    let expected = ["asked to be retried in 9s, but no retry is left", "retry in 9s"];
    assert_eq!(messages.collect::<Vec<_>>(), expected);
}

#[test]
fn of_several_pauses_of_one_gate_the_longest_is_enough() {
    let (leader, others) = run_of(0, &[0, 0, 0]);
    let after = |seconds| Retry::after(Duration::from_secs(seconds));
    let results = vec![
        failed(after(1).pause_task()),
        failed(after(9).pause_task()),
        failed(after(9).pause_task()),
        failed(after(5).pause_queue()),
    ];
    let reports = ends(&leader, &others, results);
    let waits = reports.iter().map(|report| match report {
        Report::Fail(failure) => failure.shut.as_ref().map(|pause| pause.wait.as_secs()),
        _ => None,
    });
    assert_eq!(waits.collect::<Vec<_>>(), [None, Some(9), None, Some(5)]);
}

#[test]
fn a_run_with_another_number_of_results_fails() {
    let (leader, others) = run_of(0, &[0]);
    for report in ends(&leader, &others, vec![ok(1), ok(2), ok(3)]) {
        let Report::Fail(failure) = report else { panic!("it fails: {report:?}") };
        assert!(failure.error.contains("3 results for 2 calls"), "{}", failure.error);
        assert!(matches!(failure.outcome, FailureOutcome::Retry(_)));
    }
}

#[test]
fn a_run_that_took_too_long_fails_as_a_whole() {
    let (leader, others) = run_of(0, &[0]);
    leader.stop(Stop::TimedOut);
    for report in ends(&leader, &others, vec![ok(1), ok(2)]) {
        let Report::Fail(failure) = report else { panic!("it fails: {report:?}") };
        assert!(failure.error.contains("timed_out"), "{}", failure.error);
    }
}

#[test]
fn calls_that_fail_because_the_worker_ends_go_back() {
    let (leader, others) = run_of(0, &[0]);
    leader.stop(Stop::Shutdown);
    let reports = ends(&leader, &others, vec![ok(1), failed("asked to stop")]);
    assert!(matches!(reports[0], Report::Complete(_)));
    let Report::Release(release) = &reports[1] else { panic!("it goes back: {reports:?}") };
    assert_eq!(release.give, Give::Interrupted);
}

#[test]
fn calls_that_fail_because_their_process_was_stopped_are_lost() {
    let (leader, others) = run_of(0, &[0]);
    leader.stop(Stop::Frozen);
    let reports = ends(&leader, &others, vec![ok(1), failed("asked to stop")]);
    assert!(matches!(reports[0], Report::Complete(_)));
    let Report::Fail(failure) = &reports[1] else { panic!("it is lost: {reports:?}") };
    assert_eq!(failure.outcome, FailureOutcome::Lost);
}

#[test]
fn the_results_of_a_run_may_be_large_together() {
    let (leader, others) = run_of(0, &[0]);
    let large = || Ok(Some(vec![b'1'; 40 * 1024 * 1024]));
    let reports = ends(&leader, &others, vec![large(), large()]);
    assert!(reports.iter().all(|report| matches!(report, Report::Complete(_))));
}
