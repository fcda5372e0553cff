//! What a task waits for before it may start: its prerequisites.

use std::{collections::HashSet, fmt, time::Duration};

use crate::{
    Error,
    id::{QueueName, TaskId, validate_name},
    submission::BIZ_ID_BYTES_MAX,
};

/// The largest number of prerequisites of one task.
pub(crate) const PREREQUISITES_MAX: usize = 32;

/// What was not done with a call that would wait for itself, and what helps.
pub(crate) const NOT_SUBMITTED: &str = "submitted; leave out one of these `after`";

/// The mark of each prerequisite, by its place in the record.
const MARKS: &[u8; PREREQUISITES_MAX] = b"0123456789abcdefghijklmnopqrstuv";

/// The mark of the first prerequisite, if its result is taken.
const TAKEN: char = 'z';

/// The longest suffix of an [`Input`].
const SUFFIX_BYTES_MAX: usize = 8;

/// A task that another one waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Prerequisite {
    /// The task with this id.
    Task(TaskId),
    /// The task with this biz id, whether it was submitted already or not.
    Key {
        /// The queue of the task.
        queue: QueueName,
        /// The name of the task.
        task: String,
        /// The biz id of the task.
        biz_id: String,
    },
}

/// What a task does when one of its prerequisites ends as Dead or Cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PrerequisiteFailure {
    /// The task continues to wait until an operator has requeued the prerequisite and it has
    /// succeeded, or until the task gives up. It is cancelled if no requeue can help: after a task
    /// that was deleted or purged, a group that was cancelled, or a result that is no longer kept.
    #[default]
    Wait,
    /// The task is cancelled.
    Cancel,
    /// The end counts as a success, so the task may run.
    Run,
}

/// What a task waits for, and what it does if that does not happen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct After {
    /// The tasks that must succeed first: 1 to 32, each once.
    pub prerequisites: Vec<Prerequisite>,
    /// What the task does when one of them ends without success.
    pub on_failure: PrerequisiteFailure,
    /// The time from the submit after which the task gives up and is Dead.
    pub give_up_after: Option<Duration>,
    /// Set if the result of the first prerequisite is an argument of the task.
    pub input: Option<Input>,
}

/// The hole in the arguments of a task that takes the result of its first prerequisite.
///
/// The arguments that the client submits end where the result belongs. Redis adds the result and
/// the suffix when the prerequisite has succeeded, so a worker finds whole arguments. The result of
/// a prerequisite that returns nothing, or that has ended otherwise, is `null`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Input {
    /// What follows the result: closing brackets of JSON.
    pub suffix: String,
}

impl Prerequisite {
    /// Returns the queue that knows how the task ends.
    pub fn queue(&self) -> &QueueName {
        match self {
            Self::Task(id) => id.queue(),
            Self::Key { queue, .. } => queue,
        }
    }

    /// Returns the text under which Redis stores it: `<queue>/<stored id>`, or
    /// `<queue>/<task>:<biz id>`. A stored id has no colon.
    #[doc(hidden)]
    pub fn reference(&self) -> String {
        match self {
            Self::Task(id) => format!("{}/{}", id.queue(), id.stored()),
            Self::Key { queue, task, biz_id } => format!("{queue}/{task}:{biz_id}"),
        }
    }

    /// Reads the text of [`reference`](Self::reference).
    #[doc(hidden)]
    pub fn from_reference(text: &str) -> Option<Self> {
        let (queue, named) = text.split_once('/')?;
        let queue = QueueName::new(queue).ok()?;
        let Some((task, biz_id)) = named.split_once(':') else {
            return TaskId::from_stored(queue, named).ok().map(Self::Task);
        };
        Some(Self::Key { queue, task: task.to_owned(), biz_id: biz_id.to_owned() })
    }

    /// Returns the reason why it can't be stored.
    fn problem(&self) -> Option<String> {
        let Self::Key { task, biz_id, .. } = self else { return None };
        if let Err(problem) = validate_name(task) {
            return Some(format!("the name of a prerequisite: {problem}"));
        }
        biz_id_problem(biz_id).map(|problem| format!("the prerequisite {self}: {problem}"))
    }
}

/// Returns the reason why a biz id can't be part of a reference.
pub(crate) fn biz_id_problem(biz_id: &str) -> Option<String> {
    if biz_id.is_empty() || biz_id.len() > BIZ_ID_BYTES_MAX {
        return Some(format!("a biz id takes 1 to {BIZ_ID_BYTES_MAX} bytes"));
    }
    let found = biz_id.chars().find(|c| c.is_control())?;
    Some(format!(
        "its biz id has the control character {found:?}, with which no task can wait for it; \
         leave it out"
    ))
}

impl fmt::Display for Prerequisite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(id) => id.fmt(f),
            Self::Key { queue, task, biz_id } => write!(f, "{queue}/{task} with biz id {biz_id:?}"),
        }
    }
}

impl After {
    /// Makes the wait for these tasks, without a limit of time.
    pub fn new(prerequisites: impl IntoIterator<Item = Prerequisite>) -> Self {
        let mut seen = HashSet::new();
        let prerequisites =
            prerequisites.into_iter().filter(|one| seen.insert(one.clone())).collect();
        Self {
            prerequisites,
            on_failure: PrerequisiteFailure::Wait,
            give_up_after: None,
            input: None,
        }
    }

    /// Takes the result of the first prerequisite as an argument. The arguments end with what comes
    /// before it; `suffix` is what follows it.
    #[doc(hidden)]
    #[must_use]
    pub fn taking(self, suffix: &str) -> Self {
        Self { input: Some(Input { suffix: suffix.to_owned() }), ..self }
    }

    /// Returns each prerequisite with the character that stands for it in Redis: its position as a
    /// digit of base 32, or `z` for one whose result is taken.
    #[doc(hidden)]
    pub fn marked(&self) -> impl Iterator<Item = (char, &Prerequisite)> {
        let taken = self.input.as_ref().map(|_| TAKEN);
        let marks = MARKS.iter().enumerate().map(move |(at, mark)| match taken {
            Some(taken) if at == 0 => taken,
            _ => char::from(*mark),
        });
        marks.zip(&self.prerequisites)
    }

    /// Refuses what can't be stored, and a task that waits for itself.
    pub(crate) fn check(&self, id: &TaskId, task: &str, biz_id: Option<&str>) -> Result<(), Error> {
        let refuse = |what: String| Err(Error::invalid(format!("task {task:?}: {what}")));
        if self.prerequisites.len() > PREREQUISITES_MAX {
            return refuse(format!(
                "it has {} prerequisites; a task can wait for {PREREQUISITES_MAX} at most",
                self.prerequisites.len()
            ));
        }
        if let Some(input) = &self.input {
            let is_closing = input.suffix.bytes().all(|byte| matches!(byte, b'}' | b']'));
            if !is_closing || input.suffix.len() > SUFFIX_BYTES_MAX {
                return refuse(format!("only brackets can follow its input: {input:?}"));
            }
            if self.prerequisites.is_empty() {
                return refuse(
                    "it takes the result of a prerequisite, but has no prerequisite".to_owned(),
                );
            }
        }
        for one in &self.prerequisites {
            if let Some(problem) = one.problem() {
                return refuse(problem);
            }
            let is_itself = match one {
                Prerequisite::Task(other) => other == id,
                Prerequisite::Key { queue, task: name, biz_id: key } => {
                    queue == id.queue() && name == task && Some(key.as_str()) == biz_id
                }
            };
            if is_itself {
                let (what, path) = (format!("task {task:?}"), vec![id.clone()]);
                return Err(Error::waits_for_itself(what, path, NOT_SUBMITTED));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(queue: &str, biz_id: &str) -> Prerequisite {
        let queue = QueueName::new(queue).unwrap();
        Prerequisite::Key { queue, task: "reserve".into(), biz_id: biz_id.into() }
    }

    #[test]
    fn a_reference_is_read_back_whatever_the_biz_id_has() {
        let id = Prerequisite::Task(TaskId::new(QueueName::new("a.b").unwrap()));
        for one in [id, key("q", "o-17"), key("q", "a:b/c @ \"ü\""), key("q", "/:")] {
            let text = one.reference();
            assert_eq!(Prerequisite::from_reference(&text), Some(one), "{text}");
        }
        for text in ["", "q", "q/", "q/short", "a b/reserve:1"] {
            assert_eq!(Prerequisite::from_reference(text), None, "{text}");
        }
    }

    #[test]
    fn a_prerequisite_that_is_named_twice_counts_once() {
        let after = After::new([key("q", "1"), key("r", "1"), key("q", "1")]);
        assert_eq!(after.prerequisites, [key("q", "1"), key("r", "1")]);
    }

    #[test]
    fn a_wait_for_itself_for_too_many_or_with_an_unusable_biz_id_is_refused() {
        let id = TaskId::new(QueueName::new("q").unwrap());
        let check = |after: After| after.check(&id, "reserve", Some("1"));
        let many = |count: usize| After::new((0..count).map(|n| key("r", &n.to_string())));
        check(many(32)).unwrap();
        let cases = [
            (many(33), "33 prerequisites"),
            (After::new([key("q", "a\nb")]), "'\\n'"),
            (After::new([key("q", "")]), "1 to 512 bytes"),
        ];
        for (after, problem) in cases {
            let error = check(after).unwrap_err();
            assert!(error.is_invalid() && error.to_string().contains(problem), "{error}");
        }
        for itself in [key("q", "1"), Prerequisite::Task(id.clone())] {
            let error = check(After::new([itself])).unwrap_err();
            assert!(error.is_cycle() && error.to_string().contains("for itself"), "{error}");
        }
        check(After::new([key("r", "1"), key("q", "2")])).unwrap();
    }
}
