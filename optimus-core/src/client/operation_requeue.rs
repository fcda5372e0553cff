//! What a requeue of many tasks does for those that wait for others: they come back first, and ask
//! last.

use std::slice;

use super::{
    operation_carrier::{After, Hold},
    operation_changes::{CHANGED_MAX, Changes, lost, once_stored},
    prerequisite_asks::relay,
};
use crate::{
    broker::{Act, BrokerError, Refusal},
    id::QueueName,
    operation::OperationAct,
    operation_counted::Chunk,
};

/// How many chunks of queues in which no task waits are passed in one step.
const PASSED_MAX: usize = 64;

impl Changes<'_> {
    /// Tells all queues what has ended before a requeue counts. A task that learns only later that
    /// what it waits for was cancelled would be cancelled with it, after both have come back.
    pub(super) async fn carry_effects(&self) -> Result<(), BrokerError> {
        let queues = self.broker.queues().await?;
        let have_effects = self.broker.outboxes(&queues).await?;
        for (queue, _) in queues.into_iter().zip(have_effects).filter(|(_, has)| *has) {
            relay(self.broker.clone(), queue).await;
        }
        Ok(())
    }

    /// Requeues some tasks that wait for others, before those others: each of these learns of every
    /// success, however soon it comes. If another carrier repeats this, it finds them changed.
    /// Returns nothing if no more tasks wait.
    pub(super) async fn requeue_waiting(
        &self,
        hold: &mut Hold,
    ) -> Result<Option<After>, BrokerError> {
        let mut idle: Option<QueueName> = None;
        for _ in 0..PASSED_MAX {
            let number = hold.progress.waits_chunk + 1;
            if number > hold.progress.chunks {
                return Ok(None);
            }
            let Some(chunk) = self.chunk(hold, number).await? else {
                // An earlier release removes those that it has reached.
                if number > hold.progress.chunk {
                    return Err(lost());
                }
                hold.progress.waits_chunk = number;
                continue;
            };
            if idle.as_ref() != Some(&chunk.queue)
                && self.broker.has_ended_waiting(&chunk.queue).await?
            {
                return self.requeue_waiting_of(hold, number, chunk).await.map(Some);
            }
            idle = Some(chunk.queue);
            hold.progress.waits_chunk = number;
        }
        Ok(Some(After::More))
    }

    async fn requeue_waiting_of(
        &self,
        hold: &mut Hold,
        number: u64,
        chunk: Chunk,
    ) -> Result<After, BrokerError> {
        let Some(Chunk { queue, mut tasks }) = once_stored(hold, number, chunk) else {
            return Ok(After::More);
        };
        let rest = tasks.split_off(tasks.len().min(CHANGED_MAX));
        self.change_batch(hold, Act::RequeueWaiting, &queue, &tasks).await?;
        if rest.is_empty() {
            hold.progress.waits_chunk = number;
        } else {
            hold.chunk = Some((number, Chunk { queue, tasks: rest }));
        }
        Ok(After::More)
    }

    /// Lets some of the tasks that were requeued ask for what they wait for. Before the operation
    /// has reached all tasks, is cancelled, or fails, a task that they wait for could still be one
    /// that has ended, and comes back later. A task that asks twice does no harm.
    pub(super) async fn ask(&self, hold: &mut Hold) -> Result<After, BrokerError> {
        if hold.about.act != OperationAct::Requeue {
            return Ok(After::Over);
        }
        let mut idle: Option<QueueName> = None;
        for _ in 0..PASSED_MAX {
            let number = hold.progress.asked_chunk + 1;
            if number > hold.progress.last_begun() {
                return Ok(After::Over);
            }
            // An earlier release, which lets them ask at once, removes those that it has reached.
            if let Some(chunk) = self.chunk(hold, number).await?
                && idle.as_ref() != Some(&chunk.queue)
            {
                if self.broker.outboxes(slice::from_ref(&chunk.queue)).await?.contains(&true) {
                    return self.ask_of(hold, number, chunk).await;
                }
                idle = Some(chunk.queue);
            }
            (hold.progress.asked_chunk, hold.has_reached) = (number, Some(number));
        }
        Ok(After::More)
    }

    async fn ask_of(
        &self,
        hold: &mut Hold,
        number: u64,
        chunk: Chunk,
    ) -> Result<After, BrokerError> {
        let Chunk { queue, mut tasks } = chunk;
        let rest = tasks.split_off(tasks.len().min(CHANGED_MAX));
        match self.broker.reask_of(&queue, tasks.iter().map(|task| &task.id)).await {
            // A queue that is damaged, or needs a later release, does not keep the others.
            Err(BrokerError::Rejected(_) | BrokerError::Refused(Refusal::Newer, _)) => {}
            Err(problem) => return Err(problem),
            Ok(asked) if asked.posted => relay(self.broker.clone(), queue.clone()).await,
            Ok(_) => {}
        }
        if rest.is_empty() {
            (hold.progress.asked_chunk, hold.has_reached) = (number, Some(number));
        } else {
            hold.chunk = Some((number, Chunk { queue, tasks: rest }));
        }
        Ok(After::More)
    }
}
