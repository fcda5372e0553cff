//! One thing that happened: [`Event`].

/// One thing that happened, when and in which process.
///
/// As a line: `<ns> <pid> <word> <its words…>`, for example `17 4711 begin 1 mail/0a1b 1 4096`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The time by the machine's monotonic clock, in ns.
    pub at: u64,
    /// The process that recorded it.
    pub pid: u32,
    /// What happened.
    pub what: What,
}

/// What happened. An event names a task by the number that its submitter passed as an argument. So
/// the identity of a task does not depend on the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// `invoke <task> <biz id or -> <delay ms>`: a client is about to submit it.
    Invoke {
        /// Its number.
        task: u64,
        /// Its biz id, if it has one.
        biz: Option<u64>,
        /// The delay before it may run.
        delay_ms: u64,
    },
    /// `acked <task> <id>`: the submit was acknowledged with this id.
    Acked {
        /// Its number.
        task: u64,
        /// The id that it has.
        id: String,
    },
    /// `duplicate <task> <owner's id>`: its biz id was taken; it does not exist.
    Duplicate {
        /// Its number.
        task: u64,
        /// The id of the task that has the biz id.
        owner: String,
    },
    /// `refused <task>`: the client received the answer that nothing was done.
    Refused {
        /// Its number.
        task: u64,
    },
    /// `unknown <task>`: the client does not know the outcome.
    Unknown {
        /// Its number.
        task: u64,
    },
    /// `cancel <task>`: an operator requests its cancel.
    Cancel {
        /// Its number.
        task: u64,
    },
    /// `cancelled <task>`: an operator received the answer that it is cancelled.
    Cancelled {
        /// Its number.
        task: u64,
    },
    /// `stopping <task>`: an operator who requested a cancel received the answer that its worker is
    /// asked to stop it.
    Stopping {
        /// Its number.
        task: u64,
    },
    /// `requeue <task>`: an operator requests its requeue.
    Requeue {
        /// Its number.
        task: u64,
    },
    /// `requeued <task>`: an operator received the answer that it will run again.
    Requeued {
        /// Its number.
        task: u64,
    },
    /// `delete <task>`: an operator requests its deletion.
    Delete {
        /// Its number.
        task: u64,
    },
    /// `deleted <task>`: an operator received the answer that it is deleted.
    Deleted {
        /// Its number.
        task: u64,
    },
    /// `undone <task>`: an operator received the answer that the last request changed nothing.
    Undone {
        /// Its number.
        task: u64,
    },
    /// `pause <queue>`: an operator requests a pause of the queue.
    Pause {
        /// Its name.
        queue: String,
    },
    /// `paused <queue>`: an operator received the answer that nothing is claimed from it.
    Paused {
        /// Its name.
        queue: String,
    },
    /// `resume <queue>`: an operator requests that its claims go on.
    Resume {
        /// Its name.
        queue: String,
    },
    /// `begin <task> <id> <attempt> <fence>`: its handler begins.
    Begin {
        /// Its number.
        task: u64,
        /// Its id in the queue.
        id: String,
        /// The number of the attempt, as the handler received it.
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
        /// How it ended.
        how: How,
    },
    /// `found <task> <state> <fence>`: its state at the end of the run.
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
    /// `left <pid> <since ns>`: a worker was asked to end at `since`, and has ended now.
    Left {
        /// The process.
        worker: u32,
        /// When it was asked.
        since: u64,
    },
    /// `frozen <pid> <since ns>`: a process was stopped from `since` until now.
    Frozen {
        /// The process.
        victim: u32,
        /// When it was stopped.
        since: u64,
    },
    /// `outage <since ns> <pid or ->`: from `since` until now Redis was dead or silent, or
    /// connections to it broke: for one process, or for all.
    Outage {
        /// When it began.
        since: u64,
        /// The process; none for all of them.
        of: Option<u32>,
    },
    /// `stalled <since ns>`: the machine ran no process from `since` until now.
    Stalled {
        /// When it began.
        since: u64,
    },
    /// `clock <since ns> <ms>`: between `since` and now the clock of Redis was set forward by this
    /// much, or back.
    ClockSet {
        /// When it was asked to be set.
        since: u64,
        /// The difference; negative for back.
        by_ms: i64,
    },
    /// `lease <pid> <ms>`: a worker keeps its tasks for this long after its last heartbeat.
    Lease {
        /// The process.
        worker: u32,
        /// Its lease.
        ms: u64,
    },
    /// `rollback <since ns>`: what Redis acknowledged from `since` until now may be gone.
    Rollback {
        /// When it began.
        since: u64,
    },
}

/// How a handler ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `ok`: with success.
    Ok,
    /// `failed`: with an error of its own, or a panic.
    Failed,
    /// `stopped`: it was asked to stop, or dropped.
    Stopped,
}

/// The state of a task at the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// `success`.
    Success,
    /// `dead`.
    Dead,
    /// `cancelled`.
    Cancelled,
    /// `forgotten`: it succeeded so long ago that nothing is kept of it, or it was deleted, or it
    /// never existed.
    Forgotten,
    /// `live`: it has not ended.
    Live,
}

impl What {
    /// The number of the task that the event is about; none for an event of a queue or a process.
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
