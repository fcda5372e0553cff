//! `submit`: ∅ → Ready | Delayed.

use super::{Broker, BrokerError, ScriptCall, scripts};
use crate::{
    id::{QueueName, TaskId},
    options::Due,
    record::{Submission, millis},
};

/// The slots of a client's ledger: at most this many of its calls may be unanswered.
pub const LEDGER_SLOTS: u64 = 16;

/// What a stored id and a short header take, to reserve room.
const RECORD_BYTES: usize = 64;

/// Tasks of one queue in one call.
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
        let answers = self.run(self.submit_call(batch)).await?.rest()?;
        let mut receipts = vec![Receipt::Created; batch.tasks.len()];
        for answer in answers {
            let (position, owner) = taken(batch.queue, &answer)
                .filter(|(position, _)| (1..=receipts.len()).contains(position))
                .ok_or_else(|| BrokerError::Odd(format!("submit answered {answer:?}")))?;
            receipts[position - 1] = Receipt::Duplicate(owner);
        }
        Ok(receipts)
    }

    fn submit_call(&self, batch: &Batch<'_>) -> ScriptCall {
        let keys = self.keys(batch.queue);
        let mut call = self.call(&scripts::SUBMIT, batch.queue, batch.client);
        let (mut options, mut blobs) = (Vec::new(), Vec::new());
        for (at, task) in batch.tasks.iter().enumerate() {
            let biz = task.biz_id.as_ref().map(|id| call.extra_key(&keys.biz(&task.task, id)));
            blobs.extend(task.blob());
            let blob = task.blob().map(|_| blobs.len());
            options.extend(options_of(task, at + 1, biz, blob));
        }
        let mut call = call
            .arg(batch.client)
            .arg(batch.number)
            .arg(batch.number % LEDGER_SLOTS)
            .arg(u8::from(batch.keep))
            .arg(batch.tasks.len())
            .arg(options.len())
            .arg(self.here_ms());
        let payloads: usize = batch.tasks.iter().map(|task| task.payload.len()).sum();
        call.reserve(2 * batch.tasks.len(), payloads + batch.tasks.len() * RECORD_BYTES);
        for task in batch.tasks {
            call.push_id(&task.id);
            call.push_with(|bytes| task.encode(bytes));
        }
        for option in options {
            call.push(option);
        }
        for blob in blobs {
            call.push_bytes(blob);
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

/// None for a plain task, which is what makes it cheap.
fn options_of(
    task: &Submission,
    position: usize,
    biz: Option<usize>,
    blob: Option<usize>,
) -> Option<String> {
    let due = match task.due {
        Due::Now => String::new(),
        Due::In(wait) => format!("in{}", millis(wait)),
        Due::At(at) => format!("at{}", at.timestamp_millis().max(0)),
    };
    let priority = task.options.priority;
    let stamped = task.options.expires_in.is_some();
    let plain = due.is_empty() && priority == 0 && biz.is_none() && blob.is_none() && !stamped;
    if plain {
        return None;
    }
    let priority = if priority == 0 { String::new() } else { priority.to_string() };
    let window = task.options.biz_window.map_or(0, millis);
    let (biz, blob, stamped) = (biz.unwrap_or(0), blob.unwrap_or(0), u8::from(stamped));
    Some(format!("{position};{due};{priority};{biz};{window};{blob};{stamped}"))
}
