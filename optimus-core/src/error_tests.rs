//! The tasks and texts of errors.

use super::*;
use crate::{id::QueueName, state::Reason};

#[test]
fn an_error_has_the_ids_of_its_tasks() {
    let id = || TaskId::new(QueueName::new("q").unwrap());
    let (one, two) = (id(), id());
    let unknown = Error::unknown_outcome(vec![one.clone(), two.clone()], "it broke".into());
    assert_eq!(unknown.task_ids(), [one.clone(), two]);
    for about_one in [
        Error::duplicate(one.clone(), None),
        Error::forgotten(one.clone()),
        Error::result_gone(one.clone()),
        Error::wrong_state(one.clone(), TaskState::Ready, "requeue"),
        Error::cancelled(one.clone(), None),
        Error::dead(one.clone(), None),
        Error::member_failed(one.clone(), 3, TaskState::Dead),
        Error::group_cancelled(one.clone(), None),
        Error::group_ended(one.clone(), TaskState::Success),
        Error::group_forgotten(one.clone()),
        Error::step_duplicate("pay", "o-17", one.clone()),
        Error::waited_too_long(one.clone(), Duration::ZERO, None, None),
    ] {
        assert_eq!(about_one.task_ids(), std::slice::from_ref(&one), "{about_one}");
        assert!(about_one.attempt_error().is_none());
    }
    assert!(Error::full().task_ids().is_empty());
}

#[test]
fn the_error_of_a_dead_task_has_the_error_of_its_last_attempt() {
    let last = AttemptError {
        reason: Reason::TimedOut,
        message: "still running".into(),
        attempt: 3,
        worker: "w".into(),
        at: crate::platform::instant(5),
        fingerprint: None,
    };
    let dead = Error::dead(TaskId::new(QueueName::new("q").unwrap()), Some(last.clone()));
    assert_eq!(dead.attempt_error(), Some(&last));
    assert!(dead.to_string().ends_with("is dead (timed out): still running"), "{dead}");
    assert_eq!(format!("{dead:?}"), dead.to_string());
}

#[test]
fn the_error_of_a_lost_task_names_the_lost_worker() {
    let last = AttemptError::lost("vm-7".into(), 3);
    let dead = Error::dead(TaskId::new(QueueName::new("q").unwrap()), Some(last));
    let text = "(lost): worker vm-7 was not heard from for a whole lease in attempt 3";
    assert!(dead.to_string().ends_with(text), "{dead}");
}

#[test]
fn the_refused_cancel_of_a_dead_task_lists_what_can_be_done() {
    let id = TaskId::new(QueueName::new("q").unwrap());
    let problem = Error::wrong_state(id, TaskState::Dead, "cancel");
    assert!(problem.to_string().contains("requeue it to run it again"), "{problem}");
    for state in TaskState::ALL {
        for verb in ["cancel", "requeue", "delete"] {
            assert!(remedy(state, verb).starts_with("; "), "{state} {verb}");
        }
    }
}

#[test]
fn the_error_of_a_taken_biz_id_shows_when_it_is_free_again() {
    let owner = TaskId::new(QueueName::new("q").unwrap());
    let text = Error::duplicate(owner.clone(), None).to_string();
    assert!(text.contains("cancel or finish that task first"), "{text}");
    let text = Error::duplicate(owner, Some(1_700_000_000_000)).to_string();
    assert!(text.contains("has succeeded") && text.contains("2023-11-14T22:13:20"), "{text}");
}
