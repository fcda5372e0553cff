//! `inspect`, `count` and plain reads for inspectors.

use redis::{Cmd, Value};
use serde::Serialize;

use super::{Broker, BrokerError, Reply, ScriptCall, keys, reply, scripts};
use crate::{
    id::{QueueName, TaskId, WorkerId},
    state::TaskState,
};

/// The stored data of one task.
#[derive(Debug)]
pub struct Found {
    /// The state of the task.
    pub state: TaskState,
    /// The worker that holds it.
    pub worker: Option<WorkerId>,
    /// When the task is due or ended, in ms.
    pub at_ms: Option<u64>,
    /// The record of the task, as stored.
    pub record: Vec<u8>,
    /// The payload, if it is stored apart from the record.
    pub blob: Vec<u8>,
    /// Counts of failures, losses and misfits so far.
    pub tries: (u32, u32, u32),
    /// The error history, one entry per line.
    pub errors: String,
    /// The summary of the task's success.
    pub summary: String,
    /// The lines that its attempts have said, as stored.
    pub log: String,
    /// When somebody asked the worker that runs it to stop it, in ms.
    pub cancel_ms: Option<u64>,
}

/// How many tasks of a queue are in each state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tasks in the ready list.
    pub ready: u64,
    /// Tasks that wait for their due time.
    pub delayed: u64,
    /// Tasks that wait in lanes, for limits, for other tasks, or for their run.
    pub blocked: u64,
    /// Tasks that wait for another attempt.
    pub retry: u64,
    /// Tasks that workers hold.
    pub working: u64,
    /// Dead tasks that are kept.
    pub dead: u64,
    /// Cancelled tasks that are kept.
    pub cancelled: u64,
    /// The successes whose summaries are kept: the last 1,000, and up to 128 more.
    pub recent_successes: u64,
    /// Bytes of the dead tasks' records, arguments and error histories.
    pub dead_bytes: u64,
    /// Bytes of the cancelled tasks' records, arguments and error histories.
    pub cancelled_bytes: u64,
    /// The number of tasks that were removed without a success so far: dead and cancelled tasks
    /// that were purged, and tasks that an operator deleted.
    pub purged: u64,
    /// Whether the queue is paused, so that no tasks are claimed.
    pub paused: bool,
}

impl Counts {
    /// Returns how many tasks are in a state; those that have succeeded count while they are kept.
    pub fn of(&self, state: TaskState) -> u64 {
        match state {
            TaskState::Ready => self.ready,
            TaskState::Delayed => self.delayed,
            TaskState::Blocked => self.blocked,
            TaskState::Retry => self.retry,
            TaskState::Working => self.working,
            TaskState::Dead => self.dead,
            TaskState::Cancelled => self.cancelled,
            TaskState::Success => self.recent_successes,
            TaskState::Forgotten => 0,
        }
    }
}

/// What ended in a queue since it was first used. A queue that nobody uses for a day is removed,
/// and begins again at 0. While a worker of an earlier release runs, some of its ends are missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Tasks that succeeded.
    pub successes: u64,
    /// Attempts that failed, after which another one follows.
    pub retries: u64,
    /// Attempts that were lost with their worker.
    pub losses: u64,
    /// Ends of tasks as Dead. A task that is requeued and dies again counts twice.
    pub deaths: u64,
    /// Ends of tasks as Cancelled.
    pub cancels: u64,
}

/// A worker as one queue sees it.
#[derive(Debug, Clone)]
pub struct WorkerSeen {
    /// The id of the worker.
    pub id: WorkerId,
    /// When the worker's lease is over, in ms by Redis' clock.
    pub lease_until_ms: u64,
    /// The description that the worker registered, as JSON.
    pub description: String,
    /// The tasks that the worker holds.
    pub running: Vec<TaskId>,
}

/// How many words of an answer are [`Counts`]; the totals follow.
const COUNTS: usize = 12;

impl Broker {
    /// Reads the stored data of one task.
    pub async fn inspect(&self, id: &TaskId) -> Result<Found, BrokerError> {
        let call = ScriptCall::new(&scripts::INSPECT, &self.keys(id.queue()), "").arg(id.stored());
        Self::read_inspect(self.run_read(call).await?)
    }

    /// Reads the answer to [`inspect`](Self::inspect).
    pub fn read_inspect(mut reply: Reply) -> Result<Found, BrokerError> {
        let state = state(&reply.text()?)?;
        let worker = Some(reply.text()?).filter(|w| !w.is_empty());
        let at_ms = reply.text()?.parse::<f64>().ok();
        let (record, blob) = (reply.bytes()?, reply.bytes()?);
        let tries = super::claim::read_tries(&reply.text()?);
        let errors = reply.text()?;
        let _token = reply.bytes()?;
        Ok(Found {
            state,
            worker: worker.map(|w| WorkerId::from_stored(&w)),
            at_ms: at_ms.map(whole),
            record,
            blob,
            tries,
            errors,
            summary: reply.text()?,
            log: String::from_utf8_lossy(&reply.bytes()?).into_owned(),
            cancel_ms: reply.text()?.parse().ok(),
        })
    }

    /// Reads the names of all queues that have had a submit or a worker, and are not retired.
    pub async fn queues(&self) -> Result<Vec<QueueName>, BrokerError> {
        let set = self.read_one(get(&["SMEMBERS", &keys::queues(&self.namespace)])).await?;
        let mut names: Vec<QueueName> = texts("SMEMBERS", set)?
            .into_iter()
            .filter_map(|name| QueueName::new(name).ok())
            .collect();
        names.sort();
        Ok(names)
    }

    /// Returns the queues of these that have a task with this stored id, which has not succeeded.
    pub async fn holders(
        &self,
        stored: &str,
        queues: &[QueueName],
    ) -> Result<Vec<QueueName>, BrokerError> {
        let look = |queue: &QueueName| get(&["HEXISTS", &self.keys(queue).of("tasks"), stored]);
        let answers = self.read(queues.iter().map(look).collect()).await;
        let mut holders = Vec::new();
        for (queue, answer) in queues.iter().zip(answers) {
            if size(&answer?) == 1 {
                holders.push(queue.clone());
            }
        }
        Ok(holders)
    }

    /// Counts the tasks in each state, at one moment.
    pub async fn counts(&self, queue: &QueueName) -> Result<Counts, BrokerError> {
        let call = ScriptCall::new(&scripts::COUNT, &self.keys(queue), "");
        Self::read_counts(self.run_read(call).await?)
    }

    /// Reads the answer to [`counts`](Self::counts).
    pub fn read_counts(mut reply: Reply) -> Result<Counts, BrokerError> {
        Self::read_states(&mut reply)
    }

    /// Reads the first part of an answer to [`counts`](Self::counts).
    pub(super) fn read_states(reply: &mut Reply) -> Result<Counts, BrokerError> {
        Ok(Counts {
            ready: reply.number()?,
            delayed: reply.number()?,
            blocked: reply.number()?,
            retry: reply.number()?,
            working: reply.number()?,
            dead: reply.number()?,
            cancelled: reply.number()?,
            recent_successes: reply.number()?,
            dead_bytes: reply.number()?,
            cancelled_bytes: reply.number()?,
            purged: reply.number()?,
            paused: reply.flag()?,
        })
    }

    /// Reads what ended so far.
    pub async fn totals(&self, queue: &QueueName) -> Result<Totals, BrokerError> {
        let call = ScriptCall::new(&scripts::COUNT, &self.keys(queue), "");
        let mut reply = self.run_read(call).await?;
        reply.next_texts(COUNTS)?;
        Self::read_totals(&mut reply)
    }

    /// Reads the part of an answer that follows the [`Counts`].
    pub(super) fn read_totals(reply: &mut Reply) -> Result<Totals, BrokerError> {
        Ok(Totals {
            successes: reply.number()?,
            retries: reply.number()?,
            losses: reply.number()?,
            deaths: reply.number()?,
            cancels: reply.number()?,
        })
    }

    /// Reads the workers of a queue.
    pub async fn workers(&self, queue: &QueueName) -> Result<Vec<WorkerSeen>, BrokerError> {
        let keys = self.keys(queue);
        let all =
            self.read_one(get(&["ZRANGE", &keys.of("workers"), "0", "-1", "WITHSCORES"])).await?;
        let all = texts("ZRANGE", all)?;
        let mut commands = Vec::new();
        for pair in all.chunks_exact(2) {
            commands.push(get(&["HGET", &keys.worker(&pair[0]), "description"]));
            commands.push(get(&["HKEYS", &keys.working(&pair[0])]));
        }
        let mut answers = self.read(commands).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let mut workers = Vec::new();
        for pair in all.chunks_exact(2) {
            let description = reply::plain_bytes("HGET", next()?)?.unwrap_or_default();
            let running = texts("HKEYS", next()?)?;
            workers.push(WorkerSeen {
                id: WorkerId::from_stored(&pair[0]),
                lease_until_ms: pair[1].parse().map_or(0, whole),
                description: String::from_utf8_lossy(&description).into_owned(),
                running: running.iter().filter_map(|id| stored_id(queue, id)).collect(),
            });
        }
        Ok(workers)
    }

    /// Sends one plain command.
    pub(super) async fn one(&self, command: Cmd) -> Result<Value, BrokerError> {
        self.send(vec![command]).await.pop().expect("an answer for each call")
    }

    /// Sends one plain command that changes nothing.
    pub(super) async fn read_one(&self, command: Cmd) -> Result<Value, BrokerError> {
        self.read(vec![command]).await.pop().expect("an answer for each call")
    }
}

pub(super) fn get(words: &[&str]) -> Cmd {
    let mut command = Cmd::new();
    for word in words {
        command.arg(*word);
    }
    command
}

pub(super) fn state(word: &str) -> Result<TaskState, BrokerError> {
    TaskState::from_word(word)
        .ok_or_else(|| BrokerError::UnexpectedReply(format!("no state {word:?}")))
}

pub(super) fn stored_id(queue: &QueueName, stored: &str) -> Option<TaskId> {
    TaskId::from_stored(queue.clone(), stored).ok()
}

pub(super) fn texts(command: &'static str, value: Value) -> Result<Vec<String>, BrokerError> {
    let items = reply::plain_list(command, value)?;
    Ok(items.into_iter().map(|item| String::from_utf8_lossy(&item).into_owned()).collect())
}

pub(super) fn size(value: &Value) -> u64 {
    match value {
        Value::Int(n) => u64::try_from(*n).unwrap_or(0),
        _ => 0,
    }
}

/// Scores are doubles; ms fit them exactly.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "below 2^53 and above 0"
)]
pub(super) fn whole(ms: f64) -> u64 {
    ms.max(0.0) as u64
}
