//! The answer to a call, in the same form for the store and the reference.

use std::collections::{BTreeMap, BTreeSet};

use optimus_core::{
    Lane, LaneFailure, TaskId, TaskState, Token, WorkerId,
    broker::{Cancelled, Counts, Deleted, Refusal, Reported, StartBy, Totals},
};

/// Why a task of a submit was not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotAdmitted {
    /// This task has its biz id, or its id.
    Owner(TaskId),
    /// It would wait for itself, through these tasks.
    Cycle(Vec<TaskId>),
}

impl NotAdmitted {
    /// The word of the reply.
    pub(crate) fn stored(&self) -> String {
        match self {
            Self::Owner(id) => id.stored(),
            Self::Cycle(path) => {
                let path: Vec<String> = path.iter().map(TaskId::stored).collect();
                format!("*{}", path.join(","))
            }
        }
    }
}

/// The answer to one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// For each task of a submit, why it was not admitted; and whether calls of the client were
    /// lost.
    Receipts(Vec<Option<NotAdmitted>>, bool),
    Granted(Granted),
    Reported(Reported),
    Alive {
        next_expiry_ms: Option<u64>,
    },
    Renewed {
        next_expiry_ms: Option<u64>,
        workers: usize,
        lease_ms: u64,
        held: BTreeMap<TaskId, Token>,
        stop: BTreeSet<TaskId>,
    },
    Reaped {
        tasks: usize,
        more: bool,
        next_expiry_ms: Option<u64>,
        lapsed: Vec<WorkerId>,
        /// The lost tasks, each with the worker that held it, the number of the attempt, and its
        /// state now.
        lost: BTreeMap<TaskId, (WorkerId, u32, TaskState)>,
    },
    /// How many tasks a leaving worker still holds.
    Holds(usize),
    /// The action for each task, in order.
    Cancelled(Vec<Cancelled>),
    Done,
    /// The width of a lane that was set before, and whether a repeat offers more tasks.
    Resized {
        before: Option<u16>,
        more: bool,
    },
    /// The action for each task, in order.
    Deleted(Vec<Deleted>),
    Purged {
        tasks: usize,
        more: bool,
        workers: usize,
        above_count: usize,
        above_bytes: usize,
    },
    /// Whether the queue was removed.
    Retired(bool),
    State(TaskState),
    /// The end of a task, if it has ended, and the ends of other tasks that have succeeded.
    Ended(Option<End>, Vec<Option<End>>),
    Found(Found),
    Seen(Seen),
    Applied {
        last: u64,
        posted: bool,
        left: u64,
    },
    Reasked {
        tasks: usize,
        posted: bool,
        next_ms: Option<u64>,
    },
    Refused(Refusal, String),
    /// The store has no room for more.
    Full,
}

/// How a task has ended, and its result.
pub(crate) type End = (TaskState, Option<Vec<u8>>);

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) token: Token,
    pub(crate) more: bool,
    pub(crate) next_due_ms: Option<u64>,
    pub(crate) grants: Vec<Grant>,
}

/// One claimed task: its id, its tries, and its record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Grant {
    pub(crate) id: TaskId,
    pub(crate) tries: (u32, u32, u32),
    pub(crate) was_tried: bool,
    pub(crate) start_by: StartBy,
    pub(crate) record: Record,
}

/// The part of a record that follows from the submit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Record {
    pub(crate) task: String,
    pub(crate) biz: Option<String>,
    pub(crate) priority: i8,
    pub(crate) accepted_ms: Option<u64>,
    pub(crate) has_blob: bool,
    pub(crate) lane: Option<LaneWords>,
}

/// The key and the width of a lane, and whether a dead task blocks it.
pub(crate) type LaneWords = (String, u16, bool);

pub(crate) fn lane_words(lane: &Lane) -> LaneWords {
    (lane.key.clone(), lane.width.get(), lane.on_failure == LaneFailure::Block)
}

/// The stored data of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) state: TaskState,
    pub(crate) worker: Option<WorkerId>,
    pub(crate) at_ms: Option<u64>,
    pub(crate) record: Option<Record>,
    pub(crate) tries: (u32, u32, u32),
    pub(crate) errors: String,
    pub(crate) summary: String,
    pub(crate) result: Option<Vec<u8>>,
    pub(crate) cancel_ms: Option<u64>,
}

/// A whole queue as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) counts: Counts,
    pub(crate) totals: Totals,
    /// The ids of each state.
    pub(crate) pages: BTreeMap<&'static str, Vec<TaskId>>,
    /// Each worker with the end of its lease and what it holds.
    pub(crate) workers: BTreeMap<WorkerId, (u64, BTreeSet<TaskId>)>,
}
