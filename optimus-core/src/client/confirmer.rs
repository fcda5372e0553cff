//! Submits that are answered after Redis has confirmed them: [`Confirmer`].

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::{
    broker::{Batch, Broker, BrokerError, Reply, ScriptCall, Submitted},
    durability::Durability,
};

/// The maximum number of calls that one wait covers. It must be below the number of slots of the
/// ledger.
pub(super) const CALLS_MAX: usize = 12;
/// The longest wait, after which the calls are sent again. It is shorter than the time for an
/// answer.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Sends calls over its own connection. All calls that arrive during a wait share the next one.
#[derive(Clone)]
pub(super) struct Confirmer {
    broker: Broker,
    asks: mpsc::Sender<Ask>,
}

struct Ask {
    call: ScriptCall,
    answer: oneshot::Sender<Result<Reply, BrokerError>>,
}

impl Confirmer {
    /// Starts a confirmer over a connection of `broker` that nothing else uses.
    pub(super) fn spawn(broker: Broker, durability: Durability, timeout: Duration) -> Self {
        let (asks, inbox) = mpsc::channel(CALLS_MAX);
        let timeout = timeout.min(WAIT_MAX);
        tokio::spawn(carry(broker.within(timeout), durability, timeout, inbox));
        Self { broker, asks }
    }

    /// Returns how many connections of the confirmer were dropped so far.
    pub(super) fn breaks(&self) -> u64 {
        self.broker.breaks()
    }

    /// Submits a batch; returns `Unknown` if the batch was stored and not confirmed.
    pub(super) async fn submit(&self, batch: &Batch<'_>) -> Result<Submitted, BrokerError> {
        let (answer, answered) = oneshot::channel();
        let call = self.broker.submit_call(batch);
        // If the channel is closed, the answer's sender is dropped.
        drop(self.asks.send(Ask { call, answer }).await);
        let ended = |_| BrokerError::Unknown("the client's runtime has ended".into());
        Broker::read_submit(batch.queue, batch.tasks.len(), answered.await.map_err(ended)??)
    }
}

async fn carry(
    broker: Broker,
    durability: Durability,
    timeout: Duration,
    mut inbox: mpsc::Receiver<Ask>,
) {
    let mut round = Vec::new();
    while inbox.recv_many(&mut round, CALLS_MAX).await > 0 {
        let (calls, waiting): (Vec<_>, Vec<_>) =
            round.drain(..).map(|ask| (ask.call, ask.answer)).unzip();
        let answers = broker.run_confirmed(&calls, durability, timeout).await;
        for (waiting, answer) in waiting.into_iter().zip(answers) {
            // The receiver may be gone, because the client was dropped.
            drop(waiting.send(answer));
        }
    }
}
