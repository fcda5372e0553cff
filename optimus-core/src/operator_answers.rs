//! What an operator's call has done: [`CancelAnswer`], [`FlowCancelled`], [`DeleteAnswer`],
//! [`RunNowAnswer`], [`QueueAnswer`], [`ForgetAnswer`], [`GateAnswer`], [`PauseAnswer`] and
//! [`WidthAnswer`].

use std::fmt;

use crate::{id::TaskId, state::TaskState};

/// What [`Client::cancel`](crate::Client::cancel) has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelAnswer {
    /// The task is Cancelled: it waited, or was cancelled before.
    Cancelled,
    /// The task runs, and its worker was asked to stop it. It is Cancelled unless its handler still
    /// returns `Ok`.
    AskedToStop,
}

/// What [`Client::cancel_lane`](crate::Client::cancel_lane) has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LaneCancelled {
    /// How many tasks are Cancelled. They had not started, or waited for their next attempt.
    pub cancelled: u64,
    /// How many tasks run, and were asked to stop.
    pub asked_to_stop: u64,
}

/// What [`Client::cancel_flow`](crate::Client::cancel_flow) has done with each step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowCancelled {
    /// The steps that are cancelled now, groups as one step each.
    pub cancelled: Vec<TaskId>,
    /// The steps that run, and whose workers were asked to stop them.
    pub asked_to_stop: Vec<TaskId>,
    /// The steps that had ended before, and how. Of one that is Forgotten, nothing is known.
    pub ended: Vec<(TaskId, TaskState)>,
}

/// What [`Client::delete`](crate::Client::delete) has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeleteAnswer {
    /// The task was removed.
    Deleted,
    /// There was no such task. This is the answer to a repeated delete, too.
    NothingThere,
}

/// What [`Client::run_now`](crate::Client::run_now) has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunNowAnswer {
    /// The task is due, and the next claim of its queue moves it on.
    Due,
    /// The task is Ready already, or a worker runs it.
    Started,
}

/// What [`Client::forget_queue`](crate::Client::forget_queue) has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ForgetAnswer {
    /// Nothing of the queue is left, or nothing was there.
    Forgotten,
    /// The queue is used: it has a task, a worker, a group, a schedule, a limit, a pause or a
    /// history (also a stopped one), tasks elsewhere wait for one of it, or a client has submitted
    /// to it lately.
    InUse,
}

/// Whether a queue that was [paused](crate::Client::pause) or [resumed](crate::Client::resume) is
/// known. The call was done in both cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QueueAnswer {
    /// A task was submitted to the queue, or a worker has served it.
    Known,
    /// No task was ever in the queue, and no worker served it: its name may be misspelt.
    Unknown,
}

/// What is known of a limit or a pause that was changed with a
/// [`GateHandle`](crate::GateHandle). The change was done in each case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct GateAnswer {
    /// Whether it applies to a task that is known: a worker of the queue has such a task, or one
    /// waits or was started lately. Of the tasks that wait for no limit, it sees only names, among
    /// the first of each state. If not, a name may be misspelt, or no worker runs now. A lane is
    /// known while it has a task, so `false` is usual for a lane that is empty now.
    pub is_known: bool,
    /// Whether a limit had been set at run time before.
    pub was_set: bool,
    /// Whether it is the gate of a lane.
    pub(crate) of_lane: bool,
}

/// What a pause or a resume of all [shards](crate::ShardsHandle) of a function, or of a
/// [source](crate::SourceHandle), has found. The call was done in each case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PauseAnswer {
    /// Whether this has changed something: a pause, if there was none; a resume, if there was one.
    pub is_changed: bool,
    /// Whether a worker has ever served this name. If not, the name may be misspelt, or no worker
    /// has started yet: the first one finds the pause.
    pub is_known: bool,
}

/// What a change of a lane's [width](crate::LaneHandle::set_width) has found. The change was done
/// in each case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct WidthAnswer {
    /// The width that was set before; `None` if those of the tasks applied.
    pub before: Option<u16>,
    /// Whether the lane has tasks now. If not, the change applies to those that come later.
    pub has_tasks: bool,
}

/// Says what was found, as a part of a sentence: `has tasks`.
impl fmt::Display for WidthAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.has_tasks { "has tasks" } else { "has no task now" })
    }
}

/// Says whether it is known, as a part of a sentence: `is known`.
impl fmt::Display for GateAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self { is_known: true, .. } => "is known",
            Self { of_lane: true, .. } => "has no task now; the change applies to later ones",
            _ => "applies to no task that a worker of the queue knows now; is its name misspelt?",
        })
    }
}

/// Says whether it is known, as a part of a sentence: `is known`.
impl fmt::Display for PauseAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_known {
            "is known"
        } else {
            "was never served by a worker; is its name misspelt?"
        })
    }
}

/// Says what was done, as a part of a sentence: `is cancelled`.
impl fmt::Display for CancelAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cancelled => "is cancelled",
            Self::AskedToStop => "runs; its worker was asked to stop it",
        })
    }
}

/// Says what was done, as a part of a sentence: `is deleted`.
impl fmt::Display for DeleteAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deleted => "is deleted",
            Self::NothingThere => "does not exist",
        })
    }
}

/// Says what was done, as a part of a sentence: `is due now`.
impl fmt::Display for RunNowAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Due => "is due now",
            Self::Started => "is ready or runs already",
        })
    }
}

/// Says what was done, as a part of a sentence: `is forgotten`.
impl fmt::Display for ForgetAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forgotten => "is forgotten",
            Self::InUse => "is still used",
        })
    }
}

/// Says whether the queue is known, as a part of a sentence: `is known`.
impl fmt::Display for QueueAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Known => "is known",
            Self::Unknown => "has had no task and no worker; is its name misspelt?",
        })
    }
}
