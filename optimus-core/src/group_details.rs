//! Groups of tasks, as an inspector shows them: [`GroupDetails`], [`LostMember`], [`MemberPlace`].

use std::fmt;

use chrono::{DateTime, Utc};

use crate::{
    broker::Found,
    error_text::{last_words, named},
    group::GroupProgress,
    id::TaskId,
    inspect::read_error,
    record::TaskRecord,
    state::{AttemptError, TaskState},
};

/// A group of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupDetails {
    /// The id of the group.
    pub id: TaskId,
    /// When the id was made, by the submitter's clock; `None` if the id has no time.
    pub created: Option<DateTime<Utc>>,
    /// When the group and its results are removed, by Redis' clock, unless its state changes.
    pub kept_until: DateTime<Utc>,
    /// How far it is: how many members have ended, failed and are waited for.
    pub progress: GroupProgress,
}

/// A member that has failed, and that the group waits for until it is requeued.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostMember {
    /// The group.
    pub group: TaskId,
    /// The position of the member in the group, from 0.
    pub position: u32,
    /// The task to requeue.
    pub id: TaskId,
    /// The name of the task; `None` if its record can't be read.
    pub task: Option<String>,
    /// Dead or Cancelled.
    pub state: TaskState,
    /// The last entry of its error history.
    pub error: Option<AttemptError>,
}

/// The place of a task in its group.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberPlace {
    /// The group.
    pub group: TaskId,
    /// The position in the group, from 0.
    pub position: u32,
    /// The progress of the group; `None` if nothing is known of it any more.
    pub progress: Option<GroupProgress>,
}

impl LostMember {
    /// Returns what was found of a task of a member.
    pub(crate) fn of(group: &TaskId, position: u32, id: TaskId, found: Found) -> Self {
        let record = TaskRecord::decode(found.record).ok();
        Self {
            group: group.clone(),
            position,
            id,
            task: record.map(|record| record.task),
            state: found.state,
            error: found.errors.lines().filter_map(read_error).next_back(),
        }
    }
}

impl fmt::Display for LostMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, position, id, task, state, error } = self;
        write!(
            f,
            "the group {group} waits for member {position} (from 0): the task {id}{} is {state}{}; \
             requeue this task, and the group continues",
            named(task.as_deref()),
            last_words(error.as_ref()),
        )
    }
}

impl fmt::Display for MemberPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it is member {} (from 0) of the group {}", self.position, self.group)?;
        match &self.progress {
            Some(progress) => write!(f, ": {progress}"),
            None => f.write_str(", of which nothing is known any more"),
        }
    }
}
