//! Renews the leases, and learns what became of what the worker holds.

use std::{collections::HashSet, sync::Arc, time::Duration};

use optimus_core::{
    Lease, TaskId, Token, WorkerId,
    broker::{Broker, BrokerError, Give, Refusal, Release, Renewed},
};
use tokio::time::Instant;

use crate::{
    attempts::{Attempt, Stop},
    executor,
    judge::Report,
    queues::Served,
    role::Role,
    shared::Shared,
    start::new_worker_id,
};

/// Three heartbeats a lease: one may get lost.
const BEATS_PER_LEASE: u32 = 3;
/// A heartbeat that takes more than this part of a lease is told of.
const SLOW_PART: u32 = 10;
const AGAIN: Duration = Duration::from_millis(250);

/// The role behind the worker's life.
pub(crate) struct Heartbeat {
    shared: Arc<Shared>,
    broker: Broker,
}

/// What the worker held in one queue before the heartbeat was sent.
struct Before {
    worker: WorkerId,
    heard_seq: u64,
    attempts: Vec<Arc<Attempt>>,
}

impl Heartbeat {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let broker = shared.maintenance.clone();
        Self { shared, broker }
    }

    /// For each queue. A claim's answer that comes in after this can only add to what is held,
    /// never be missed: the attempts are looked at last.
    fn befores(&self) -> Vec<Before> {
        let before = |queue: &Served| {
            let (worker, heard_seq) = (queue.worker(), queue.heard_seq());
            Before { worker, heard_seq, attempts: Vec::new() }
        };
        let mut befores: Vec<Before> = self.shared.queues.iter().map(before).collect();
        for attempt in self.shared.attempts.snapshot() {
            let place = self.shared.queues.place(attempt.lease.id.queue());
            if let Some(before) = place.map(|place| &mut befores[place])
                && before.worker == attempt.lease.worker
            {
                before.attempts.push(attempt);
            }
        }
        befores
    }

    async fn beat(&self) -> bool {
        let lease = self.shared.config.lease;
        let sent_at = Instant::now();
        let befores = self.befores();
        let calls = self
            .shared
            .queues
            .iter()
            .zip(&befores)
            .map(|(queue, before)| self.broker.renew_call(&queue.name, &before.worker, lease));
        let answers = tokio::time::timeout(lease / 2, self.broker.run_all(calls.collect())).await;
        let Ok(answers) = answers else {
            self.broker.reconnect().await;
            return false;
        };
        let mut worked = true;
        for ((queue, before), answer) in self.shared.queues.iter().zip(befores).zip(answers) {
            match answer.and_then(|reply| Broker::read_renew(&queue.name, reply)) {
                Ok(renewed) => {
                    let was_certain = queue.lease_is_certain(lease);
                    queue.renewed(sent_at);
                    if !was_certain {
                        // Nothing was claimed meanwhile.
                        queue.hint();
                    }
                    queue.set_next_expiry(renewed.next_expiry);
                    self.reconcile(&before, &renewed);
                }
                Err(problem) if problem.refusal() == Some(Refusal::Lapsed) => {
                    worked &= self.take_new_id(queue, &before).await;
                }
                Err(problem) => worked &= missed(&problem),
            }
        }
        self.shared.wakeups.expiry_learned();
        worked
    }

    /// Compares Redis' account with the worker's own.
    fn reconcile(&self, before: &Before, renewed: &Renewed) {
        for (id, token) in &renewed.held {
            let known = self.shared.attempts.holds(id, token.fence)
                || self.shared.suspects.holds(id, token.fence);
            if !known && token.seq <= before.heard_seq {
                // Its claim's answer never came in; or it was just reported, and this is refused.
                let lease = Lease { id: id.clone(), worker: before.worker.clone(), token: *token };
                let give = Give::Head;
                self.shared.reporter.push(Report::Release(Release { lease, give }));
            }
        }
        let held: HashSet<(&TaskId, Token)> =
            renewed.held.iter().map(|(id, token)| (id, *token)).collect();
        let stopping: HashSet<&TaskId> = renewed.stopping.iter().collect();
        executor::let_go(&self.shared, |lease| stopping.contains(&lease.id));
        for attempt in &before.attempts {
            let id = &attempt.lease.id;
            if stopping.contains(id) {
                attempt.stop(Stop::Cancelled);
            }
            if !attempt.is_settled() && !held.contains(&(id, attempt.lease.token)) {
                tracing::warn!(%id, "the lease is another's by now; the handler must stop");
                attempt.stop(Stop::Lost);
            }
        }
    }

    /// The lease is over and was reaped. Nothing that was sent under the old id may still count.
    async fn take_new_id(&self, queue: &Served, before: &Before) -> bool {
        let (worker, registered_at) = (new_worker_id(), Instant::now());
        let (old, new) = (&before.worker, &worker);
        tracing::warn!(queue = %queue.name, %old, %new, "the lease is over");
        let registered = self
            .broker
            .register(&queue.name, &worker, self.shared.config.lease, &self.shared.description)
            .await;
        match registered {
            Ok(registered) => {
                for attempt in &before.attempts {
                    attempt.stop(Stop::Lost);
                }
                queue.replace_worker(worker, registered_at);
                queue.set_next_expiry(registered.next_expiry);
                queue.hint();
                true
            }
            Err(problem) => missed(&problem),
        }
    }
}

impl Role for Heartbeat {
    async fn tick(&mut self) -> Duration {
        let lease = self.shared.config.lease;
        let began_at = Instant::now();
        let worked = self.beat().await;
        let took = began_at.elapsed();
        if worked && took > lease / SLOW_PART {
            let held = self.shared.attempts.len();
            tracing::warn!(
                ?took,
                ?lease,
                held,
                "a heartbeat was slow; at a third of the lease, leases are lost: use a longer \
                 lease or less concurrency"
            );
        }
        let interval = lease / BEATS_PER_LEASE;
        if worked { interval.mul_f64(0.9 + fastrand::f64() / 10.0) } else { AGAIN.min(interval) }
    }
}

/// Always `false`: the heartbeat was not acknowledged.
fn missed(problem: &BrokerError) -> bool {
    if !problem.is_transient() {
        tracing::error!(%problem, "a heartbeat was rejected");
    }
    false
}

#[cfg(test)]
#[path = "heartbeat_tests.rs"]
mod tests;
