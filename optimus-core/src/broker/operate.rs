//! `cancel`, `requeue`, `pause`, `purge`: what operators and the janitor do.

use std::time::Duration;

use super::{Broker, BrokerError, scripts};
use crate::{
    id::{QueueName, TaskId},
    machine,
};

/// What a cancel did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// The task waited and is cancelled now.
    Done,
    /// It runs; its worker was asked to stop it.
    Requested,
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
}

impl Broker {
    /// Cancels a task, or asks its worker to.
    pub async fn cancel(&self, id: &TaskId) -> Result<Cancelled, BrokerError> {
        let call = self.call(&scripts::CANCEL, id.queue(), "").arg(id.stored());
        match self.run_surely(call).await?.text()?.as_str() {
            "cancelled" => Ok(Cancelled::Done),
            _ => Ok(Cancelled::Requested),
        }
    }

    /// Puts a dead or cancelled task back in line.
    pub async fn requeue(&self, id: &TaskId) -> Result<(), BrokerError> {
        self.requeue_as(id, &machine::new_uuid().simple().to_string()).await
    }

    /// The same as the operation of this name, which is done once.
    pub async fn requeue_as(&self, id: &TaskId, operation: &str) -> Result<(), BrokerError> {
        let call = self.call(&scripts::REQUEUE, id.queue(), operation).arg(id.stored());
        self.run_surely(call).await.map(drop)
    }

    /// Stops or restarts the claims of a queue.
    pub async fn pause(&self, queue: &QueueName, paused: bool) -> Result<(), BrokerError> {
        let call = self.call(&scripts::PAUSE, queue, "").arg(u8::from(paused));
        self.run_surely(call).await.map(drop)
    }

    /// Drops what is past its age or above the cap.
    pub async fn purge(
        &self,
        queue: &QueueName,
        keep: usize,
        age: Duration,
        ledger_idle: Duration,
    ) -> Result<Purged, BrokerError> {
        let call = self
            .call(&scripts::PURGE, queue, "")
            .arg(keep)
            .arg(age.as_millis())
            .arg(ledger_idle.as_millis());
        let mut reply = self.run(call).await?;
        Ok(Purged { tasks: reply.number()?, more: reply.flag()?, workers: reply.number()? })
    }
}
