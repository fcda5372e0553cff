//! A permit of a limit outside tasks: [`Permit`].

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, timeout},
};

use super::gate_handle::LEASE;
use crate::{broker::Broker, gate::Gate, id::QueueName};

/// How long after a request that failed the next one follows.
const AGAIN: Duration = Duration::from_millis(250);

/// A permit of a [limit](crate::Client::limit). It is given back when it is dropped, and
/// at most 30 s after its process has died.
#[must_use = "a permit that is dropped is given back at once"]
pub struct Permit {
    gate: Gate,
    is_lost: Arc<AtomicBool>,
    /// Dropped to give the permit back.
    held: oneshot::Sender<()>,
    renewal: JoinHandle<()>,
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("gate", &self.gate).finish_non_exhaustive()
    }
}

impl Permit {
    /// Renews the lease of a granted permit until it is dropped.
    pub(super) fn keep(broker: Broker, queue: QueueName, gate: Gate, name: String) -> Self {
        let (held, dropped) = oneshot::channel();
        let is_lost = Arc::new(AtomicBool::new(false));
        let kept = Kept { broker, queue, gate: gate.clone(), name, is_lost: is_lost.clone() };
        Self { gate, is_lost, held, renewal: tokio::spawn(kept.until(dropped)) }
    }

    /// Returns whether the permit was lost: Redis could not be reached for 30 s, or has lost its
    /// data. Another holder may have the permit.
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// Gives the permit back, and waits until this is done or its lease is over.
    pub async fn give_back(self) {
        drop(self.held);
        // An error means that the runtime ends; then the lease ends the permit.
        drop(self.renewal.await);
    }
}

/// What the renewal of a permit needs.
struct Kept {
    broker: Broker,
    queue: QueueName,
    gate: Gate,
    name: String,
    is_lost: Arc<AtomicBool>,
}

impl Kept {
    async fn until(self, mut dropped: oneshot::Receiver<()>) {
        let (mut ends, mut wait) = (Instant::now() + LEASE, LEASE / 3);
        while timeout(wait, &mut dropped).await.is_err() {
            let sent = Instant::now();
            wait = match self.renew().await {
                Some(true) => {
                    ends = sent + LEASE;
                    LEASE / 3
                }
                None if Instant::now() < ends => AGAIN,
                _ => {
                    self.is_lost.store(true, Ordering::Relaxed);
                    return;
                }
            };
        }
        while self.give_back().await.is_none() && Instant::now() < ends {
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Returns whether the permit was still granted; `None` if Redis did not answer.
    async fn renew(&self) -> Option<bool> {
        let Self { broker, queue, gate, name, .. } = self;
        broker.renew_permit(queue, gate, name, LEASE).await.ok()
    }

    async fn give_back(&self) -> Option<()> {
        let Self { broker, queue, gate, name, .. } = self;
        broker.give_back(queue, gate, name).await.ok()
    }
}
