//! The messages between the harness and its agents.

use serde::{Deserialize, Serialize};

/// The queue of all tasks, unless they are spread over several.
pub(crate) const QUEUE: &str = "bench";

/// The size of a task's arguments in bytes, unless a measurement varies it.
pub(crate) const PAYLOAD_BYTES: usize = 200;

/// Returns the queues of a load that is spread over this many.
pub(crate) fn queue_names(queues: usize) -> Vec<String> {
    match queues {
        1 => vec![QUEUE.to_owned()],
        _ => (0..queues).map(|queue| format!("{QUEUE}-{queue}")).collect(),
    }
}

/// An order for an agent that submits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum SubmitOrder {
    /// Submits this load.
    Load(Load),
    /// Calls a script that only returns 1, one call after another. Each call has these words after
    /// the script's hash.
    ReturnOne { words: Vec<Vec<u8>>, count: u64 },
    /// Calls the same script without words, once in each interval.
    ReturnOneEvery { us: u64, count: u64 },
    /// Submits this many tasks that return something, and holds their handles.
    Hold { count: u64 },
    /// Waits for the result of each held task, one after the other.
    Hear,
    /// Stores this many schedules. Each has one instant, at a full second, and all instants are
    /// within so many seconds from the first on, which is at least `lead_s` ahead.
    Schedule { count: u64, lead_s: u64, within_s: u64 },
}

/// Tasks to submit. Each contains its number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Load {
    pub(crate) way: Way,
    pub(crate) kind: Kind,
    /// The number of the first task.
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// The size of the arguments of each task, in bytes.
    pub(crate) payload: usize,
    /// The number of queues, used in turn.
    pub(crate) queues: usize,
}

/// How tasks are submitted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Way {
    /// One call after another, each awaited.
    Sequential,
    /// This many calls at once.
    Concurrent { in_flight: usize },
    /// In batches, one after another.
    Batches { batch: usize },
    /// This many calls at once, for this time; the count does not matter.
    For { in_flight: usize, ms: u64 },
    /// In small batches at this rate, until the count is reached.
    AtRate { per_s: f64 },
    /// One call in each interval.
    Every { us: u64 },
}

/// The kind of a task, with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// A task with the default options.
    Plain,
    /// A task with a unique biz id.
    BizId,
    /// A task with a result that is kept.
    Result,
    /// A task that is due this long after its submit.
    Delayed { ms: u64 },
    /// A task that is due at this time, in ms since the Unix epoch.
    DueAt { ms: u64 },
    /// A task that fails in its first attempt.
    FailsOnce,
    /// A task that reports how long after its submit it started.
    Stamped,
    /// A task that is due at random within this many ms. It reports how long after its due time it
    /// started.
    StampedWithin { ms: u64 },
}

impl Load {
    /// Returns plain tasks, numbered from 0.
    pub(crate) fn new(way: Way, count: u64) -> Self {
        Self { way, kind: Kind::Plain, first: 0, count, payload: PAYLOAD_BYTES, queues: 1 }
    }

    /// Returns plain tasks in batches of a thousand, to fill a queue.
    pub(crate) fn bulk(count: u64) -> Self {
        Self::new(Way::Batches { batch: 1_000 }, count)
    }

    pub(crate) fn kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    pub(crate) fn first(self, first: u64) -> Self {
        Self { first, ..self }
    }

    pub(crate) fn payload(self, payload: usize) -> Self {
        Self { payload, ..self }
    }

    pub(crate) fn queues(self, queues: usize) -> Self {
        Self { queues, ..self }
    }
}

/// The settings of a worker's agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkSettings {
    pub(crate) url: String,
    /// The number of tasks that run at once.
    pub(crate) in_flight: usize,
    pub(crate) queues: usize,
    /// The upper limit of task numbers.
    pub(crate) numbers: u64,
}

/// An order for an agent that runs tasks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum WorkOrder {
    /// Starts the worker.
    Start,
    /// Reports the number of executed tasks.
    Executed,
    /// Stops the worker, and reports the executed tasks.
    Stop,
}

/// A reply of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The agent is ready for orders.
    Ready,
    /// The load is submitted.
    Submitted {
        seconds: f64,
        count: u64,
    },
    /// The times of calls, from each call to its reply.
    Called {
        latencies_us: Vec<f64>,
    },
    /// The worker starts.
    Started,
    Executed(u64),
    Stopped(Tallied),
    /// The order failed.
    Failed(String),
}

/// The executions of one worker.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tallied {
    /// One bit for each task's number, 64 bits in each element.
    pub(crate) words: Vec<u64>,
    /// The number of executions of tasks that had been executed before.
    pub(crate) doubled: u64,
    /// How long after its time each stamped task started.
    pub(crate) latencies_us: Vec<f64>,
}
