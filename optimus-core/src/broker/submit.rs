//! `submit`: ∅ → Ready | Delayed.

use super::{Broker, BrokerError, Reply, ScriptCall, keys::Keys, scripts};
use crate::{
    id::{QueueName, TaskId},
    options::Due,
    record::{Submission, millis},
};

/// The slots of a client's ledger: at most this many of its calls may be unanswered.
pub const LEDGER_SLOTS: u64 = 16;

/// The keys of a call whose tasks are all plain.
const PLAIN_KEYS: usize = 4;

/// What a stored id and a short header take, to reserve room.
const RECORD_BYTES: usize = 64;

/// Tasks of one queue in one call.
#[derive(Clone, Copy)]
pub struct Batch<'a> {
    /// The queue of all of them.
    pub queue: &'a QueueName,
    /// Who submits.
    pub client: &'a str,
    /// The call's number, by which it can be sent again.
    pub number: u64,
    /// Keep the ledger for another day.
    pub keep: bool,
    /// The tasks, up to 1,000.
    pub tasks: &'a [Submission],
}

/// What became of one task of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receipt {
    /// It is stored.
    Created,
    /// Its biz id is held by this task.
    Duplicate(TaskId),
}

impl Broker {
    /// Stores the tasks of a batch; sent again under its number, it answers as it did and does
    /// nothing more.
    pub async fn submit(&self, batch: &Batch<'_>) -> Result<Vec<Receipt>, BrokerError> {
        let reply = self.run(self.submit_call(batch)).await?;
        Self::read_submit(batch.queue, batch.tasks.len(), reply)
    }

    /// Reads the answer to a batch of so many tasks.
    pub fn read_submit(
        queue: &QueueName,
        tasks: usize,
        reply: Reply,
    ) -> Result<Vec<Receipt>, BrokerError> {
        let answers = reply.rest()?;
        let mut receipts = vec![Receipt::Created; tasks];
        for answer in answers {
            let (position, owner) = taken(queue, &answer)
                .filter(|(position, _)| (1..=receipts.len()).contains(position))
                .ok_or_else(|| BrokerError::Odd(format!("submit answered {answer:?}")))?;
            receipts[position - 1] = Receipt::Duplicate(owner);
        }
        Ok(receipts)
    }

    /// The call that [`submit`](Self::submit) makes.
    pub fn submit_call(&self, batch: &Batch<'_>) -> ScriptCall {
        let keys = self.keys(batch.queue);
        let is_plain = !batch.keep && batch.tasks.iter().all(is_plain);
        let key_count = if is_plain { PLAIN_KEYS } else { scripts::SUBMIT.keys.len() };
        let mut call = ScriptCall::short(&scripts::SUBMIT, key_count, &keys, batch.client)
            .arg(&self.now)
            .arg(batch.number)
            .arg(batch.number % LEDGER_SLOTS)
            .arg(self.here_ms());
        if is_plain {
            call.push("");
        } else {
            call.push(batch.tasks.len());
        }
        let payloads: usize = batch.tasks.iter().map(|task| task.payload.len()).sum();
        call.reserve(2 * batch.tasks.len(), payloads + batch.tasks.len() * RECORD_BYTES);
        for task in batch.tasks {
            call.push_id(&task.id);
            call.push_with(|bytes| task.encode(bytes));
        }
        if !is_plain {
            call.push(if batch.keep { batch.client } else { "" });
            push_options(&mut call, &keys, batch.tasks);
        }
        call
    }

    /// Makes a queue known to inspectors. Safe to repeat.
    pub async fn announce(&self, queue: &QueueName) -> Result<(), BrokerError> {
        let mut command = redis::cmd("SADD");
        command.arg(super::keys::queues(&self.namespace)).arg(queue.as_str());
        self.send(vec![command]).await.pop().expect("an answer for each call").map(drop)
    }
}

fn taken(queue: &QueueName, answer: &str) -> Option<(usize, TaskId)> {
    let (position, owner) = answer.split_once('=')?;
    Some((position.parse().ok()?, TaskId::from_stored(queue.clone(), owner).ok()?))
}

/// Neither options nor a blob, which is what makes it cheap.
fn is_plain(task: &Submission) -> bool {
    let has_options = task.options.priority != 0 || task.options.expires_in.is_some();
    task.due == Due::Now && !has_options && task.biz_id.is_none() && task.blob().is_none()
}

/// How many options there are, the options, and the blobs.
fn push_options(call: &mut ScriptCall, keys: &Keys, tasks: &[Submission]) {
    let (mut options, mut blobs) = (Vec::new(), Vec::new());
    for (at, task) in tasks.iter().enumerate().filter(|(_, task)| !is_plain(task)) {
        let biz = task.biz_id.as_ref().map(|id| call.extra_key(&keys.biz(&task.task, id)));
        blobs.extend(task.blob());
        let blob = task.blob().map(|_| blobs.len());
        options.push(option_of(task, at + 1, biz, blob));
    }
    call.push(options.len());
    for option in options {
        call.push(option);
    }
    for blob in blobs {
        call.push_bytes(blob);
    }
}

fn option_of(
    task: &Submission,
    position: usize,
    biz: Option<usize>,
    blob: Option<usize>,
) -> String {
    let due = match task.due {
        Due::Now => String::new(),
        Due::In(wait) => format!("in{}", millis(wait)),
        Due::At(at) => format!("at{}", at.timestamp_millis().max(0)),
    };
    let priority = task.options.priority;
    let priority = if priority == 0 { String::new() } else { priority.to_string() };
    let window = task.options.biz_window.map_or(0, millis);
    let stamped = u8::from(task.options.expires_in.is_some());
    let (biz, blob) = (biz.unwrap_or(0), blob.unwrap_or(0));
    format!("{position};{due};{priority};{biz};{window};{blob};{stamped}")
}
