//! One step of a random run, as numbers that find their meaning when it is their turn: so that a
//! run from which steps were taken out is still a run.

use optimus_core::broker::{Give, Verdict};

/// One step. `queue`, `worker`, `client` and `task` are indexes into what there is by then.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// The clock moves, back if this is negative.
    Clock {
        ms: i64,
    },
    /// The clock moves to about the end of a worker's lease, while another watches and then reaps
    /// so many.
    Outlive {
        queue: u8,
        worker: u8,
        ms: i64,
        reap: u8,
    },
    /// A worker claims all there is and fails it, so often.
    FailAll {
        queue: u8,
        worker: u8,
        rounds: u8,
    },
    /// Calls of this client that never arrived come before it.
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
    /// The last claim once more, as after a lost answer.
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
        picks: Vec<(Pick, Verdict)>,
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
    Delete {
        queue: u8,
        tasks: Vec<u16>,
        aim: Aim,
    },
    Purge {
        queue: u8,
        keep: usize,
        bytes: u64,
        age_ms: u64,
    },
    Retire {
        queue: u8,
        idle_ms: u64,
    },
    /// A queue runs empty, and nobody uses it until it is retired.
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
    Look {
        queue: u8,
    },
    /// The store is full from now on, or no longer.
    Fill {
        full: bool,
    },
    /// The call before once more.
    Again,
    /// Any earlier call once more.
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
    HearStop {
        queue: u8,
    },
}

/// One task of a submit.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    /// To run so many ms from now, or at that time by the client's reckoning.
    pub(crate) due: Option<(i64, bool)>,
    pub(crate) priority: i8,
    pub(crate) biz: Option<u8>,
    pub(crate) window: bool,
    pub(crate) expires: bool,
    /// Under the id of one that is stored, if there is any.
    pub(crate) again: Option<u16>,
    /// Under an id of a source's own.
    pub(crate) foreign: bool,
}

/// What is special about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// Its definition lets its first loss mark it Dead.
    Fragile,
    /// Its call does.
    AtMostOnce,
    /// Its payload is kept beside its record.
    Large,
}

/// Which hold is reported.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pick {
    /// One that the worker has.
    Held(u16),
    /// One that it ever had.
    Ever(u16),
    /// One that it has, under a wrong claim number or fence.
    Forged(u16, bool),
}

/// At which tasks a cancel, a requeue or a delete aims.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Aim {
    Ended,
    Live,
    Any,
}
