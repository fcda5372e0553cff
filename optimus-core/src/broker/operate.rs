//! `cancel`, `requeue`, `delete`, `pause`, `purge`, `retire`: what operators and the janitor do.

use std::time::Duration;

use super::{
    Broker, BrokerError,
    inspect::{get, size, state},
    keys::queues,
    scripts,
};
use crate::{
    id::{QueueName, TaskId},
    platform,
    state::TaskState,
};

/// What a cancel did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// The task waited and is cancelled now.
    Done,
    /// It runs; its worker was asked to stop it.
    Requested,
    /// Nothing: it has ended in this state, or nothing is known of it.
    Ended(TaskState),
}

/// What a delete did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// Nothing of the task is left.
    Done,
    /// Nothing: a worker has it, or it has succeeded, or nothing is known of it.
    Left(TaskState),
}

/// What a purge leaves of dead tasks, and as much of cancelled ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// How many.
    pub tasks: usize,
    /// With so many bytes together.
    pub bytes: u64,
    /// For how long.
    pub age: Duration,
}

/// What a purge did.
#[derive(Debug, Clone, Copy)]
pub struct Purged {
    /// How many tasks are gone.
    pub tasks: usize,
    /// There is more to purge.
    pub more: bool,
    /// How many workers the queue has.
    pub workers: usize,
    /// How many of the tasks went before their age, because there were more than are kept.
    pub above_count: usize,
    /// The same because they took more bytes than are kept.
    pub above_bytes: usize,
}

impl Broker {
    /// Cancels a task, or asks its worker to.
    pub async fn cancel(&self, id: &TaskId) -> Result<Cancelled, BrokerError> {
        let done = self.cancel_all(id.queue(), &[id]).await?;
        done.into_iter()
            .next()
            .ok_or_else(|| BrokerError::UnexpectedReply("cancel answered nothing".into()))
    }

    /// Cancels tasks of one queue, up to [`BATCH_MAX`](super::BATCH_MAX), or asks their workers
    /// to; what it did with each, in order.
    pub async fn cancel_all(
        &self,
        queue: &QueueName,
        ids: &[&TaskId],
    ) -> Result<Vec<Cancelled>, BrokerError> {
        let mut call = self.call(&scripts::CANCEL, queue, "");
        for id in ids {
            call.push_id(id);
        }
        let words = self.run_surely(call).await?.next_texts(ids.len())?;
        let done = words.iter().map(|word| match word.as_str() {
            "cancelled" => Ok(Cancelled::Done),
            "requested" => Ok(Cancelled::Requested),
            word => state(word).map(Cancelled::Ended),
        });
        done.collect()
    }

    /// Puts a dead or cancelled task back in line.
    pub async fn requeue(&self, id: &TaskId) -> Result<(), BrokerError> {
        self.requeue_as(id, &platform::new_uuid().simple().to_string()).await
    }

    /// The same as the operation of this name, which is done once.
    pub async fn requeue_as(&self, id: &TaskId, operation: &str) -> Result<(), BrokerError> {
        let call = self.call(&scripts::REQUEUE, id.queue(), operation).arg(id.stored());
        self.run_surely(call).await.map(drop)
    }

    /// Removes tasks of one queue with all that is kept of them, up to
    /// [`BATCH_MAX`](super::BATCH_MAX); what it did with each, in order. Of one that is sent again
    /// nothing is known any more.
    pub async fn delete_all(
        &self,
        queue: &QueueName,
        ids: &[&TaskId],
    ) -> Result<Vec<Deleted>, BrokerError> {
        let mut call = self.call(&scripts::DELETE, queue, "");
        for id in ids {
            call.push_id(id);
        }
        let words = self.run_surely(call).await?.next_texts(ids.len())?;
        let done = words.iter().map(|word| match word.as_str() {
            "deleted" => Ok(Deleted::Done),
            word => state(word).map(Deleted::Left),
        });
        done.collect()
    }

    /// Stops or restarts the claims of a queue.
    pub async fn pause(&self, queue: &QueueName, paused: bool) -> Result<(), BrokerError> {
        let call = self.call(&scripts::PAUSE, queue, "").arg(u8::from(paused));
        self.run_surely(call).await.map(drop)
    }

    /// Drops what is past its age or above what is kept.
    pub async fn purge(
        &self,
        queue: &QueueName,
        keep: Keep,
        ledger_idle: Duration,
    ) -> Result<Purged, BrokerError> {
        let call = self
            .call(&scripts::PURGE, queue, "")
            .arg(keep.tasks)
            .arg(keep.bytes)
            .arg(keep.age.as_millis())
            .arg(ledger_idle.as_millis());
        let mut reply = self.run(call).await?;
        Ok(Purged {
            tasks: reply.number()?,
            more: reply.flag()?,
            workers: reply.number()?,
            above_count: reply.number()?,
            above_bytes: reply.number()?,
        })
    }

    /// Drops all that is left of a queue that nobody has used for so long, and its name; whether
    /// that was done.
    ///
    /// The name is in another slot of a cluster than the queue. Whoever comes between the two
    /// announces the queue after it is there: either that comes later than the removal, or the look
    /// behind that finds the queue.
    pub async fn retire(&self, queue: &QueueName, idle: Duration) -> Result<bool, BrokerError> {
        let call = self.call(&scripts::RETIRE, queue, "").arg(idle.as_millis());
        let is_gone = self.run(call).await?.flag()?;
        if is_gone {
            self.one(get(&["SREM", &queues(&self.namespace), queue.as_str()])).await?;
            let keys = self.keys(queue);
            let (tasks, ledgers) = (keys.of("tasks"), keys.of("ledgers"));
            let used = get(&["EXISTS", &tasks, &ledgers, &keys.of("workers")]);
            if size(&self.one(used).await?) > 0 {
                self.announce(queue).await?;
            }
        }
        Ok(is_gone)
    }
}
