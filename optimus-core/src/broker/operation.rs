//! `operation_add`, `operation_carry`, `operation_decide`, `operation_adopt`: changes of many
//! tasks, and who carries them on.

use std::{slice, time::Duration};

use super::{
    Broker, BrokerError, Refusal, Reply, ScriptCall,
    inspect::{get, texts},
    operate::{Cancelled, Deleted, read_cancelled, read_deleted, read_due},
    reply, scripts,
};
use crate::{id::QueueName, operation_counted::Counted, state::TaskState};

/// An operation that rests for so long is left: its carrier is gone, or nobody has begun.
const LEFT_FOR_MS: u64 = 5_000;

/// What an operation does with each task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Requeue,
    /// Requeues only those that wait for their prerequisites again.
    RequeueWaiting,
    Cancel,
    Delete,
    RunNow,
}

/// An operation as it is stored, and the time of Redis.
#[derive(Debug, Clone, Default)]
pub struct Saved {
    pub now_ms: u64,
    pub state: String,
    pub about: String,
    pub added_ms: u64,
    pub changed_ms: u64,
    pub matched: u64,
    pub why: String,
    pub progress: String,
}

/// What a carrier stores: the state that it knows and the next one, and how far it has come.
#[derive(Debug, Clone, Copy)]
pub struct Held<'a> {
    pub fence: u64,
    /// Zero gives the lease back.
    pub lease: Duration,
    pub from: &'a str,
    pub to: &'a str,
    pub matched: Option<u64>,
    /// Empty for no change.
    pub progress: &'a str,
    /// The number of the counted tasks that it has reached.
    pub reached: Option<u64>,
    /// More counted tasks, by their numbers.
    pub counted: &'a [(u64, Vec<u8>)],
}

/// The batch in which a carrier changes tasks of one queue.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    pub operation: &'a str,
    pub fence: u64,
    pub number: u64,
    /// Tasks in other states are not meant.
    pub states: &'a [TaskState],
    /// Tasks that are due at this time are due already.
    pub until_ms: u64,
}

/// What became of one task of a batch.
#[derive(Debug, Clone)]
pub enum Changed {
    Done,
    /// Its worker was asked to stop it.
    Asked,
    /// It is no longer as it was counted.
    Gone,
    Refused(BrokerError),
}

impl Batch<'_> {
    fn text(&self, tasks: &[Counted]) -> String {
        let Self { fence, number, states, until_ms, .. } = self;
        let states: Vec<_> = states.iter().map(|state| state.as_str()).collect();
        let marks: Vec<_> = tasks.iter().map(|task| task.mark.number().to_string()).collect();
        format!("{fence};{number};{};{until_ms};{}", states.join("+"), marks.join(","))
    }
}

impl Broker {
    /// Returns the place of the keys of all operations. No queue can have this name.
    pub fn operations_slot() -> QueueName {
        QueueName::of_slot("@operations")
    }

    /// Stores a new operation, and keeps this many. Returns the time of Redis.
    pub async fn operation_add(
        &self,
        slot: &QueueName,
        id: &str,
        (about, why): (&str, &str),
        keep: usize,
    ) -> Result<u64, BrokerError> {
        let call = self.call(&scripts::OPERATION_ADD, slot, id).text(id).text(about).arg(keep);
        let call = call.text(why);
        self.run_surely(call).await?.number()
    }

    /// Takes the lease of an operation. Returns its fence.
    pub async fn operation_take(
        &self,
        slot: &QueueName,
        id: &str,
        lease: Duration,
    ) -> Result<(u64, Saved), BrokerError> {
        let call = self.call(&scripts::OPERATION_CARRY, slot, id).text(id).text("");
        let call = call.arg(lease.as_millis()).text("").text("").text("").text("").text("");
        read_carried(self.run(call).await?)
    }

    /// Stores how far an operation has come, and renews or gives back the lease.
    pub async fn operation_carry(
        &self,
        slot: &QueueName,
        id: &str,
        held: Held<'_>,
    ) -> Result<Saved, BrokerError> {
        let Held { fence, lease, from, to, matched, progress, reached, counted } = held;
        let call = self.call(&scripts::OPERATION_CARRY, slot, id).text(id).number(fence);
        let call = call.arg(lease.as_millis()).text(from).text(to);
        let call = match matched {
            Some(matched) => call.number(matched),
            None => call.text(""),
        };
        let mut call = match reached {
            Some(number) => call.text(progress).number(number),
            None => call.text(progress).text(""),
        };
        for (number, tasks) in counted {
            call.push_number(*number);
            call.push_bytes(tasks);
        }
        Ok(read_carried(self.run(call).await?)?.1)
    }

    /// Reads the counted tasks of this number; `None` if there are none.
    pub async fn operation_counted(
        &self,
        slot: &QueueName,
        id: &str,
        number: u64,
    ) -> Result<Option<Vec<u8>>, BrokerError> {
        let key = self.keys(slot).counted(id);
        let found = self.read_one(get(&["HGET", &key, &number.to_string()])).await?;
        reply::plain_bytes("HGET", found)
    }

    /// Lets an operation change the tasks that it has counted, if there are as many as expected.
    pub async fn operation_confirm(
        &self,
        slot: &QueueName,
        id: &str,
        expected: u64,
        why: &str,
    ) -> Result<(), BrokerError> {
        let call = self.call(&scripts::OPERATION_DECIDE, slot, id).text(id).text("confirm");
        self.run_surely(call.number(expected).text(why)).await.map(drop)
    }

    /// Cancels an operation.
    pub async fn operation_cancel(&self, slot: &QueueName, id: &str) -> Result<(), BrokerError> {
        let call = self.call(&scripts::OPERATION_DECIDE, slot, id).text(id).text("cancel");
        self.run_surely(call.text("").text("")).await.map(drop)
    }

    /// Continues in a queue. Returns how many tasks were changed there in the batch of this number.
    pub async fn operation_adopt(
        &self,
        queue: &QueueName,
        id: &str,
        fence: u64,
        number: u64,
    ) -> Result<u64, BrokerError> {
        let keys = self.keys(queue);
        let call = ScriptCall::new(&scripts::OPERATION_ADOPT, &keys, id);
        self.run_surely(call.number(fence).number(number)).await?.number()
    }

    /// Reads one operation.
    pub async fn operation(
        &self,
        slot: &QueueName,
        id: &str,
    ) -> Result<Option<Saved>, BrokerError> {
        Ok(self.operations_of(slot, &[id.to_owned()]).await?.pop().map(|(_, saved)| saved))
    }

    /// Reads the latest operations, the latest first.
    pub async fn operations(
        &self,
        slot: &QueueName,
        limit: usize,
    ) -> Result<Vec<(String, Saved)>, BrokerError> {
        let first = format!("-{}", limit.max(1));
        let range = get(&["ZRANGE", &self.keys(slot).of("operations"), &first, "-1"]);
        let mut ids = texts("ZRANGE", self.read_one(range).await?)?;
        ids.reverse();
        self.operations_of(slot, &ids).await
    }

    async fn operations_of(
        &self,
        slot: &QueueName,
        ids: &[String],
    ) -> Result<Vec<(String, Saved)>, BrokerError> {
        let now_ms = self.now_ms().await?;
        let keys = self.keys(slot);
        let read = |id: &String| {
            let fields = ["state", "about", "added", "matched", "why", "progress", "changed"];
            get(&[&["HMGET", &keys.operation(id)][..], &fields].concat())
        };
        let mut found = Vec::new();
        for (id, answer) in ids.iter().zip(self.read(ids.iter().map(read).collect()).await) {
            let fields = texts("HMGET", answer?)?;
            if let Some(saved) = read_saved(now_ms, fields) {
                found.push((id.clone(), saved));
            }
        }
        Ok(found)
    }

    /// Returns the operation that has waited longest for a carrier, or whose lease ends first.
    pub async fn operation_carried(&self, slot: &QueueName) -> Result<Option<String>, BrokerError> {
        let range = get(&["ZRANGE", &self.keys(slot).of("carried"), "0", "0"]);
        Ok(texts("ZRANGE", self.read_one(range).await?)?.pop())
    }

    /// Returns an operation that nobody has carried on for 5 s, if there is one.
    pub async fn operation_left(&self, slot: &QueueName) -> Result<Option<String>, BrokerError> {
        let until = self.now_ms().await?.saturating_sub(LEFT_FOR_MS).to_string();
        let key = self.keys(slot).of("carried");
        let range = get(&["ZRANGEBYSCORE", &key, "-inf", &until, "LIMIT", "0", "1"]);
        Ok(texts("ZRANGEBYSCORE", self.read_one(range).await?)?.pop())
    }

    /// Changes counted tasks of one queue in a batch. Returns what became of each, in order, and
    /// whether effects for a relay were posted. A call that is refused as stale is an error.
    pub async fn operate(
        &self,
        act: Act,
        queue: &QueueName,
        batch: Batch<'_>,
        tasks: &[Counted],
    ) -> Result<(Vec<Changed>, bool), BrokerError> {
        if matches!(act, Act::Requeue | Act::RequeueWaiting) {
            return self.operate_each(act, queue, batch, tasks).await;
        }
        let script = match act {
            Act::Cancel => &scripts::CANCEL,
            Act::Delete => &scripts::DELETE,
            _ => &scripts::RUN_NOW,
        };
        let mut call = self.call(script, queue, batch.operation).text(&batch.text(tasks));
        for task in tasks {
            call.push_id(&task.id);
        }
        let (reply, count) = (self.run(call).await?, tasks.len());
        Ok(match act {
            Act::Cancel => {
                let (done, posted) = read_cancelled(reply, count)?;
                let read = |done| match done {
                    Cancelled::Done => Changed::Done,
                    Cancelled::Requested => Changed::Asked,
                    Cancelled::Ended(_) => Changed::Gone,
                };
                (done.into_iter().map(read).collect(), posted)
            }
            Act::Delete => {
                let (done, posted) = read_deleted(reply, count)?;
                let read = |done| match done {
                    Deleted::Done => Changed::Done,
                    Deleted::Left(_) => Changed::Gone,
                };
                (done.into_iter().map(read).collect(), posted)
            }
            _ => {
                let read = |left: Option<_>| left.map_or(Changed::Done, |_| Changed::Gone);
                (read_due(reply, count)?.into_iter().map(read).collect(), false)
            }
        })
    }

    /// Requeues each task by its own call, all in one write.
    async fn operate_each(
        &self,
        act: Act,
        queue: &QueueName,
        batch: Batch<'_>,
        tasks: &[Counted],
    ) -> Result<(Vec<Changed>, bool), BrokerError> {
        let only = if act == Act::RequeueWaiting { "waits" } else { "" };
        let call = |task: &Counted| {
            let call = self.call(&scripts::REQUEUE, queue, batch.operation);
            call.arg(task.id.stored()).text(&batch.text(slice::from_ref(task))).arg(only)
        };
        let (mut done, mut is_posted) = (Vec::with_capacity(tasks.len()), false);
        for answer in self.run_all(tasks.iter().map(call).collect()).await {
            done.push(match answer {
                Ok(reply) => {
                    is_posted |= !reply.is_empty();
                    Changed::Done
                }
                Err(BrokerError::Refused(Refusal::WrongState, _)) => Changed::Gone,
                // The others were changed all the same, and are counted.
                Err(
                    problem @ (BrokerError::Rejected(_)
                    | BrokerError::Refused(
                        Refusal::Duplicate | Refusal::Cycle | Refusal::Newer,
                        _,
                    )),
                ) => Changed::Refused(problem),
                Err(problem) => return Err(problem),
            });
        }
        Ok((done, is_posted))
    }
}

fn read_carried(mut reply: Reply) -> Result<(u64, Saved), BrokerError> {
    let (now_ms, fence) = (reply.number()?, reply.number()?);
    let saved = read_saved(now_ms, reply.rest()?);
    saved.map(|saved| (fence, saved)).ok_or_else(|| {
        BrokerError::UnexpectedReply("operation_carry answered with too few parts".into())
    })
}

/// Reads the fields of an operation; `None` if there is none.
fn read_saved(now_ms: u64, fields: Vec<String>) -> Option<Saved> {
    let [state, about, added, matched, why, progress, changed] = fields.try_into().ok()?;
    let number = |text: String| text.parse().unwrap_or_default();
    let (added_ms, matched, changed_ms) = (number(added), number(matched), number(changed));
    let saved = Saved { now_ms, state, about, added_ms, changed_ms, matched, why, progress };
    (!saved.state.is_empty()).then_some(saved)
}
