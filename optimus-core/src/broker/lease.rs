//! `register`, `renew`, `leave`: the leases of workers.

use std::time::Duration;

use super::{Broker, BrokerError, Reply, ScriptCall, scripts};
use crate::{
    id::{QueueName, TaskId, WorkerId},
    lease::Token,
};

/// The answer to a register.
#[derive(Debug)]
pub struct Registered {
    /// Redis' clock, in ms.
    pub now_ms: u64,
    /// The time until the earliest lease of another worker is over.
    pub next_expiry: Option<Duration>,
}

/// The answer to a renewal.
#[derive(Debug)]
pub struct Renewed {
    /// Redis' clock, in ms.
    pub now_ms: u64,
    /// The time until the earliest lease of another worker is over.
    pub next_expiry: Option<Duration>,
    /// How many workers the queue has, including this one.
    pub workers: usize,
    /// The length of the lease. It is longer than usual if the worker holds nothing and many
    /// workers serve the queue.
    pub lease: Duration,
    /// The tasks that the worker holds according to Redis.
    pub held: Vec<(TaskId, Token)>,
    /// The held tasks that should stop.
    pub stopping: Vec<TaskId>,
    /// The time until a schedule that was made at run time is due.
    pub next_tick: Option<Duration>,
}

impl Broker {
    /// Registers a worker in a queue, with a lease.
    pub async fn register(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        lease: Duration,
        description: &str,
    ) -> Result<Registered, BrokerError> {
        let call = self
            .call(&scripts::REGISTER, queue, worker.as_str())
            .arg(worker)
            .arg(lease.as_millis())
            .arg(description);
        let mut reply = self.run(call).await?;
        Ok(Registered { now_ms: reply.number()?, next_expiry: reply.wait()? })
    }

    /// Returns the call that renews a worker's lease on one queue.
    pub fn renew_call(&self, queue: &QueueName, worker: &WorkerId, lease: Duration) -> ScriptCall {
        self.call(&scripts::RENEW, queue, worker.as_str()).arg(worker).arg(lease.as_millis())
    }

    /// Reads the answer to a renewal.
    pub fn read_renew(queue: &QueueName, mut reply: Reply) -> Result<Renewed, BrokerError> {
        let unexpected =
            |what: &str| BrokerError::UnexpectedReply(format!("renew answered {what:?}"));
        let id = |stored: &str| {
            TaskId::from_stored(queue.clone(), stored).map_err(|_| unexpected(stored))
        };
        let now_ms = reply.number()?;
        let next_expiry = reply.wait()?;
        let workers = reply.number()?;
        let lease = Duration::from_millis(reply.number()?);
        let held = reply
            .texts()?
            .chunks_exact(2)
            .map(|pair| {
                Ok((id(&pair[0])?, Token::parse(&pair[1]).ok_or_else(|| unexpected(&pair[1]))?))
            })
            .collect::<Result<_, BrokerError>>()?;
        let stopping = reply.texts()?.iter().map(|stored| id(stored)).collect::<Result<_, _>>()?;
        let next_tick = reply.wait()?;
        Ok(Renewed { now_ms, next_expiry, workers, lease, held, stopping, next_tick })
    }

    /// Renews a worker's lease on one queue.
    pub async fn renew(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        lease: Duration,
    ) -> Result<Renewed, BrokerError> {
        Self::read_renew(queue, self.run(self.renew_call(queue, worker, lease)).await?)
    }

    /// Removes a worker from a queue, unless it still holds tasks; returns how many it holds.
    pub async fn leave(&self, queue: &QueueName, worker: &WorkerId) -> Result<usize, BrokerError> {
        let call = ScriptCall::new(&scripts::LEAVE, &self.keys(queue), worker.as_str()).arg(worker);
        self.run(call).await?.number()
    }
}
