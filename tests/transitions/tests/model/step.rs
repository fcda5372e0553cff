//! One step of a random run, as numbers that get their meaning when the step is applied. So a run
//! is still valid after steps were removed.

use optimus_core::broker::{FailureOutcome, Give, Keep};

/// One step. `queue`, `worker`, `client` and `task` are indexes into the values that exist when the
/// step is applied.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Moves the clock, backwards if the number is negative.
    Clock {
        ms: i64,
    },
    /// Moves the clock to about the end of a worker's lease, while another worker renews and then
    /// reaps up to `reap` tasks.
    Outlive {
        queue: u8,
        worker: u8,
        ms: i64,
        reap: u8,
    },
    /// A worker claims all tasks and fails them, this many times.
    FailAll {
        queue: u8,
        worker: u8,
        rounds: u8,
    },
    /// `lost` earlier calls of this client never arrived.
    Submit {
        queue: u8,
        client: u8,
        lost: u8,
        plans: Vec<Plan>,
    },
    Claim {
        queue: u8,
        worker: u8,
        want: u8,
    },
    Relay {
        queue: u8,
    },
    Reask {
        queue: u8,
    },
    /// Repeats the last claim, as after a lost answer.
    ClaimAgain {
        queue: u8,
        worker: u8,
    },
    Complete {
        queue: u8,
        worker: u8,
        picks: Vec<Pick>,
    },
    Fail {
        queue: u8,
        worker: u8,
        picks: Vec<(Pick, FailureOutcome)>,
    },
    Release {
        queue: u8,
        worker: u8,
        picks: Vec<(Pick, Give)>,
    },
    Register {
        queue: u8,
        worker: u8,
        lease_ms: u64,
    },
    Renew {
        queue: u8,
        worker: u8,
        lease_ms: u64,
    },
    Reap {
        queue: u8,
        worker: u8,
        limit: u8,
    },
    Leave {
        queue: u8,
        worker: u8,
    },
    Cancel {
        queue: u8,
        tasks: Vec<u16>,
        aim: Aim,
    },
    Requeue {
        queue: u8,
        task: u16,
        aim: Aim,
    },
    Pause {
        queue: u8,
        paused: bool,
    },
    Resize {
        queue: u8,
        lane: u8,
        width: u16,
    },
    Delete {
        queue: u8,
        tasks: Vec<u16>,
        aim: Aim,
    },
    Purge {
        queue: u8,
        keep: Keep,
    },
    Retire {
        queue: u8,
        idle_ms: u64,
    },
    /// Empties a queue and leaves it unused until it is retired.
    Abandon {
        queue: u8,
    },
    Await {
        queue: u8,
        task: u16,
        client: u8,
    },
    Inspect {
        queue: u8,
        task: u16,
    },
    Read {
        queue: u8,
    },
    /// Fills the store, or frees it again.
    Fill {
        full: bool,
    },
    /// Repeats the last call.
    Again,
    /// Repeats any earlier call.
    Replay {
        sent: u16,
    },
    ReadCompletions {
        queue: u8,
        client: u8,
    },
    AnswerWakeup {
        queue: u8,
        pass_on: bool,
    },
    ReadStop {
        queue: u8,
    },
}

/// One task of a submit.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    /// The delay in ms, or the time by the client's clock.
    pub(crate) due: Option<(i64, bool)>,
    pub(crate) priority: i8,
    pub(crate) biz: Option<u8>,
    pub(crate) lane: Option<u8>,
    /// Which tasks it waits for, its policy, and after how many ms it gives up.
    pub(crate) after: Option<(u16, Option<u16>, u8, Option<u64>)>,
    pub(crate) window: bool,
    pub(crate) expires: bool,
    /// The index of a stored task whose id the task gets, if there is any.
    pub(crate) again: Option<u16>,
    /// Whether the program made the id.
    pub(crate) foreign: bool,
}

/// The special property of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// The task's definition makes the first loss mark the task Dead.
    Fragile,
    /// The task's call sets `on_lost` to Dead.
    AtMostOnce,
    /// The task's payload is stored apart from its record.
    Large,
}

/// The lease that is reported.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pick {
    /// A lease that the worker holds.
    Held(u16),
    /// A lease that the worker ever held.
    Ever(u16),
    /// A lease that the worker holds, with a wrong claim number or fence.
    Forged(u16, bool),
}

/// The kind of tasks for a cancel, a requeue or a delete.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Aim {
    Ended,
    Live,
    Any,
}
