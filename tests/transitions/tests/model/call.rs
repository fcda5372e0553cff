//! One call of the broker as data. A run sends the call to the store, applies it to the reference,
//! and may repeat it later unchanged.

use std::{num::NonZeroU16, time::Duration};

use chrono::DateTime;
use optimus_core::{
    After, Due, Lane, OnLost, Submission, Submit, Task, TaskId, WorkerId,
    broker::{Completion, Failure, Keep, Release},
};

use crate::jobs::{Fragile, job, job_of};

/// A call on one queue.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Submit(SubmitCall),
    Claim {
        worker: WorkerId,
        seq: u64,
        want: usize,
        alone: bool,
    },
    Complete {
        worker: WorkerId,
        done: Vec<Completion>,
    },
    Fail {
        worker: WorkerId,
        failed: Vec<Failure>,
    },
    Release {
        worker: WorkerId,
        given: Vec<Release>,
    },
    Register {
        worker: WorkerId,
        lease_ms: u64,
    },
    Renew {
        worker: WorkerId,
        lease_ms: u64,
    },
    Reap {
        worker: WorkerId,
        lease_ms: u64,
        limit: usize,
    },
    Leave {
        worker: WorkerId,
    },
    Cancel {
        ids: Vec<TaskId>,
    },
    Requeue {
        id: TaskId,
    },
    Pause {
        paused: bool,
    },
    /// Sets the width of a lane, or removes what was set.
    Resize {
        lane: String,
        width: Option<NonZeroU16>,
    },
    Delete {
        ids: Vec<TaskId>,
    },
    Purge {
        keep: Keep,
    },
    Retire {
        idle_ms: u64,
    },
    Await(Wait),
    State {
        id: TaskId,
        stored_by: Option<(String, u64)>,
    },
    Inspect {
        id: TaskId,
    },
    Read,
    /// A relay applies these effects of the queue on itself, and removes them.
    Apply {
        effects: Vec<String>,
    },
    Reask,
}

/// How long a ledger may be idle before a purge removes it, and so the longest time after which a
/// submit may be sent again.
pub(crate) const LEDGER_IDLE_MS: u64 = 24 * 60 * 60 * 1000;

/// The bytes of a payload that is stored apart from its record, and of the quotes around it.
const LARGE_BYTES: usize = 17_000;
const QUOTES: usize = 2;

/// The bytes of the time of submit before the record of a task that can expire.
const STAMP_BYTES: usize = 8;

/// A client's wait for the end of a task.
#[derive(Debug, Clone)]
pub(crate) struct Wait {
    pub(crate) id: TaskId,
    pub(crate) client: String,
    pub(crate) stored_by: Option<(String, u64)>,
    /// Other tasks of the same client, with their calls.
    pub(crate) along: Vec<(TaskId, u64)>,
}

/// One submit of a client.
#[derive(Debug, Clone)]
pub(crate) struct SubmitCall {
    pub(crate) client: String,
    /// How far the client's clock is ahead of Redis', in ms.
    pub(crate) ahead_ms: i64,
    pub(crate) number: u64,
    /// The last answered call of the same slot.
    pub(crate) since: u64,
    pub(crate) keep: bool,
    pub(crate) tasks: Vec<Wanted>,
}

/// A task as its client submits it.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) id: TaskId,
    /// Whether the first loss marks the task Dead.
    pub(crate) fragile: bool,
    pub(crate) due: DueMs,
    pub(crate) priority: i8,
    pub(crate) biz: Option<String>,
    pub(crate) window_ms: Option<u64>,
    pub(crate) lane: Option<Lane>,
    pub(crate) after: Option<After>,
    pub(crate) on_lost: OnLost,
    pub(crate) expires_in_ms: Option<u64>,
    /// Whether the payload is stored apart from the record.
    pub(crate) large: bool,
    /// Whether the id was given, so that the task may already be stored.
    pub(crate) given: bool,
}

/// When a task should run, in ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DueMs {
    Now,
    In(u64),
    At(u64),
}

impl Wanted {
    /// Returns the name of the task's definition.
    pub(crate) fn task(&self) -> &'static str {
        if self.fragile { Fragile::NAME } else { "job" }
    }

    /// Returns the bytes that the task takes in the store, including its stamp and its payload.
    pub(crate) fn bytes(&self) -> u64 {
        let stamp = if self.is_stamped() { STAMP_BYTES } else { 0 };
        let payload = if self.large && !self.fragile { LARGE_BYTES + QUOTES } else { 0 };
        (self.submission().stored().len() + stamp + payload) as u64
    }

    /// Returns whether the record states when the task was accepted: an expiry counts from then,
    /// and an id without a time does not say so.
    pub(crate) fn is_stamped(&self) -> bool {
        self.expires_in_ms.is_some() || self.id.made_ms() == 0
    }

    /// Returns the task in the form that a client encodes.
    pub(crate) fn submission(&self) -> Submission {
        let large = || format!("\"{}\"", "x".repeat(LARGE_BYTES));
        match (self.fragile, self.large) {
            (true, _) => self.encode(optimus_core::Call::new(Fragile)),
            (false, true) => self.encode(job_of(large())),
            (false, false) => self.encode(job()),
        }
    }

    fn encode<T: Task>(&self, call: optimus_core::Call<T>) -> Submission {
        let due = match self.due {
            DueMs::Now => Due::Now,
            DueMs::In(ms) => Due::In(Duration::from_millis(ms)),
            DueMs::At(ms) => {
                let ms = i64::try_from(ms).expect("the time is short");
                Due::At(DateTime::from_timestamp_millis(ms).expect("a time of this era"))
            }
        };
        let mut call = call.queue(self.id.queue().as_str()).due(due).on_lost(self.on_lost);
        if self.priority != 0 {
            call = call.priority(self.priority);
        }
        if let Some(biz) = &self.biz {
            call = call.biz_id(biz.as_str());
        }
        if let Some(ms) = self.window_ms {
            call = call.biz_window(Duration::from_millis(ms));
        }
        if let Some(ms) = self.expires_in_ms {
            call = call.expires_in(Duration::from_millis(ms));
        }
        if self.given {
            call = call.id(self.id.clone());
        }
        let submission = call.into_submission().expect("the options of the model are valid");
        let submission = submission.with_id(self.id.clone());
        let submission = match &self.after {
            Some(after) => submission.waiting_for(after.clone()),
            None => submission,
        };
        match &self.lane {
            Some(lane) => submission.in_lane(lane.clone()),
            None => submission,
        }
    }
}
