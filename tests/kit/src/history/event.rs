//! One event of a history: [`Event`].

/// An event, with its time and its process.
///
/// Its form as a line is `<ns> <pid> <word> <its words…>`, for example `17 4711 begin 1 mail/0a1b 1
/// 4096`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The time by the machine's monotonic clock, in ns.
    pub at: u64,
    /// The process that recorded the event.
    pub pid: u32,
    /// What happened.
    pub what: What,
}

/// What happened. An event names a task by the number that its submitter passed as an argument. So
/// the identity of a task does not depend on the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// `invoke <task> <biz id or -> <delay ms>`: a client is about to submit the task.
    Invoke {
        /// The number of the task.
        task: u64,
        /// The biz id, if the task has one.
        biz: Option<u64>,
        /// The delay before the task may run.
        delay_ms: u64,
    },
    /// `acked <task> <id>`: the submit was acknowledged with this id.
    Acked {
        /// The number of the task.
        task: u64,
        /// The id of the task.
        id: String,
    },
    /// `duplicate <task> <owner's id>`: the biz id was taken, so the task does not exist.
    Duplicate {
        /// The number of the task.
        task: u64,
        /// The id of the task that has the biz id.
        owner: String,
    },
    /// `refused <task>`: the client received the answer that nothing was done.
    Refused {
        /// The number of the task.
        task: u64,
    },
    /// `unknown <task>`: the client does not know the outcome.
    Unknown {
        /// The number of the task.
        task: u64,
    },
    /// `cancel <task>`: an operator requests a cancel of the task.
    Cancel {
        /// The number of the task.
        task: u64,
    },
    /// `waits <task>`: the task waits for others, whose ends may cancel it, and it may give up.
    Waits {
        /// The number of the task.
        task: u64,
    },
    /// `lane <task> <width> <on failure> <lane>`: the task is of this lane.
    Lane {
        /// The number of the task.
        task: u64,
        /// How many tasks of the lane may have a permit at the same time.
        width: u16,
        /// What the lane does if the task dies.
        if_dead: IfDead,
        /// The name of the lane, which has no spaces.
        lane: String,
    },
    /// `limit <task> <cost> <limit>`: the task starts only when this limit allows it.
    Limited {
        /// The number of the task.
        task: u64,
        /// How much of the rate it uses.
        cost: u64,
        /// The name of the limit, which has no spaces.
        limit: String,
    },
    /// `after <task> <other> <what>`: the task waits for another one.
    After {
        /// The number of the task.
        task: u64,
        /// The number of the other task.
        other: u64,
        /// What the other one must have done.
        until: Until,
    },
    /// `cancelled <task>`: an operator received the answer that the task is cancelled.
    Cancelled {
        /// The number of the task.
        task: u64,
    },
    /// `stopping <task>`: an operator who requested a cancel received the answer that the worker
    /// must stop the task.
    Stopping {
        /// The number of the task.
        task: u64,
    },
    /// `requeue <task>`: an operator requests a requeue of the task.
    Requeue {
        /// The number of the task.
        task: u64,
    },
    /// `requeued <task>`: an operator received the answer that the task will run again.
    Requeued {
        /// The number of the task.
        task: u64,
    },
    /// `delete <task>`: an operator requests a deletion of the task.
    Delete {
        /// The number of the task.
        task: u64,
    },
    /// `deleted <task>`: an operator received the answer that the task is deleted.
    Deleted {
        /// The number of the task.
        task: u64,
    },
    /// `undone <task>`: an operator received the answer that the last request changed nothing.
    Undone {
        /// The number of the task.
        task: u64,
    },
    /// `pause <queue>`: an operator requests a pause of the queue, or of a limit.
    Pause {
        /// The name of the queue, or of the limit.
        queue: String,
    },
    /// `paused <queue>`: an operator received the answer that the queue is paused.
    Paused {
        /// The name of the queue.
        queue: String,
    },
    /// `resume <queue>`: an operator requests that the claims of the queue continue.
    Resume {
        /// The name of the queue.
        queue: String,
    },
    /// `rule <interval µs> <burst> <max working> <limit>`: this limit never allows more than that;
    /// 0 stands for no bound.
    Rule {
        /// The time after which one more task may start.
        interval_us: u64,
        /// How many tasks may start at once.
        burst: u64,
        /// How many tasks may run at once.
        max_working: u64,
        /// The name of the limit.
        limit: String,
    },
    /// `begin <task> <id> <attempt> <fence>`: the handler begins.
    Begin {
        /// The number of the task.
        task: u64,
        /// The id of the task in the queue.
        id: String,
        /// The number of the attempt, as the handler received it.
        attempt: u32,
        /// The attempt's fence.
        fence: u64,
    },
    /// `end <task> <fence> <how>`: the handler is about to return.
    End {
        /// The number of the task.
        task: u64,
        /// The attempt's fence.
        fence: u64,
        /// How the attempt ended.
        how: How,
    },
    /// `found <task> <state> <fence>`: the state of the task at the end of the run.
    Found {
        /// The number of the task.
        task: u64,
        /// The state.
        state: Found,
        /// The fence of the attempt whose result was kept, or 0.
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
        /// When the worker was asked.
        since: u64,
    },
    /// `frozen <pid> <since ns>`: a process was stopped from `since` until now.
    Frozen {
        /// The process.
        victim: u32,
        /// When the process was stopped.
        since: u64,
    },
    /// `outage <since ns> <pid or ->`: from `since` until now, Redis was dead or silent, or
    /// connections to it broke. This affected one process or all processes.
    Outage {
        /// When the event began.
        since: u64,
        /// The process, or none for all processes.
        of: Option<u32>,
    },
    /// `missed <pid>`: a fault made a heartbeat of a worker fail, and the worker knows that now.
    Missed {
        /// The process.
        worker: u32,
    },
    /// `stalled <since ns>`: the machine ran no process from `since` until now.
    Stalled {
        /// When the event began.
        since: u64,
    },
    /// `clock <since ns> <ms>`: between `since` and now the clock of Redis was changed by this many
    /// ms.
    ClockSet {
        /// When the change of the clock was requested.
        since: u64,
        /// The difference. A negative one sets the clock back.
        by_ms: i64,
    },
    /// `lease <pid> <ms>`: a worker keeps its tasks for this long after its last heartbeat.
    Lease {
        /// The process.
        worker: u32,
        /// The lease of the worker.
        ms: u64,
    },
    /// `giveups`: from now on, tasks that wait for others give up before their time.
    GiveUps,
    /// `rollback <since ns>`: what Redis acknowledged from `since` until now may be gone.
    Rollback {
        /// When the event began.
        since: u64,
    },
}

/// How a handler ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `ok`: the handler succeeded.
    Ok,
    /// `failed`: the handler returned an error of its own, or panicked.
    Failed,
    /// `stopped`: the handler was asked to stop, or was dropped.
    Stopped,
}

/// What a lane does if one of its tasks dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfDead {
    /// `skip`: the next task has its turn.
    Skip,
    /// `block`: the dead task keeps its permit.
    Block,
}

/// What a task must have done before one that waits for it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// `success`: the task must have succeeded.
    Success,
    /// `end`: the task must have ended.
    End,
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
    /// `forgotten`: the store has no data of the task. It succeeded long ago, or was deleted, or
    /// never existed.
    Forgotten,
    /// `live`: the task has not ended.
    Live,
}

impl What {
    /// Returns the number of the task that the event is about, or none for an event of a queue or a
    /// process.
    pub fn task(&self) -> Option<u64> {
        match *self {
            Self::Invoke { task, .. }
            | Self::Acked { task, .. }
            | Self::Duplicate { task, .. }
            | Self::Refused { task }
            | Self::Unknown { task }
            | Self::Cancel { task }
            | Self::Waits { task }
            | Self::Lane { task, .. }
            | Self::Limited { task, .. }
            | Self::After { task, .. }
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
