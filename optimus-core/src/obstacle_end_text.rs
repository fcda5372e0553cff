//! The texts of obstacles about the end of a task, and what runs it again.

use std::fmt;

use chrono::{DateTime, Utc};

use crate::{
    obstacle_text::time_text,
    state::{AttemptError, Reason, TaskState},
};

/// Prints how a task has ended.
pub(crate) fn ended_text(
    state: TaskState,
    error: Option<&AttemptError>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match (state, error) {
        (TaskState::Success, _) => f.write_str("the task has succeeded"),
        (_, None) => write!(f, "the task has ended: it is {state}"),
        (_, Some(AttemptError { reason, message, .. })) => {
            write!(f, "the task has ended: it is {state} ({reason}): {message}")
        }
    }
}

/// Prints how a task has ended, and what runs it again.
pub(crate) fn ended_again_text(
    state: TaskState,
    error: Option<&AttemptError>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    ended_text(state, error, f)?;
    f.write_str(match (state, error.map(|error| error.reason)) {
        // The next obstacle says what to do.
        (TaskState::Success, _) | (_, Some(Reason::Unmet)) => "",
        // The next attempt reads the same bytes.
        (_, Some(Reason::Undecodable)) => {
            "; a retry fails again unless a worker reads what is stored"
        }
        _ => "; requeue it to run it again",
    })
}

/// Prints what to do before a row is tried again.
pub(crate) fn failed_row_text(source: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "before the requeue, set the failures of its row to 0 in the table of source {source:?}: \
         a row that has failed as often as `attempts` allows is not tried again"
    )
}

/// Prints since when a task is to stop.
pub(crate) fn asked_text(at: DateTime<Utc>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "a cancel was requested at {}, so it has no further attempt", time_text(at))
}
