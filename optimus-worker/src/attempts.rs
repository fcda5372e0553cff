//! Every attempt that runs here or whose report is still held: [`Attempts`].

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use optimus_core::{Lease, TaskId};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::judge::Facts;

/// Why a running handler was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its deadline has passed.
    TimedOut,
    /// Somebody cancelled the task.
    Cancelled,
    /// The lease may be over: no heartbeat was acknowledged for too long.
    Uncertain,
    /// The lease is over: the task is another worker's, or waits for one.
    Lost,
    /// The worker shuts down.
    Shutdown,
}

/// One attempt at one task.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) lease: Lease,
    /// The stamp of its entry in the line, to give it back under.
    pub(crate) stamp: String,
    pub(crate) facts: Facts,
    pub(crate) started_at: Instant,
    pub(crate) deadline: Instant,
    /// Tells the handler to stop.
    pub(crate) cancel: CancellationToken,
    /// Tells the executor to drop the handler.
    pub(crate) abandon: CancellationToken,
    settled: AtomicBool,
    stop: Mutex<Option<(Stop, Instant)>>,
}

impl Attempt {
    pub(crate) fn new(lease: Lease, stamp: String, facts: Facts, deadline: Instant) -> Self {
        Self {
            lease,
            stamp,
            facts,
            started_at: Instant::now(),
            deadline,
            cancel: CancellationToken::new(),
            abandon: CancellationToken::new(),
            settled: AtomicBool::new(false),
            stop: Mutex::new(None),
        }
    }

    /// Takes the right to say how the attempt ended: `true` for the first caller only. The executor
    /// and the keeper race for it when a deadline passes.
    pub(crate) fn settle(&self) -> bool {
        !self.settled.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    /// Asks the handler to stop. A later reason replaces a doubt, but nothing else.
    pub(crate) fn stop(&self, why: Stop) {
        let mut stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        if stop.is_none_or(|(earlier, _)| earlier == Stop::Uncertain && why != Stop::Uncertain) {
            *stop = Some((why, Instant::now()));
        }
        drop(stop);
        self.cancel.cancel();
    }

    /// Why and when it was asked to stop.
    pub(crate) fn stopped(&self) -> Option<(Stop, Instant)> {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// By task and fence: one worker may hold a task anew while an old attempt of its own still runs.
type Key = (TaskId, u64);

/// The table of attempts.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    table: Mutex<HashMap<Key, Arc<Attempt>>>,
    /// Rung when the table gets its first attempt, for the deadlines and for the relief.
    pub(crate) began: [Notify; 2],
}

fn key(lease: &Lease) -> Key {
    (lease.id.clone(), lease.token.fence)
}

impl Attempts {
    fn table(&self) -> MutexGuard<'_, HashMap<Key, Arc<Attempt>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn insert(&self, attempt: Arc<Attempt>) {
        let mut table = self.table();
        if table.is_empty() {
            self.began.iter().for_each(Notify::notify_one);
        }
        table.insert(key(&attempt.lease), attempt);
    }

    pub(crate) fn remove(&self, lease: &Lease) {
        self.table().remove(&key(lease));
    }

    /// Whether the attempt runs or its report is held.
    pub(crate) fn holds(&self, id: &TaskId, fence: u64) -> bool {
        self.table().contains_key(&(id.clone(), fence))
    }

    /// All of them, at this moment.
    pub(crate) fn snapshot(&self) -> Vec<Arc<Attempt>> {
        self.table().values().cloned().collect()
    }

    /// Nothing runs, and no report of an attempt is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.table().is_empty()
    }

    /// How many handlers have not ended.
    pub(crate) fn running(&self) -> usize {
        self.table().values().filter(|attempt| !attempt.is_settled()).count()
    }

    /// Asks all running handlers to stop.
    pub(crate) fn stop_all(&self, why: Stop) {
        for attempt in self.snapshot() {
            if !attempt.is_settled() {
                attempt.stop(why);
            }
        }
    }
}
