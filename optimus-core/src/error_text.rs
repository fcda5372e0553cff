//! The parts of an error's text that depend on what happened, with what to do.

use chrono::DateTime;

use crate::{
    group_details::LostMember,
    id::TaskId,
    limit::Shut,
    obstacle::Obstacle,
    obstacle_text::time_text,
    state::{AttemptError, TaskState},
};

/// Returns the tasks of a cycle, in their order.
pub(crate) fn waits_for(path: &[TaskId]) -> String {
    if path.is_empty() {
        return "its own key".to_owned();
    }
    let path: Vec<String> = path.iter().map(ToString::to_string).collect();
    format!("{}, which waits for it", path.join(", which waits for "))
}

/// Returns why a task may have no result yet.
pub(crate) fn stands(id: &TaskId, state: Option<TaskState>, why: Option<&Obstacle>) -> String {
    let Some(state) = state else {
        return "the task stays in its queue, or continues to run".to_owned();
    };
    match state {
        TaskState::Ready => {
            format!("it is still ready: does a worker serve the queue {}?", id.queue())
        }
        TaskState::Delayed => "it is delayed, and waits until it is due".to_owned(),
        TaskState::Blocked => why.map_or_else(
            || "it is blocked; Inspector::explain returns what it waits for".to_owned(),
            |why| format!("it is blocked: {why}"),
        ),
        TaskState::Working => "a worker is running it".to_owned(),
        TaskState::Retry => "an attempt has failed, and it waits for the next one; \
                             Inspector::get returns the error"
            .to_owned(),
        ended if ended.is_terminal() => format!("it is {ended} now, so ask for its result again"),
        other => format!("it is {other}"),
    }
}

/// Returns what to do if no permit was free.
pub(crate) fn no_permit_advice(shut: Option<&Shut>) -> String {
    match shut {
        Some(shut) => format!("it is {shut}"),
        None => "try again later, or raise the limit".to_owned(),
    }
}

/// Returns the last error of a task, in parentheses and after a colon.
pub(crate) fn last_words(last: Option<&AttemptError>) -> String {
    last.map_or_else(String::new, |last| format!(" ({}): {}", last.reason, last.message))
}

/// Returns that a group was cancelled, and because of which member.
pub(crate) fn group_cancelled(group: &TaskId, by: Option<&LostMember>) -> String {
    let because = by.map_or_else(String::new, |by| {
        let LostMember { group: inner, position, id, state, .. } = by;
        let (task, words) = (named(by.task.as_deref()), last_words(by.error.as_ref()));
        let within = if inner == group { String::new() } else { format!(" of the group {inner}") };
        format!(
            ", because the task {id}{task} of member {position} (from 0){within} is {state}{words}"
        )
    });
    format!(
        "the group {group} was cancelled{because}; a group can't be requeued: submit its calls \
         again, under another id if it has an own one"
    )
}

/// Returns the advice for the operator, after a semicolon.
pub(crate) fn remedy(state: TaskState, verb: &str) -> &'static str {
    match (state, verb) {
        (TaskState::Dead, "cancel") => {
            "; it has ended, and is kept for a while: requeue it to run it again, delete it, or \
             leave it"
        }
        (TaskState::Working, "delete") => "; cancel it, and delete it once it has ended",
        (TaskState::Success, "delete") => {
            "; only its result is kept, and is removed after result_ttl"
        }
        (TaskState::Success, "requeue") => "; submit a new task to run it again",
        (TaskState::Blocked, "run_now") => "; explain says what it waits for",
        (TaskState::Dead | TaskState::Cancelled, "run_now") => "; requeue it to run it again",
        (_, "requeue") => "; it will run or is running, so leave it",
        (state, _) if state.is_terminal() => "; it has ended, so leave it",
        _ => "; look at its state again, which may have changed",
    }
}

/// Returns when a biz id becomes free.
pub(crate) fn release(window_end_ms: Option<u64>) -> String {
    let Some(ms) = window_end_ms else { return "cancel or finish that task first".to_owned() };
    let end = i64::try_from(ms).ok().and_then(DateTime::from_timestamp_millis);
    let end = end.map_or_else(|| format!("{ms} ms"), time_text);
    format!(
        "that task has succeeded, and the biz_window of its submit keeps the biz id until {end}; \
         try again after that"
    )
}

/// Returns the name of a task in parentheses, after its id.
pub(crate) fn named(task: Option<&str>) -> String {
    task.map_or_else(String::new, |task| format!(" ({task})"))
}
