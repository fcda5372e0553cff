//! A permit of a limit outside tasks: [`Permit`], and the request for one: [`PermitRequest`].

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};

use super::gate_handle::LEASE;
use crate::{
    broker::{Acquired, Broker, BrokerError},
    gate::Gate,
    id::QueueName,
    platform::new_uuid,
};

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
    /// Renews the lease of a granted permit until it is dropped. A request that Redis has answered
    /// twice was granted at the first one, so the lease counts from when it was sent.
    fn keep(kept: Kept, sent: Instant) -> Self {
        let (held, dropped) = oneshot::channel();
        let (gate, is_lost) = (kept.gate.clone(), kept.is_lost.clone());
        Self { gate, is_lost, held, renewal: tokio::spawn(kept.until(sent, dropped)) }
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

/// A request for a permit. If it is dropped before its answer, or has none, Redis may have granted
/// the permit, so it is given back.
pub(super) struct PermitRequest {
    /// `None` once the permit is granted.
    kept: Option<Kept>,
    may_be_granted: bool,
}

impl PermitRequest {
    pub(super) fn new(broker: Broker, queue: QueueName, gate: Gate) -> Self {
        let name = new_uuid().simple().to_string();
        let kept = Kept { broker, queue, gate, name, is_lost: Arc::default() };
        Self { kept: Some(kept), may_be_granted: false }
    }

    /// Asks once. Returns the permit, or how long to wait.
    pub(super) async fn ask(&mut self, cost: u32) -> Result<Result<Permit, Duration>, BrokerError> {
        let Some(Kept { broker, queue, gate, name, .. }) = &self.kept else {
            unreachable!("nobody asks again for a permit that is granted")
        };
        self.may_be_granted = true;
        let sent = Instant::now();
        let answer = broker.acquire(queue, gate, cost, name, LEASE).await?;
        self.may_be_granted = false;
        Ok(match answer {
            Acquired::Granted => Ok(Permit::keep(self.kept.take().expect("it is there"), sent)),
            Acquired::Wait(wait) => Err(wait),
        })
    }
}

impl Drop for PermitRequest {
    fn drop(&mut self) {
        if let Some(kept) = self.kept.take()
            && self.may_be_granted
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(kept.give_back_until(Instant::now() + LEASE));
        }
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
    async fn until(self, sent: Instant, mut dropped: oneshot::Receiver<()>) {
        let mut ends = sent + LEASE;
        let mut wait = (sent + LEASE / 3).saturating_duration_since(Instant::now());
        while timeout(wait, &mut dropped).await.is_err() {
            let sent = Instant::now();
            let renewed = tokio::select! {
                biased;
                _ = &mut dropped => break,
                // Redis may not answer for longer than the lease.
                renewed = timeout_at(ends, self.renew()) => renewed.ok().flatten(),
            };
            wait = match renewed {
                Some(true) => {
                    ends = sent + LEASE;
                    LEASE / 3
                }
                None if Instant::now() < ends => AGAIN.min(ends - Instant::now()),
                _ => {
                    self.is_lost.store(true, Ordering::Relaxed);
                    return;
                }
            };
        }
        self.give_back_until(ends).await;
    }

    /// Gives the permit back, unless its lease is over before.
    async fn give_back_until(self, ends: Instant) {
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

#[cfg(test)]
mod tests {
    use optimus_testkit::RedisServer;

    use super::*;
    use crate::{client::Client, limit::Limit};

    #[tokio::test]
    async fn a_permit_is_lost_at_the_end_of_its_lease_if_redis_does_not_answer() {
        let server = RedisServer::start();
        let client = Client::builder(&server.url()).connect().await.unwrap();
        let gate = client.limit("x");
        gate.set(Limit::new().max_working(1)).await.unwrap();
        let permit = gate.acquire().await.unwrap();
        server.pause();
        tokio::time::pause();
        tokio::time::sleep(LEASE + Duration::from_millis(5)).await;
        assert!(permit.is_lost());
        tokio::time::resume();
        server.resume();
    }
}
