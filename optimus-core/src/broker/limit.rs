//! `limit`, `acquire` and `repay`.

use std::time::Duration;

use super::{
    Broker, BrokerError,
    inspect::{get, size},
    scripts,
};
use crate::{gate::Gate, id::QueueName, limit::Limit};

/// The result of a call that takes a token or a permit outside tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acquired {
    /// The caller has it.
    Granted,
    /// Nothing is free before this time.
    Wait(Duration),
}

/// How long a caller waits until it asks again, if a permit must be given back before.
const ASK_AGAIN: Duration = Duration::from_millis(200);

impl Broker {
    /// Sets the limit of a gate at run time; `None` removes what was set.
    pub async fn set_limit(
        &self,
        queue: &QueueName,
        gate: &Gate,
        limit: Option<&Limit>,
    ) -> Result<(), BrokerError> {
        let call = self.call(&scripts::LIMIT, queue, "").arg(gate.stored());
        let call = call.arg(limit.map(stored_limit).unwrap_or_default());
        self.run_surely(call).await.map(drop)
    }

    /// Stops the starts of a gate's tasks until it is resumed. `true` if the queue was used before.
    pub async fn pause_gate(
        &self,
        queue: &QueueName,
        gate: &Gate,
        by: &str,
        why: &str,
    ) -> Result<bool, BrokerError> {
        let by = by.replace(['\n', '\r'], " ");
        let call = self.call(&scripts::PAUSE, queue, "").arg(1).arg(gate.stored());
        self.run_surely(call.arg(by).arg(why)).await?.flag()
    }

    /// Ends a pause of a gate, also one that a task asked for. `true` if the queue was used before.
    pub async fn resume_gate(&self, queue: &QueueName, gate: &Gate) -> Result<bool, BrokerError> {
        let call = self.call(&scripts::PAUSE, queue, "").arg(0).arg(gate.stored());
        self.run_surely(call.arg("").arg("")).await?.flag()
    }

    /// Takes tokens and a permit of a gate. A call that is repeated under the same permit takes
    /// nothing more. The permit ends after the lease, unless it is renewed or given back before.
    pub async fn acquire(
        &self,
        queue: &QueueName,
        gate: &Gate,
        cost: u32,
        permit: &str,
        lease: Duration,
    ) -> Result<Acquired, BrokerError> {
        let call = self.call(&scripts::ACQUIRE, queue, "").arg(gate.stored()).arg(cost.max(1));
        let mut reply = self.run_surely(call.arg(permit).arg(lease.as_millis())).await?;
        Ok(match reply.wait()? {
            Some(Duration::ZERO) => Acquired::Granted,
            Some(wait) => Acquired::Wait(wait),
            None => Acquired::Wait(ASK_AGAIN),
        })
    }

    /// Renews a permit. `false` if it has ended.
    pub async fn renew_permit(
        &self,
        queue: &QueueName,
        gate: &Gate,
        permit: &str,
        lease: Duration,
    ) -> Result<bool, BrokerError> {
        let call = self.call(&scripts::REPAY, queue, "").arg(gate.stored()).arg(permit);
        self.run_surely(call.arg(lease.as_millis())).await?.flag()
    }

    /// Gives a permit back.
    pub async fn give_back(
        &self,
        queue: &QueueName,
        gate: &Gate,
        permit: &str,
    ) -> Result<(), BrokerError> {
        let call = self.call(&scripts::REPAY, queue, "").arg(gate.stored()).arg(permit).arg("");
        self.run_surely(call).await.map(drop)
    }

    /// Returns whether a gate has tasks that are stored elsewhere than in its own keys: the queue's
    /// tasks, or those of the lane.
    pub async fn gate_has_tasks(
        &self,
        queue: &QueueName,
        gate: &Gate,
    ) -> Result<bool, BrokerError> {
        let keys = self.keys(queue);
        let commands = match gate {
            Gate::Queue => {
                vec![get(&["HLEN", &keys.of("tasks")]), get(&["LLEN", &keys.of("success")])]
            }
            Gate::Lane(key) => vec![get(&["ZCARD", &keys.of(&format!("lane:{key}"))])],
            _ => Vec::new(),
        };
        let mut count = 0;
        for answer in self.read(commands).await {
            count += size(&answer?);
        }
        Ok(count > 0)
    }
}

/// Writes `<interval of the rate in µs>:<burst>:<max working>`; 0 is none.
fn stored_limit(limit: &Limit) -> String {
    let interval_us = limit.rate.map_or(0, |rate| rate.interval_us());
    let burst = limit.rate.map_or(0, |_| limit.burst_limit());
    format!("{interval_us}:{burst}:{}", limit.max_working.unwrap_or(0))
}
