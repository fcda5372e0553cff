//! A process, and a task that runs.

use optimus_core::{ProcessDetails, RunningTask};
use serde::Serialize;
use utoipa::ToSchema;

use super::{ProgressRow, at_ms};
use crate::access::{Identity, Payloads};

/// A process that runs a worker.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ProcessRow {
    id: String,
    name: Option<String>,
    host: String,
    pid: u32,
    version: String,
    started_ms: u64,
    /// When it was last heard from. An idle process tells rarely what it does.
    seen_ms: u64,
    /// Whether its lease is over: it has died, or does not reach Redis.
    lost: bool,
    /// For how long its handlers have blocked all threads of its runtime, at least.
    blocked_ms: Option<u64>,
    queues: Vec<String>,
    concurrency: usize,
    /// The slots that it may use now; 0 while it is quiet.
    slots: usize,
    busy: usize,
    rss_bytes: Option<u64>,
    /// How many cores it keeps busy.
    cpu: Option<f64>,
    /// The tasks that have run longest, at most 32.
    running: Vec<RunningRow>,
}

/// A task that runs.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct RunningRow {
    pub(crate) id: String,
    pub(crate) task: String,
    pub(crate) attempt: u32,
    pub(crate) since_ms: u64,
    pub(crate) worker: String,
    pub(crate) host: String,
    pub(crate) pid: u32,
    /// For how long its handler has gone on after its timeout.
    pub(crate) late_ms: Option<u64>,
    pub(crate) progress: Option<ProgressRow>,
}

impl ProcessRow {
    /// Returns a process with what somebody may see of it.
    pub(crate) fn of(process: &ProcessDetails, identity: &Identity, payloads: Payloads) -> Self {
        let (about, doing) = (&process.about, &process.doing);
        let seen = |queue: &&String| identity.queues.take(queue);
        Self {
            id: process.id.to_string(),
            name: about.name.clone(),
            host: about.host.clone(),
            pid: about.pid,
            version: about.version.clone(),
            started_ms: at_ms(about.started),
            seen_ms: at_ms(process.seen),
            lost: process.is_lost,
            blocked_ms: doing.blocked_ms,
            queues: about.queues.iter().filter(seen).cloned().collect(),
            concurrency: about.concurrency,
            slots: doing.slots,
            busy: doing.busy,
            rss_bytes: doing.rss_bytes,
            cpu: doing.cpu,
            running: running(process, identity, payloads).collect(),
        }
    }
}

/// Returns the tasks that a process runs, of the queues that somebody sees.
pub(crate) fn running<'a>(
    process: &'a ProcessDetails,
    identity: &'a Identity,
    payloads: Payloads,
) -> impl Iterator<Item = RunningRow> + 'a {
    let queue = |task: &RunningTask| task.id.split_once('/').map(|(queue, _)| queue.to_owned());
    let seen = move |task: &&RunningTask| {
        identity.queues.is_all() || queue(task).is_some_and(|queue| identity.queues.take(&queue))
    };
    process.doing.running.iter().filter(seen).map(move |task| RunningRow {
        id: task.id.clone(),
        task: task.task.clone(),
        attempt: task.attempt,
        since_ms: at_ms(task.since),
        worker: process.id.to_string(),
        host: process.about.host.clone(),
        pid: process.about.pid,
        late_ms: task.late_ms,
        progress: task.progress.as_ref().map(|progress| ProgressRow::of(progress, payloads)),
    })
}
