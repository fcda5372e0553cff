//! What the keys of a queue say of it: [`Look`].

use redis::Value;

use super::{
    BrokerError, Counts, Totals,
    inspect::{size, texts},
    overview::{created_ms, first_due},
    overview_keys::{Kept, KeysFound},
    reply::plain_bytes,
    waiting_since::stamp_of,
};
use crate::id::{QueueName, TaskId};

/// The keys of which only the size is read.
const SIZED: [&str; 7] = ["priority", "delayed", "unmet", "retry", "dead", "cancelled", "success"];

/// What the commands about a queue have answered.
pub(super) struct Look {
    pub(super) counts: Counts,
    pub(super) totals: Totals,
    pub(super) tombstones: u64,
    pub(super) ranked: u64,
    pub(super) workers: Vec<String>,
    pub(super) open_rows: [String; 3],
    pub(super) finished: Vec<String>,
    pub(super) first_ready_ms: Option<u64>,
    pub(super) next_schedule: Option<u64>,
    pub(super) next_of_code: Option<u64>,
    pub(super) due_ms: Option<u64>,
    pub(super) is_limited: bool,
}

impl Look {
    /// Reads what was found of a queue.
    pub(super) fn read(
        queue: &QueueName,
        mut found: KeysFound,
        kept: &mut Kept,
    ) -> Result<Self, BrokerError> {
        let mut sizes = SIZED.map(|_| 0);
        for (size_of, key) in sizes.iter_mut().zip(SIZED) {
            *size_of = found.take(key).next().map_or(0, |answer| size(&answer));
        }
        let [ranked, delayed, unmet, retry, dead, cancelled, summaries] = sizes;
        let noted = std::mem::take(&mut found.noted);
        let known = |at: usize| noted.get(at).filter(|text| !text.is_empty());
        let note = |at: usize| known(at).and_then(|text| text.parse().ok()).unwrap_or(0);
        let (tombstones, blocked) = (note(0), note(1));
        let mut ready = found.take("ready");
        let listed = ready.next().map_or(0, |answer| size(&answer));
        let first = ready.next().map_or(Ok(None), |entry| plain_bytes("LINDEX", entry))?;
        let first = first.map(|entry| String::from_utf8_lossy(&entry).into_owned());
        let open = list("HMGET", found.take("tally").next())?;
        let open = |at: usize| open.get(at).cloned().unwrap_or_default();
        let due_of = |schedules: Option<Value>| schedules.map_or(Ok(None), first_due);
        Ok(Self {
            counts: Counts {
                ready: (listed + ranked).saturating_sub(tombstones),
                delayed,
                blocked: blocked + unmet,
                retry,
                working: 0,
                dead,
                cancelled,
                recent_successes: summaries,
                dead_bytes: note(2),
                cancelled_bytes: note(3),
                purged: note(4),
                paused: known(5).is_some(),
            },
            totals: Totals {
                successes: kept.total_successes(note(6), summaries),
                retries: note(7),
                losses: note(8),
                deaths: note(9),
                cancels: note(10),
            },
            tombstones,
            ranked,
            open_rows: [open(0), open(1), String::new()],
            finished: list("LRANGE", found.take("hours").next())?,
            first_ready_ms: first.as_deref().and_then(|entry| ready_since_ms(queue, entry)),
            workers: list("ZRANGE", found.take("workers").next())?,
            next_schedule: due_of(found.take("schedules").next())?,
            next_of_code: due_of(found.take("code_schedules").next())?,
            due_ms: known(11).and_then(|due_ms| due_ms.parse().ok()),
            is_limited: known(12).is_some(),
        })
    }

    /// Adds what workers hold. Returns the ranked tasks.
    pub(super) fn add(
        &mut self,
        queue: &QueueName,
        answers: Vec<Result<Value, BrokerError>>,
    ) -> Result<Vec<TaskId>, BrokerError> {
        let mut answers = answers.into_iter();
        for held in answers.by_ref().take(self.workers.len()) {
            // One field holds the worker's last claim.
            self.counts.working += size(&held?).saturating_sub(1);
        }
        let ranked = answers.next().map_or(Ok(Vec::new()), |found| texts("ZRANGE", found?))?;
        Ok(ranked.iter().filter_map(|id| id_of(queue, id)).collect())
    }
}

/// Reads a list; empty if its key was not there.
fn list(command: &'static str, answer: Option<Value>) -> Result<Vec<String>, BrokerError> {
    answer.map_or(Ok(Vec::new()), |answer| texts(command, answer))
}

/// Returns since when a task of the ready list is ready, by its entry: since the stamp, or since
/// its submit. A stamp of 0 is that of an id without a time.
pub(super) fn ready_since_ms(queue: &QueueName, entry: &str) -> Option<u64> {
    match stamp_of(entry) {
        Some(since_ms) => Some(since_ms).filter(|since_ms| *since_ms > 0),
        None => id_of(queue, entry).as_ref().and_then(created_ms),
    }
}

fn id_of(queue: &QueueName, stored: &str) -> Option<TaskId> {
    TaskId::from_stored(queue.clone(), stored).ok()
}
