//! What the end of a run means for each of its calls, and which calls it has.

use std::time::{Duration, Instant};

use optimus_core::{
    AttemptFacts, BoxError, Context, Data, Fatal, Lease, QueueName, Ran, Retry, RunError, TaskId,
    Token, WorkerId, broker::SizeLimit,
};

use super::*;
use crate::{
    decide_outcome::{Facts, decide},
    handler_end::HandlerEnd,
    run_part::Part,
    test_worker::first_facts,
};

const MINUTE: Duration = Duration::from_secs(60);

fn attempt(failures: u32, part: Part) -> Arc<Attempt> {
    let lease = Lease {
        id: TaskId::new(QueueName::new("q").unwrap()),
        worker: WorkerId::from_stored("w"),
        token: Token { seq: 1, fence: 1 },
    };
    let limit = SizeLimit::new(1024 * 1024 * 1024, "WorkerBuilder::result_limit");
    let facts = Facts {
        attempt: failures + 1,
        failures,
        max_retry: 2,
        result_ttl: MINUTE,
        result_limit: limit,
        ..first_facts()
    };
    let first = AttemptFacts::first(lease.id.clone(), Instant::now() + MINUTE);
    let ctx = Context::new(first, Data::new().into());
    let mut attempt = Attempt::new(lease, 0, facts, ctx);
    attempt.part = part;
    Arc::new(attempt)
}

/// A run whose calls have failed so often.
pub(crate) fn run_of(leader: u32, others: &[u32]) -> (Arc<Attempt>, Vec<Arc<Attempt>>) {
    let leader = attempt(leader, Part::leads(10));
    let others: Vec<Arc<Attempt>> =
        others.iter().map(|failures| attempt(*failures, Part::after(&leader))).collect();
    leader.add_followers(others.clone()).expect("the run has not ended");
    leader.complete_run();
    (leader, others)
}

fn ends(leader: &Attempt, mut ended: HandlerEnd) -> Vec<Option<Report>> {
    let decision = decide(leader, &mut ended, 0.5);
    let report = |call: CallOf<'_>| Some(of_call(decision.as_ref(), &call)?.report);
    calls(leader).map(report).collect()
}

fn failed(problem: impl Into<BoxError>) -> HandlerEnd {
    HandlerEnd::Returned(Err(RunError::Failed(problem.into())))
}

#[test]
fn each_call_of_a_run_that_failed_has_its_own_retries_and_the_same_wait() {
    let (leader, _) = run_of(2, &[0, 1, 2]);
    let mut found = Vec::new();
    for report in ends(&leader, failed("boom")) {
        let Some(Report::Fail(failure)) = report else { panic!("it failed: {report:?}") };
        let entry: AttemptError = serde_json::from_str(&failure.error).unwrap();
        found.push((failure.outcome, entry.attempt, entry.message));
    }
    let retry = FailureOutcome::Retry(Duration::ZERO);
    let expected = [(FailureOutcome::Dead, 3), (retry, 1), (retry, 2), (FailureOutcome::Dead, 3)];
    assert_eq!(found, expected.map(|(outcome, attempt)| (outcome, attempt, "boom".to_owned())));
}

#[test]
fn a_call_of_a_run_whose_last_retry_was_spent_does_not_say_that_it_is_retried() {
    let (leader, _) = run_of(2, &[0]);
    let messages = ends(&leader, failed(Retry::after(MINUTE))).into_iter().map(|report| {
        let Some(Report::Fail(failure)) = report else { panic!("it failed: {report:?}") };
        serde_json::from_str::<AttemptError>(&failure.error).unwrap().message
    });
    let expected = ["asked to be retried in 60s, but no retry is left", "retry in 60s"];
    assert_eq!(messages.collect::<Vec<_>>(), expected);
}

#[test]
fn a_run_that_must_not_be_retried_ends_all_its_calls() {
    let (leader, _) = run_of(0, &[0, 2]);
    for report in ends(&leader, failed(Fatal::new("no"))) {
        let Some(Report::Fail(failure)) = report else { panic!("it failed: {report:?}") };
        assert_eq!(failure.outcome, FailureOutcome::Dead);
    }
}

#[test]
fn each_call_has_the_result_of_the_run_unless_all_of_them_are_too_large() {
    let (leader, others) = run_of(0, &[0, 0]);
    let results = ends(&leader, HandlerEnd::Returned(Ok(Ran::All(Some(b"42".to_vec())))));
    let ids = [leader.lease.id.clone(), others[0].lease.id.clone(), others[1].lease.id.clone()];
    for (report, id) in results.into_iter().zip(ids) {
        let Some(Report::Complete(done)) = report else { panic!("it succeeded: {report:?}") };
        assert_eq!((done.lease.id, done.result), (id, Some((b"42".to_vec(), MINUTE))));
    }
    let large = vec![b'1'; 30 * 1024 * 1024];
    for report in ends(&leader, HandlerEnd::Returned(Ok(Ran::All(Some(large.clone()))))) {
        let Some(Report::Fail(failure)) = report else { panic!("it is too large") };
        assert!(failure.error.contains("each of its 3 calls"), "{}", failure.error);
    }
    let (alone, _) = run_of(0, &[]);
    let kept = ends(&alone, HandlerEnd::Returned(Ok(Ran::All(Some(large)))));
    assert!(matches!(kept[..], [Some(Report::Complete(_))]), "one call may keep it");
}

#[test]
fn a_run_has_the_retries_of_the_call_that_has_the_fewest() {
    let (leader, others) = run_of(1, &[1, 2, 0]);
    assert_eq!(retries_left(&leader), 0);
    leader.remove_follower(&others[1]);
    assert_eq!(retries_left(&leader), 1);
}

#[test]
fn the_handler_is_asked_to_stop_once_all_calls_are_cancelled() {
    let (leader, others) = run_of(0, &[0, 0]);
    leader.cancel();
    others[1].cancel();
    assert!(leader.stopped().is_none());
    others[0].cancel();
    assert_eq!(leader.stopped().map(|(why, _)| why), Some(Stop::Cancelled));
    for report in ends(&leader, failed("asked to stop")) {
        let Some(Report::Fail(failure)) = report else { panic!("it is cancelled: {report:?}") };
        assert_eq!(failure.outcome, FailureOutcome::Cancelled);
    }
}

#[test]
fn each_call_of_a_run_whose_process_was_stopped_is_lost() {
    let (leader, _others) = run_of(0, &[0]);
    leader.stop(Stop::Frozen);
    for report in ends(&leader, failed("asked to stop")) {
        let Some(Report::Fail(failure)) = report else { panic!("it is lost: {report:?}") };
        assert_eq!(failure.outcome, FailureOutcome::Lost);
    }
}

#[test]
fn a_leader_that_is_cancelled_while_its_calls_arrive_waits_for_them() {
    let leader = attempt(0, Part::leads(10));
    leader.cancel();
    assert!(leader.stopped().is_none());
    leader.add_followers(vec![attempt(0, Part::after(&leader))]).unwrap();
    leader.complete_run();
    assert!(leader.stopped().is_none(), "the other call was not cancelled");
    let alone = attempt(0, Part::leads(10));
    alone.cancel();
    alone.complete_run();
    assert!(alone.stopped().is_some());
}

#[test]
fn a_call_that_comes_after_the_end_of_its_run_is_not_added() {
    let leader = attempt(0, Part::leads(10));
    assert!(leader.settle());
    let late = leader.add_followers(vec![attempt(0, Part::after(&leader))]).unwrap_err();
    assert_eq!((late.len(), leader.followers().len()), (1, 0));
}

#[test]
fn the_calls_of_a_leader_whose_lease_is_lost_are_given_back_if_they_are_still_held() {
    let (leader, others) = run_of(0, &[0, 0]);
    leader.stop(Stop::Lost);
    others[0].stop(Stop::Lost);
    let [None, None, Some(Report::Release(release))] = &ends(&leader, failed("asked to stop"))[..]
    else {
        panic!("one call is still held");
    };
    assert_eq!((&release.lease, release.give), (&others[1].lease, Give::Interrupted));
}
