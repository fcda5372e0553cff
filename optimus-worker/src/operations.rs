//! Carries on operations on many tasks that nobody else carries on.

use std::{sync::Arc, time::Duration};

use optimus_core::{
    Carrier, Operation, OperationError, OperationState, Operations,
    broker::{Broker, BrokerError},
    interval, log_event,
};

use crate::{role::Role, shared::Shared};

/// The workers of a queue together look once in this time for an operation without a carrier.
const AVERAGE: Duration = Duration::from_secs(120);
/// No worker waits longer, so that an operation goes on within three minutes.
const LONGEST: Duration = Duration::from_secs(170);

/// The role that carries operations on. A step changes up to 32 tasks and rests by itself.
pub(crate) struct CarriesOn {
    shared: Arc<Shared>,
    broker: Broker,
    /// The operation under way here.
    carrier: Option<(String, Carrier)>,
    /// Whether it has waited once. A worker that has just started has other work.
    has_rested: bool,
}

impl CarriesOn {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let broker = shared.maintenance.clone();
        Self { shared, broker, carrier: None, has_rested: false }
    }

    /// Lets another process go on at once.
    pub(crate) async fn leave(self) {
        if let Some((_, carrier)) = self.carrier {
            carrier.leave().await;
        }
    }

    /// Finds an operation, unless there is one under way here.
    async fn find(&self) -> Result<Option<(String, Carrier)>, BrokerError> {
        let found = self.broker.operation_carried(&Broker::operations_slot()).await?;
        Ok(found.map(|id| {
            let carrier = Operations::of(&self.broker).carrier(&id);
            (id, carrier)
        }))
    }

    /// Takes one step. Returns whether another one follows.
    async fn carry_on(&mut self) -> Result<bool, OperationError> {
        let Some((id, mut carrier)) = self.carrier.take() else { return Ok(false) };
        let operation = carrier.step().await?;
        if carrier.is_held() {
            self.carrier = Some((id, carrier));
            return Ok(true);
        }
        self.log_end(&operation);
        Ok(false)
    }

    /// Logs an operation that is over. Its texts are those of people, so they are not logged.
    fn log_end(&self, operation: &Operation) {
        if operation.state == OperationState::Done || operation.state == OperationState::Failed {
            let (id, state) = (operation.id.clone(), operation.state);
            let (done, refused, gone) = (operation.done, operation.refused, operation.gone);
            log_event!(
                self.shared.log,
                INFO,
                operation = %id,
                %state,
                done,
                refused,
                gone,
                "an operation on many tasks is over"
            );
        }
    }
}

impl Role for CarriesOn {
    async fn tick(&mut self) -> Duration {
        let rest = interval(AVERAGE, self.shared.queues.peers(), fastrand::f64()).min(LONGEST);
        if !std::mem::replace(&mut self.has_rested, true) {
            return rest;
        }
        let log = &self.shared.log;
        if self.carrier.is_none() {
            match self.find().await {
                Ok(found) => self.carrier = found,
                Err(problem) => {
                    log_event!(log, DEBUG, error = %problem, "could not look for operations");
                }
            }
        }
        match self.carry_on().await {
            Ok(true) => Duration::ZERO,
            Ok(false) => rest,
            Err(problem) => {
                let text = "could not carry on an operation; a worker will";
                log_event!(self.shared.log, DEBUG, error = %problem, "{text}");
                rest
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use optimus_core::{OperationAct, OperationFilter, Task, TaskState};

    use super::*;
    use crate::test_worker::{Nothing, idle_worker};

    #[tokio::test]
    async fn a_worker_carries_on_an_operation_that_nobody_carries_on() {
        let (client, shared) = idle_worker("operation-without-a-carrier").await;
        for _ in 0..300 {
            client.submit(Nothing {}.call()).await.unwrap();
        }
        let operations = client.operations();
        let filter = OperationFilter::of(TaskState::Ready).queue("default").unwrap();
        let counted = operations.count(OperationAct::Cancel, filter, "ann").await.unwrap();
        operations.confirm(&counted.id, 300, "").await.unwrap();
        let mut role = CarriesOn::new(shared);
        assert!(role.tick().await <= LONGEST, "it has other work at first");
        let mut ticks = 0;
        while role.tick().await.is_zero() {
            ticks += 1;
        }
        assert!(ticks > 1, "each turn changes some");
        let done = operations.get(&counted.id).await.unwrap().unwrap();
        assert_eq!((done.state, done.done), (OperationState::Done, 300));
        assert!(!role.tick().await.is_zero(), "there is no other");
    }
}
