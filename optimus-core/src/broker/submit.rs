//! `submit`: ∅ → Ready | Delayed.

use super::{
    Broker, BrokerError, Reply, ScriptCall, inspect::get, keys::Keys, reply::plain_list, scripts,
};
use crate::{
    id::{QueueName, TaskId},
    options::Due,
    record::{Submission, millis},
};

/// The slots of a client's ledger: at most this many of its calls may be unanswered. A call's slot
/// is its number modulo this, and the next one of that slot is sent once it is answered.
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
    /// The last call of the same slot that was answered; 0 if none was.
    pub since: u64,
    /// Keep the ledger for another hour.
    pub keep: bool,
    /// The tasks, up to 1,000.
    pub tasks: &'a [Submission],
}

/// What became of one task of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receipt {
    /// It is stored.
    Created,
    /// Nothing was added: this task has its biz id, or it is this task, which was stored before.
    Duplicate(TaskId),
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submitted {
    /// Of each task, in order.
    pub receipts: Vec<Receipt>,
    /// Redis has lost calls of this client that were answered: it came back with an older state, or
    /// empty, and knows nothing of what was said to it once.
    pub lost: bool,
}

/// The call that stored a task, by which Redis tells whether it still has that call.
#[derive(Debug, Clone, Copy)]
pub struct StoredBy<'a> {
    /// Whose ledger it is in.
    pub client: &'a str,
    /// Its number.
    pub number: u64,
}

impl Broker {
    /// Stores the tasks of a batch; sent again under its number, it answers as it did and does
    /// nothing more.
    pub async fn submit(&self, batch: &Batch<'_>) -> Result<Submitted, BrokerError> {
        let reply = self.run(self.submit_call(batch)).await?;
        Self::read_submit(batch.queue, batch.tasks.len(), reply)
    }

    /// Reads the answer to a batch of so many tasks.
    pub fn read_submit(
        queue: &QueueName,
        tasks: usize,
        reply: Reply,
    ) -> Result<Submitted, BrokerError> {
        let answers = reply.rest()?;
        let mut receipts = vec![Receipt::Created; tasks];
        let lost = answers.first().is_some_and(|word| word == "lost");
        for answer in answers.into_iter().skip(usize::from(lost)) {
            let (position, owner) = taken(queue, &answer)
                .filter(|(position, _)| (1..=receipts.len()).contains(position))
                .ok_or_else(|| {
                    BrokerError::UnexpectedReply(format!("submit answered {answer:?}"))
                })?;
            receipts[position - 1] = Receipt::Duplicate(owner);
        }
        Ok(Submitted { receipts, lost })
    }

    /// The call that [`submit`](Self::submit) makes.
    pub fn submit_call(&self, batch: &Batch<'_>) -> ScriptCall {
        let keys = self.keys(batch.queue);
        let is_next = batch.since == batch.number.saturating_sub(LEDGER_SLOTS);
        let may_exist = batch.tasks.iter().any(|task| task.may_exist);
        let is_plain = !batch.keep && !may_exist && is_next && batch.tasks.iter().all(is_plain);
        let here_ms = self.here_ms();
        let ids_tell = batch.tasks.iter().all(|task| task.id_tells_birth(here_ms));
        let key_count = if is_plain { PLAIN_KEYS } else { scripts::SUBMIT.keys.len() };
        let mut call = ScriptCall::short(&scripts::SUBMIT, key_count, &keys, batch.client)
            .arg(&self.now)
            .arg(batch.number)
            .arg(batch.number % LEDGER_SLOTS);
        if ids_tell {
            call.push(here_ms);
        } else {
            call.push("");
        }
        if is_plain {
            call.push("");
        } else {
            call.push(batch.tasks.len());
        }
        let bytes: usize = batch.tasks.iter().map(Submission::bytes).sum();
        call.reserve(2 * batch.tasks.len(), bytes + batch.tasks.len() * RECORD_BYTES);
        for task in batch.tasks {
            call.push_id(&task.id);
            call.push_with(|bytes| task.encode(bytes));
        }
        if !is_plain {
            call.push(if batch.keep { batch.client } else { "" });
            call.push(batch.since);
            push_options(&mut call, &keys, batch.tasks, if may_exist { "1" } else { "" });
        }
        call
    }

    /// Keeps the ledgers that a client has in these queues for another hour, as a submit with
    /// [`Batch::keep`] does, by the time of Redis. Ledgers that are gone stay gone.
    pub async fn keep_ledgers(
        &self,
        queues: &[QueueName],
        client: &str,
    ) -> Result<(), BrokerError> {
        let time = self.one(get(&["TIME"])).await?;
        let time: Vec<u64> = plain_list("TIME", time)?.iter().map(|part| digits(part)).collect();
        let [seconds, micros] = time[..] else {
            return Err(BrokerError::UnexpectedReply(format!("TIME answered {time:?}")));
        };
        let now_ms = (seconds * 1000 + micros / 1000).to_string();
        let keep = |queue| {
            let ledgers = self.keys(queue).of("ledgers");
            get(&["ZADD", &ledgers, "XX", &now_ms, client])
        };
        self.send(queues.iter().map(keep).collect()).await.into_iter().try_for_each(|a| a.map(drop))
    }

    /// Lets the next purge take the ledgers that a client has in these queues. Nobody may ask by
    /// them any more, and no call of theirs may be under way.
    pub async fn leave_ledgers(
        &self,
        queues: &[QueueName],
        client: &str,
    ) -> Result<(), BrokerError> {
        let leave = |queue| get(&["ZADD", &self.keys(queue).of("ledgers"), "XX", "0", client]);
        let commands = queues.iter().map(leave).collect();
        self.send(commands).await.into_iter().try_for_each(|answer| answer.map(drop))
    }

    /// Makes a queue known to inspectors. Safe to repeat.
    pub async fn announce(&self, queue: &QueueName) -> Result<(), BrokerError> {
        let mut command = redis::cmd("SADD");
        command.arg(super::keys::queues(&self.namespace)).arg(queue.as_str());
        self.send(vec![command]).await.pop().expect("an answer for each call").map(drop)
    }
}

/// 0 where it is no number.
fn digits(text: &[u8]) -> u64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
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

/// A biz id without a window, and nothing else that [`is_plain`] asks for.
fn is_unique(task: &Submission) -> bool {
    let has_options = task.options.priority != 0
        || task.options.expires_in.is_some()
        || task.options.biz_window.is_some();
    task.due == Due::Now && !has_options && task.biz_id.is_some() && task.blob().is_none()
}

/// How many options there are, whether ids may exist, the options, and the blobs.
fn push_options(call: &mut ScriptCall, keys: &Keys, tasks: &[Submission], may_exist: &str) {
    let (mut options, mut blobs) = (Vec::new(), Vec::new());
    for (at, task) in tasks.iter().enumerate().filter(|(_, task)| !is_plain(task)) {
        let biz = task.biz_id.as_ref().map(|id| call.extra_key(&keys.biz(&task.task, id)));
        blobs.extend(task.blob());
        let blob = task.blob().map(|_| blobs.len());
        options.push(if is_unique(task) {
            (at + 1).to_string()
        } else {
            option_of(task, at + 1, biz, blob)
        });
    }
    call.push(options.len());
    call.push(may_exist);
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
