//! `cancel`, `requeue`, `run_now`, `delete`, `pause`, `purge`, `retire`: the calls of operators and
//! the janitor.

use std::time::Duration;

use super::{
    Broker, BrokerError, Reply, Script, ScriptCall,
    inspect::{get, size, state},
    keys::queues,
    scripts,
};
use crate::{
    gate::Gate,
    id::{QueueName, TaskId},
    platform,
    state::TaskState,
};

/// The result of a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// The task was waiting and is cancelled now.
    Done,
    /// The task is running; its worker was asked to stop it.
    Requested,
    /// Nothing: the task has ended in this state, or is unknown.
    Ended(TaskState),
}

/// The result of a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// The task and all its data are removed.
    Done,
    /// Nothing: a worker has the task, or it has succeeded, or it is unknown.
    Left(TaskState),
}

/// The limits of a purge, for the dead tasks and separately for the cancelled ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// The maximum number of tasks that ended before `recent`.
    pub tasks: usize,
    /// How long after its end a task is kept although there are more tasks.
    pub recent: Duration,
    /// The maximum total bytes of the tasks.
    pub bytes: u64,
    /// How long each task is kept.
    pub age: Duration,
}

impl Keep {
    /// The default limits. Up to 26 KiB a task on average, the limit by number applies first to
    /// tasks that are not recent, and otherwise the limit by bytes. With both states full, a queue
    /// has half a GiB of such tasks, without the overhead of Redis, which is larger than a small
    /// task.
    pub const DEFAULT: Self = Self {
        tasks: 10_000,
        recent: Duration::from_secs(60 * 60),
        bytes: 256 * 1024 * 1024,
        age: Duration::from_secs(180 * 24 * 60 * 60),
    };
}

/// The result of a purge.
#[derive(Debug, Clone, Copy)]
pub struct Purged {
    /// How many tasks were removed.
    pub tasks: usize,
    /// Whether there is more to purge.
    pub more: bool,
    /// How many workers the queue has.
    pub workers: usize,
    /// How many of the tasks were removed before their age because there were too many of them.
    pub above_count: usize,
    /// How many of the tasks were removed before their age because they took too many bytes.
    pub above_bytes: usize,
}

impl Broker {
    /// Cancels a task, or asks its worker to stop it.
    pub async fn cancel(&self, id: &TaskId) -> Result<Cancelled, BrokerError> {
        let done = self.cancel_all(id.queue(), &[id]).await?;
        done.into_iter()
            .next()
            .ok_or_else(|| BrokerError::UnexpectedReply("cancel answered nothing".into()))
    }

    /// Cancels up to [`BATCH_MAX`](super::BATCH_MAX) tasks of one queue, or asks their workers to
    /// stop them. Returns what it did with each, in order.
    pub async fn cancel_all(
        &self,
        queue: &QueueName,
        ids: &[&TaskId],
    ) -> Result<Vec<Cancelled>, BrokerError> {
        Ok(self.cancel_many(queue, ids).await?.0)
    }

    /// Cancels as [`cancel_all`](Self::cancel_all), and returns whether effects for a relay were
    /// posted.
    pub async fn cancel_many(
        &self,
        queue: &QueueName,
        ids: &[&TaskId],
    ) -> Result<(Vec<Cancelled>, bool), BrokerError> {
        let mut call = self.call_alone(&scripts::CANCEL, queue, "").text("");
        for id in ids {
            call.push_id(id);
        }
        read_cancelled(self.run_surely(call).await?, ids.len())
    }

    /// Makes the call of a script that is in no batch of an operation, so that it needs no key of
    /// one, which is the last.
    fn call_alone(&self, script: &'static Script, queue: &QueueName, owner: &str) -> ScriptCall {
        let (count, keys) = (script.keys.len() - 1, self.keys(queue));
        ScriptCall::short(script, count, &keys, owner).text(&self.now)
    }

    /// Puts a dead or cancelled task back in the ready list. Returns whether effects for a relay
    /// were posted.
    pub async fn requeue(&self, id: &TaskId) -> Result<bool, BrokerError> {
        self.requeue_as(id, &platform::new_uuid().simple().to_string()).await
    }

    /// Requeues a task under the name of an operation, which is done only once.
    pub async fn requeue_as(&self, id: &TaskId, operation: &str) -> Result<bool, BrokerError> {
        let call = self.call_alone(&scripts::REQUEUE, id.queue(), operation);
        let call = call.arg(id.stored()).text("");
        Ok(!self.run_surely(call).await?.is_empty())
    }

    /// Makes up to [`BATCH_MAX`](super::BATCH_MAX) tasks of one queue due now. Returns for each, in
    /// order, the state of a task that is neither delayed nor in retry.
    pub async fn run_now(
        &self,
        queue: &QueueName,
        ids: &[&TaskId],
    ) -> Result<Vec<Option<TaskState>>, BrokerError> {
        let mut call = self.call_alone(&scripts::RUN_NOW, queue, "").text("");
        for id in ids {
            call.push_id(id);
        }
        read_due(self.run_surely(call).await?, ids.len())
    }

    /// Removes up to [`BATCH_MAX`](super::BATCH_MAX) tasks of one queue with all their data.
    /// Returns what it did with each, in order. A repeated call finds the tasks unknown.
    pub async fn delete_all(
        &self,
        queue: &QueueName,
        ids: &[&TaskId],
    ) -> Result<Vec<Deleted>, BrokerError> {
        Ok(self.delete_many(queue, ids).await?.0)
    }

    /// Removes as [`delete_all`](Self::delete_all), and returns whether effects for a relay were
    /// posted.
    pub async fn delete_many(
        &self,
        queue: &QueueName,
        ids: &[&TaskId],
    ) -> Result<(Vec<Deleted>, bool), BrokerError> {
        let mut call = self.call_alone(&scripts::DELETE, queue, "").text("");
        for id in ids {
            call.push_id(id);
        }
        read_deleted(self.run_surely(call).await?, ids.len())
    }

    /// Stops the claims of a queue. `true` if the queue was used before.
    pub async fn pause(&self, queue: &QueueName) -> Result<bool, BrokerError> {
        self.pause_gate(queue, &Gate::Queue, "", "").await
    }

    /// Restarts the claims of a queue. `true` if the queue was used before.
    pub async fn resume(&self, queue: &QueueName) -> Result<bool, BrokerError> {
        self.resume_gate(queue, &Gate::Queue).await
    }

    /// Removes ended tasks that are too old or above the limits.
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
            .arg(ledger_idle.as_millis())
            .arg(keep.recent.as_millis());
        let mut reply = self.run(call).await?;
        Ok(Purged {
            tasks: reply.number()?,
            more: reply.flag()?,
            workers: reply.number()?,
            above_count: reply.number()?,
            above_bytes: reply.number()?,
        })
    }

    /// Removes the remaining keys and the name of a queue that has been idle for this time. Returns
    /// whether the queue was removed.
    ///
    /// In a cluster, the name is in another slot than the queue, so another program may use the
    /// queue between the two steps. That program announces the queue after its write. So either the
    /// announcement comes after the removal of the name, or the check below finds the queue.
    pub async fn retire(&self, queue: &QueueName, idle: Duration) -> Result<bool, BrokerError> {
        let call = self.call(&scripts::RETIRE, queue, "").arg(idle.as_millis());
        let is_gone = self.run(call).await?.flag()?;
        if is_gone {
            self.one(get(&["SREM", &queues(&self.namespace), queue.as_str()])).await?;
            let keys = self.keys(queue);
            let (tasks, ledgers) = (keys.of("tasks"), keys.of("ledgers"));
            let used = get(&["EXISTS", &keys.of("meta"), &tasks, &ledgers, &keys.of("workers")]);
            if size(&self.one(used).await?) > 0 {
                self.announce(queue).await?;
            }
        }
        Ok(is_gone)
    }
}

/// Reads what a cancel did with each task, and whether effects for a relay were posted.
pub(super) fn read_cancelled(
    mut reply: Reply,
    count: usize,
) -> Result<(Vec<Cancelled>, bool), BrokerError> {
    let words = reply.next_texts(count)?;
    let done = words.iter().map(|word| match word.as_str() {
        "cancelled" => Ok(Cancelled::Done),
        "requested" => Ok(Cancelled::Requested),
        "left" => Ok(Cancelled::Ended(TaskState::Cancelled)),
        word => state(word).map(Cancelled::Ended),
    });
    Ok((done.collect::<Result<_, _>>()?, !reply.is_empty()))
}

/// Reads what a delete did with each task, and whether effects for a relay were posted.
pub(super) fn read_deleted(
    mut reply: Reply,
    count: usize,
) -> Result<(Vec<Deleted>, bool), BrokerError> {
    let words = reply.next_texts(count)?;
    let done = words.iter().map(|word| match word.as_str() {
        "deleted" => Ok(Deleted::Done),
        word => state(word).map(Deleted::Left),
    });
    Ok((done.collect::<Result<_, _>>()?, !reply.is_empty()))
}

/// Reads for each task the state that keeps it from being due now.
pub(super) fn read_due(
    mut reply: Reply,
    count: usize,
) -> Result<Vec<Option<TaskState>>, BrokerError> {
    let read = |word: &String| match word.as_str() {
        "due" => Ok(None),
        word => state(word).map(Some),
    };
    reply.next_texts(count)?.iter().map(read).collect()
}
