//! What is due in queues, and waits for a claim to move it: [`Overdue`].

use redis::{Cmd, Value};

use super::{
    Broker, BrokerError,
    inspect::{get, size, whole},
    keys::Keys,
    overview::{QueueSeen, first_due, of_one_queue},
    reply::plain_bytes,
};
use crate::id::QueueName;

/// How many queues one write asks. Redis answers other clients between two writes.
const QUEUES_A_WRITE: usize = 50;
/// The keys whose members are due at their scores: tasks, runs, and the gates at which tasks wait.
const DUE: [&str; 4] = ["delayed", "retry", "gathers", "gates"];

/// What is due in a queue, and was not moved to the ready tasks, because no worker has claimed
/// since then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overdue {
    /// How many tasks and runs are due. The tasks that wait for a limit that has opened count as
    /// one.
    pub tasks: u64,
    /// Since when the first of them is due, in ms.
    pub since_ms: Option<u64>,
    /// Whether a task has paused the queue for a while, so that a claim takes none.
    pub is_shut: bool,
}

impl Broker {
    /// Counts what is due in these queues at the times of their reads: eight commands for a queue
    /// in which something is due, and one for a queue with limits.
    ///
    /// # Errors
    /// Those that are about all queues, such as an outage.
    pub async fn overdue(
        &self,
        queues: &[(&QueueName, &QueueSeen)],
    ) -> Result<Vec<Result<Overdue, BrokerError>>, BrokerError> {
        let mut found = Vec::with_capacity(queues.len());
        for part in queues.chunks(QUEUES_A_WRITE) {
            let commands = part.iter().flat_map(|(queue, seen)| commands(&self.keys(queue), seen));
            let mut answers = self.read(commands.collect()).await.into_iter();
            for (_, seen) in part {
                found.push(of_one_queue(read(seen, &mut answers))?);
            }
        }
        Ok(found)
    }
}

fn is_due(seen: &QueueSeen) -> bool {
    seen.due_ms.is_some_and(|due_ms| due_ms <= seen.now_ms)
}

fn commands(keys: &Keys, seen: &QueueSeen) -> Vec<Cmd> {
    let (now, mut commands) = (seen.now_ms.to_string(), Vec::new());
    if is_due(seen) {
        for key in DUE.map(|key| keys.of(key)) {
            commands.push(get(&["ZCOUNT", &key, "-inf", &now]));
            commands.push(get(&["ZRANGE", &key, "0", "0", "WITHSCORES"]));
        }
    }
    if seen.is_limited {
        // The gate of the queue itself has an empty name.
        commands.push(get(&["ZSCORE", &keys.of("shut"), ""]));
    }
    commands
}

/// Reads the answers to the commands. All of them are taken, also if one is an error.
fn read(
    seen: &QueueSeen,
    answers: &mut impl Iterator<Item = Result<Value, BrokerError>>,
) -> Result<Overdue, BrokerError> {
    let due: Vec<_> = answers.by_ref().take(if is_due(seen) { 2 * DUE.len() } else { 0 }).collect();
    let shut = if seen.is_limited { answers.next() } else { None };
    let (mut found, mut due) = (Overdue::default(), due.into_iter());
    while let (Some(count), Some(first)) = (due.next(), due.next()) {
        found.tasks += size(&count?);
        let first_ms = first_due(first?)?.filter(|first_ms| *first_ms <= seen.now_ms);
        found.since_ms = found.since_ms.into_iter().chain(first_ms).min();
    }
    if let Some(shut) = shut {
        let score = plain_bytes("ZSCORE", shut?)?.unwrap_or_default();
        let until_ms = std::str::from_utf8(&score).ok().and_then(|score| score.parse().ok());
        found.is_shut = until_ms.map(whole).is_some_and(|until_ms| until_ms > seen.now_ms);
    }
    Ok(found)
}
