//! Sends a batch to Redis until it is answered: [`Delivery`].

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::confirmer::Confirmer;
use crate::{
    Error,
    broker::{Batch, Broker, BrokerError, Submitted},
    id::QueueName,
};

/// How long after its deadline a call that was sent may still be answered.
const ANSWERED_WITHIN: Duration = Duration::from_millis(500);
const RESEND_FIRST: Duration = Duration::from_millis(20);
const RESEND_MAX: Duration = Duration::from_secs(1);

/// Sends batches to Redis.
#[derive(Clone)]
pub(super) struct Delivery {
    pub(super) broker: Broker,
    pub(super) confirmer: Option<Confirmer>,
}

impl Delivery {
    /// Returns how many connections were dropped so far.
    pub(super) fn breaks(&self) -> u64 {
        self.broker.breaks() + self.confirmer.as_ref().map_or(0, Confirmer::breaks)
    }

    /// Makes a queue known to inspectors; returns whether that succeeded.
    pub(super) async fn announce(&self, queue: &QueueName, deadline: Instant) -> bool {
        let quickly = self.broker.within(Duration::ZERO);
        let announced = timeout_at(deadline + ANSWERED_WITHIN, quickly.announce(queue)).await;
        matches!(announced, Ok(Ok(())))
    }

    /// Sends a batch, repeatedly under the same number, until it is answered or the deadline is
    /// over. If a connection broke after the batch was numbered, even during another call, the
    /// request also asks Redis to keep the ledger: a failover may have lost that mark.
    pub(super) async fn send_until(
        &self,
        deadline: Instant,
        batch: &Batch<'_>,
        breaks: u64,
        sent: &mut u32,
    ) -> Result<Submitted, Error> {
        let (mut maybe_done, mut wait) = (None, RESEND_FIRST);
        let mut batch = *batch;
        loop {
            batch.keep |= self.breaks() != breaks;
            *sent += 1;
            let answer = timeout_at(deadline + ANSWERED_WITHIN, self.send_once(deadline, &batch));
            let problem = match answer.await {
                Ok(Ok(submitted)) => return Ok(submitted),
                Ok(Err(problem)) => problem,
                Err(_) => BrokerError::Unknown("Redis did not answer in time".into()),
            };
            if let BrokerError::Unknown(why) = &problem {
                maybe_done = Some(why.clone());
            }
            if !problem.is_transient() || Instant::now() + wait >= deadline {
                let ids = || batch.tasks.iter().map(|task| task.id.clone()).collect();
                return Err(match maybe_done {
                    Some(why) => Error::unknown_outcome(ids(), why),
                    None => problem.into(),
                });
            }
            tokio::time::sleep(wait.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            wait = (wait * 2).min(RESEND_MAX);
        }
    }

    async fn send_once(
        &self,
        deadline: Instant,
        batch: &Batch<'_>,
    ) -> Result<Submitted, BrokerError> {
        match &self.confirmer {
            None => {
                let left = deadline.saturating_duration_since(Instant::now());
                self.broker.within(left).submit(batch).await
            }
            Some(confirmer) => confirmer.submit(batch).await,
        }
    }
}
