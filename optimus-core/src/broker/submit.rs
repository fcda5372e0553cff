//! `submit`: ∅ → Ready | Delayed.

use super::{Broker, BrokerError, scripts};
use crate::{
    id::{QueueName, TaskId},
    options::Due,
    record::{Submission, millis},
};

/// The slots of a client's ledger: at most this many of its calls may be unanswered.
pub const LEDGER_SLOTS: u64 = 16;

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
        let keys = self.keys(batch.queue);
        let mut call = self
            .call(&scripts::SUBMIT, batch.queue, batch.client)
            .arg(batch.client)
            .arg(batch.number)
            .arg(LEDGER_SLOTS)
            .arg(u8::from(batch.keep))
            .arg(batch.tasks.len());
        let mut blobs = Vec::new();
        for task in batch.tasks {
            let biz = task.biz_id.as_ref().map_or(0, |id| call.extra_key(keys.biz(&task.task, id)));
            let blob = task.blob().map_or(0, |blob| {
                blobs.push(blob.to_vec());
                blobs.len()
            });
            call = call.arg(task.id.stored()).arg(options(task, biz, blob)).raw(task.encode());
        }
        call.args.extend(blobs);
        let answers = self.run(call).await?.rest()?;
        let mut receipts = vec![Receipt::Created; batch.tasks.len()];
        for answer in answers {
            let (position, owner) = taken(batch.queue, &answer)
                .filter(|(position, _)| (1..=receipts.len()).contains(position))
                .ok_or_else(|| BrokerError::Odd(format!("submit answered {answer:?}")))?;
            receipts[position - 1] = Receipt::Duplicate(owner);
        }
        Ok(receipts)
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

/// Empty for a plain task, which is what makes it cheap.
fn options(task: &Submission, biz: usize, blob: usize) -> String {
    let due = match task.due {
        Due::Now => String::new(),
        Due::In(wait) => format!("in{}", millis(wait)),
        Due::At(at) => format!("at{}", at.timestamp_millis().max(0)),
    };
    let priority = task.options.priority;
    if due.is_empty() && priority == 0 && biz == 0 && blob == 0 {
        return String::new();
    }
    let priority = if priority == 0 { String::new() } else { priority.to_string() };
    let window = task.options.biz_window.map_or(0, millis);
    format!("{due};{priority};{biz};{window};{blob}")
}
