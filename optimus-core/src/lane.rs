//! The lane of a task: the tasks of one key, in order, or a limited number at once.

use std::num::NonZeroU16;

use crate::{Error, options::TaskOptions};

/// The longest key of a lane: it is part of a Redis key.
const KEY_BYTES_MAX: usize = 512;

/// The lane of a task. A lane belongs to a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// Tasks of a queue with the same key are in one lane.
    pub key: String,
    /// How many tasks of the lane may run at once. With 1 they run in order.
    pub width: NonZeroU16,
    /// What happens to the lane when the task ends as Dead.
    pub on_failure: LaneFailure,
}

/// What happens to a lane when one of its tasks ends as Dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LaneFailure {
    /// The next task of the lane starts.
    #[default]
    Skip,
    /// The dead task keeps its place, and the tasks behind it wait until an operator requeues or
    /// deletes it.
    Block,
}

impl Lane {
    /// Makes a lane of width 1 that continues after a failure.
    pub fn new(key: impl Into<String>) -> Self {
        Self { key: key.into(), width: NonZeroU16::MIN, on_failure: LaneFailure::Skip }
    }

    /// The lane of a call with these options, which were validated.
    pub(crate) fn of(key: String, options: &TaskOptions) -> Self {
        let width = NonZeroU16::new(options.lane_width).unwrap_or(NonZeroU16::MIN);
        Self { key, width, on_failure: options.on_lane_failure }
    }

    /// Refuses a key that can't be stored.
    pub(crate) fn check(&self, task: &str) -> Result<(), Error> {
        let Some(problem) = problem_of(&self.key) else { return Ok(()) };
        Err(Error::invalid(format!("task {task:?}: {problem}")))
    }
}

/// Returns the reason why a text can't be the key of a lane.
pub(crate) fn problem_of(key: &str) -> Option<String> {
    if key.is_empty() {
        return Some(
            "the key of its lane is empty; use a value that differs where tasks may run at the \
             same time, or submit it without a lane"
                .into(),
        );
    }
    if key.len() > KEY_BYTES_MAX {
        return Some(format!(
            "the key of its lane has {} bytes; use at most \
             {KEY_BYTES_MAX}, such as an id or a hash",
            key.len()
        ));
    }
    let found = key.chars().find(|c| c.is_control())?;
    Some(format!("the key of its lane has the control character {found:?}; leave it out"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_1_to_512_bytes_and_no_control_characters() {
        for key in ["a", "user-7", "Zürich: {a} b", &"x".repeat(512)] {
            Lane::new(key).check("charge").unwrap();
        }
        for (key, problem) in
            [("", "is empty"), (&*"x".repeat(513), "has 513 bytes"), ("a\nb", "'\\n'")]
        {
            let error = Lane::new(key).check("charge").unwrap_err();
            assert!(error.is_invalid(), "{error}");
            let text = error.to_string();
            assert!(text.contains("\"charge\"") && text.contains(problem), "{text}");
        }
    }
}
