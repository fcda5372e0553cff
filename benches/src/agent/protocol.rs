//! What the harness and its agents say to each other.

use serde::{Deserialize, Serialize};

/// The queue that all tasks go to, unless they are spread over several.
pub(crate) const QUEUE: &str = "bench";

/// The bytes of a task's arguments, unless a measurement varies them.
pub(crate) const PAYLOAD_BYTES: usize = 200;

/// The queues of a load that is spread over that many.
pub(crate) fn queue_names(queues: usize) -> Vec<String> {
    match queues {
        1 => vec![QUEUE.to_owned()],
        _ => (0..queues).map(|queue| format!("{QUEUE}-{queue}")).collect(),
    }
}

/// To an agent that submits.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum SubmitOrder {
    /// Submit these.
    Load(Load),
    /// Call a script that only returns 1, one call after another, each with these words behind
    /// the script's hash.
    ReturnOne { words: Vec<Vec<u8>>, count: u64 },
    /// Submit so many tasks that return something, and hold their handles.
    Hold { count: u64 },
    /// Await the result of each that is held, one after the other.
    Hear,
}

/// Tasks to submit. Each carries its number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Load {
    pub(crate) way: Way,
    pub(crate) kind: Kind,
    /// The first task's number.
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// The bytes of each one's arguments.
    pub(crate) payload: usize,
    /// How many queues take them in turn.
    pub(crate) queues: usize,
}

/// How tasks are submitted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Way {
    /// One awaited call after another.
    Sequential,
    /// So many calls at once.
    Concurrent { in_flight: usize },
    /// In batches, one after another.
    Batches { batch: usize },
    /// So many calls at once, for that long; the count does not matter.
    For { in_flight: usize, ms: u64 },
    /// In small batches at this rate, until the count is reached.
    AtRate { per_s: f64 },
    /// One call in each interval.
    Every { us: u64 },
}

/// Which task it is, and with which options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// With the default options.
    Plain,
    /// With a biz id of its own.
    BizId,
    /// With a result that is kept.
    Result,
    /// Due this long after its submit.
    Delayed { ms: u64 },
    /// Due at this instant, in ms since the Unix epoch.
    DueAt { ms: u64 },
    /// Failing at its first attempt.
    FailsOnce,
    /// Telling how long after its submit it started.
    Stamped,
    /// Due at random within so many ms, and telling how long after that it started.
    StampedWithin { ms: u64 },
}

impl Load {
    /// Plain tasks, numbered from 0.
    pub(crate) fn new(way: Way, count: u64) -> Self {
        Self { way, kind: Kind::Plain, first: 0, count, payload: PAYLOAD_BYTES, queues: 1 }
    }

    /// Plain tasks in batches of a thousand: how a queue is filled.
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

/// How a worker's agent is set up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WorkSettings {
    pub(crate) url: String,
    /// How many tasks run at once.
    pub(crate) in_flight: usize,
    pub(crate) queues: usize,
    /// Task numbers are below this.
    pub(crate) numbers: u64,
}

/// To an agent that runs tasks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum WorkOrder {
    /// Start the worker.
    Start,
    /// How many tasks were run?
    Executed,
    /// Stop the worker, and tell what was run.
    Stop,
}

/// From an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// It takes orders.
    Ready,
    /// The load is submitted.
    Submitted {
        seconds: f64,
        count: u64,
    },
    /// The worker starts.
    Started,
    Executed(u64),
    Stopped(Tallied),
    /// The order could not be carried out.
    Failed(String),
}

/// What one worker has run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tallied {
    /// A bit for each task's number, 64 in each.
    pub(crate) words: Vec<u64>,
    /// Executions of tasks that had been executed before.
    pub(crate) doubled: u64,
    /// How long after its instant each stamped task started.
    pub(crate) latencies_us: Vec<f64>,
}
