//! What is due in queues, and waits for a claim to move it, and what the queues themselves let
//! start: [`Overdue`].

use redis::{Cmd, Value};

use super::{
    Broker, BrokerError,
    inspect::{get, size, whole},
    keys::Keys,
    limit_read::{read_limit, text, tokens},
    overview::{QueueSeen, first_due, of_one_queue},
};
use crate::{id::QueueName, limit::Limit};

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
    /// The limit of the whole queue, if an operator has set one.
    pub limit: Option<Limit>,
    /// How many tasks this limit lets start at once now, if it has a rate.
    pub tokens: Option<u64>,
}

impl Broker {
    /// Counts what is due in these queues at the times of their reads: eight commands for a queue
    /// in which something is due, and three for a queue with limits.
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
        commands.push(get(&["HGET", &keys.of("limits"), ""]));
        commands.push(get(&["ZSCORE", &keys.of("spent"), ""]));
    }
    commands
}

/// Reads the answers to the commands. All of them are taken, also if one is an error.
fn read(
    seen: &QueueSeen,
    answers: &mut impl Iterator<Item = Result<Value, BrokerError>>,
) -> Result<Overdue, BrokerError> {
    let due: Vec<_> = answers.by_ref().take(if is_due(seen) { 2 * DUE.len() } else { 0 }).collect();
    let own: Vec<_> = answers.by_ref().take(if seen.is_limited { 3 } else { 0 }).collect();
    let (mut found, mut due) = (Overdue::default(), due.into_iter());
    while let (Some(count), Some(first)) = (due.next(), due.next()) {
        found.tasks += size(&count?);
        let first_ms = first_due(first?)?.filter(|first_ms| *first_ms <= seen.now_ms);
        found.since_ms = found.since_ms.into_iter().chain(first_ms).min();
    }
    let mut own = own.into_iter();
    if let (Some(shut), Some(limit), Some(full_at)) = (own.next(), own.next(), own.next()) {
        let (shut, limit) = (number(shut?)?, if_readable(limit)?);
        let full_at = if_readable(full_at)?.and_then(|score| score.parse().ok()).map(whole);
        found.is_shut = shut.is_some_and(|until_ms| until_ms > seen.now_ms);
        found.limit = limit.as_deref().and_then(read_limit);
        found.tokens = found.limit.and_then(|limit| {
            let rate = limit.rate_limit()?;
            Some(tokens(rate, limit, full_at.unwrap_or(0), seen.now_ms * 1_000))
        });
    }
    Ok(found)
}

/// Reads a text; `None` if there is none, or if the key has another type. The counts of the queue
/// are right without it, and the list of limits names what is wrong.
fn if_readable(answer: Result<Value, BrokerError>) -> Result<Option<String>, BrokerError> {
    match answer {
        Err(BrokerError::Rejected(_)) => Ok(None),
        answer => text(answer?),
    }
}

/// Reads a score; `None` if there is none.
fn number(answer: Value) -> Result<Option<u64>, BrokerError> {
    Ok(text(answer)?.and_then(|score| score.parse().ok()).map(whole))
}
