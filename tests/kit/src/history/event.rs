//! One thing that happened: [`Event`].

/// One thing that happened, when and in which process.
///
/// As a line: `<ns> <pid> <word> <its words…>`, such as `17 4711 begin 1 mail/0a1b 1 4096`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// By the machine's monotonic clock, in ns.
    pub at: u64,
    /// The process that wrote it down.
    pub pid: u32,
    /// What happened.
    pub what: What,
}

/// What happened. Tasks are known by the number that their submitter gave them as an argument,
/// so that it does not depend on the queue which task is which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// `invoke <task> <biz id or -> <delay ms>`: a client is about to submit it.
    Invoke {
        /// Its number.
        task: u64,
        /// Its biz id, if it has one.
        biz: Option<u64>,
        /// Not to run before so much time has passed.
        delay_ms: u64,
    },
    /// `acked <task> <id>`: the submit was acknowledged, and the queue calls it so.
    Acked {
        /// Its number.
        task: u64,
        /// The id that it got.
        id: String,
    },
    /// `duplicate <task> <owner's id>`: its biz id was taken; it does not exist.
    Duplicate {
        /// Its number.
        task: u64,
        /// The id of the task that has the biz id.
        owner: String,
    },
    /// `refused <task>`: the client was told that nothing was done.
    Refused {
        /// Its number.
        task: u64,
    },
    /// `unknown <task>`: the client was told that nobody knows.
    Unknown {
        /// Its number.
        task: u64,
    },
    /// `cancel <task>`: an operator asks to cancel it.
    Cancel {
        /// Its number.
        task: u64,
    },
    /// `cancelled <task>`: an operator was told that it is cancelled.
    Cancelled {
        /// Its number.
        task: u64,
    },
    /// `stopping <task>`: an operator who asked to cancel it was told that its worker is asked to
    /// stop it.
    Stopping {
        /// Its number.
        task: u64,
    },
    /// `requeue <task>`: an operator asks to run it again.
    Requeue {
        /// Its number.
        task: u64,
    },
    /// `requeued <task>`: an operator was told that it will run again.
    Requeued {
        /// Its number.
        task: u64,
    },
    /// `delete <task>`: an operator asks to delete it.
    Delete {
        /// Its number.
        task: u64,
    },
    /// `deleted <task>`: an operator was told that nothing is left of it.
    Deleted {
        /// Its number.
        task: u64,
    },
    /// `undone <task>`: an operator was told that nothing was done of what was asked last.
    Undone {
        /// Its number.
        task: u64,
    },
    /// `pause <queue>`: an operator asks to stop its claims.
    Pause {
        /// Its name.
        queue: String,
    },
    /// `paused <queue>`: an operator was told that nothing of it is claimed.
    Paused {
        /// Its name.
        queue: String,
    },
    /// `resume <queue>`: an operator asks to restart its claims.
    Resume {
        /// Its name.
        queue: String,
    },
    /// `begin <task> <id> <attempt> <fence>`: its handler begins.
    Begin {
        /// Its number.
        task: u64,
        /// What the queue calls it.
        id: String,
        /// Which attempt the handler was told.
        attempt: u32,
        /// The attempt's fence.
        fence: u64,
    },
    /// `end <task> <fence> <how>`: its handler is about to return.
    End {
        /// Its number.
        task: u64,
        /// The attempt's fence.
        fence: u64,
        /// With what.
        how: How,
    },
    /// `found <task> <state> <fence>`: where it was when all was over.
    Found {
        /// Its number.
        task: u64,
        /// The state.
        state: Found,
        /// The fence of the attempt whose result was kept; 0 for none.
        fence: u64,
    },
    /// `killed <pid>`: a process was killed with -9 and is dead.
    Killed {
        /// The process.
        victim: u32,
    },
    /// `left <pid> <since ns>`: a worker was asked to end then, and has ended now.
    Left {
        /// The process.
        worker: u32,
        /// When it was asked.
        since: u64,
    },
    /// `frozen <pid> <since ns>`: a process was stopped from then until now.
    Frozen {
        /// The process.
        victim: u32,
        /// When it was stopped.
        since: u64,
    },
    /// `outage <since ns> <pid or ->`: from then until now Redis was dead or silent, or
    /// connections to it broke: for one process, or for all.
    Outage {
        /// When it began.
        since: u64,
        /// The process; none for all of them.
        of: Option<u32>,
    },
    /// `stalled <since ns>`: the machine let nobody work from then until now.
    Stalled {
        /// When it began.
        since: u64,
    },
    /// `clock <ms>`: the clock of Redis was set forward by so much, or back.
    ClockSet {
        /// By how much; negative for back.
        by_ms: i64,
    },
    /// `lease <pid> <ms>`: a worker keeps its tasks for so long when nothing is heard of it.
    Lease {
        /// The process.
        worker: u32,
        /// Its lease.
        ms: u64,
    },
    /// `rollback <since ns>`: what Redis acknowledged from then until now may be gone.
    Rollback {
        /// When it began.
        since: u64,
    },
}

/// How a handler ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `ok`: well.
    Ok,
    /// `failed`: with an error of its own, or a panic.
    Failed,
    /// `stopped`: it was told to stop, or dropped.
    Stopped,
}

/// Where a task was found at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// `success`.
    Success,
    /// `dead`.
    Dead,
    /// `cancelled`.
    Cancelled,
    /// `forgotten`: it has ended well so long ago that nothing is known of it, or it was deleted,
    /// or it never was.
    Forgotten,
    /// `live`: it has not ended.
    Live,
}

impl What {
    /// The number of the task that it is about; none for what is done to a queue
    /// or a process.
    pub fn task(&self) -> Option<u64> {
        match *self {
            Self::Invoke { task, .. }
            | Self::Acked { task, .. }
            | Self::Duplicate { task, .. }
            | Self::Refused { task }
            | Self::Unknown { task }
            | Self::Cancel { task }
            | Self::Cancelled { task }
            | Self::Stopping { task }
            | Self::Requeue { task }
            | Self::Requeued { task }
            | Self::Delete { task }
            | Self::Deleted { task }
            | Self::Undone { task }
            | Self::Begin { task, .. }
            | Self::End { task, .. }
            | Self::Found { task, .. } => Some(task),
            _ => None,
        }
    }
}
