//! The texts of obstacles about the end of a task, and what runs it again.

use std::fmt;

use chrono::{DateTime, Utc};

use crate::{
    obstacle_text::time_text,
    state::{AttemptError, Reason, TaskState},
};

/// Prints how a task has ended, and what runs it again.
pub(crate) fn ended_text(
    state: TaskState,
    error: Option<&AttemptError>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    if state == TaskState::Success {
        return f.write_str("the task has succeeded");
    }
    write!(f, "the task has ended: it is {state}")?;
    if let Some(error) = error {
        write!(f, " ({}): {}", error.reason, error.message)?;
        match error.reason {
            // The next line says what to do.
            Reason::Unmet => return Ok(()),
            // The next attempt reads the same bytes.
            Reason::Undecodable => {
                return f.write_str("; a retry fails again unless a worker reads what is stored");
            }
            _ => {}
        }
    }
    f.write_str("; requeue it to run it again")
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
