//! Renews the leases: [`Heartbeat`]. Each queue has its own answer: a failure in one does not
//! affect the others.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use optimus_core::{
    broker::{Broker, BrokerError, Refusal, Renewed},
    log::Log,
    log_event,
};
use tokio::time::{Instant, timeout};

use crate::{
    attempts::Stop,
    outcome_log,
    reconcile::{Before, befores, reconcile},
    role::Role,
    served_queue::Served,
    shared::Shared,
    standing::BEATS_PER_LEASE,
    worker_start::new_worker_id,
};

/// The shortest time between two heartbeats, as a fraction of a third of the lease.
const USUAL_LEAST: f64 = 0.9;
/// The same fraction for long leases. The workers with long leases share the heartbeats of a queue,
/// so they must not all send them at the same time, as workers that start together do at first.
const LONG_LEAST: f64 = 0.8;
const FIRST_LEAST: f64 = 0.1;
/// A heartbeat that takes longer than this fraction of a lease is logged.
const SLOW_PART: u32 = 10;
/// With at least this many tasks, the length of the answer may be the reason that a heartbeat takes
/// long.
const MANY_HELD: usize = 1_000;
/// How soon a queue has its next heartbeat after a failed one. Queues whose heartbeats are due
/// within this time share one write.
const AGAIN: Duration = Duration::from_millis(250);

/// The role that renews the worker's leases.
pub(crate) struct Heartbeat {
    shared: Arc<Shared>,
    broker: Broker,
    /// The time of the next heartbeat of each queue.
    next_at: Vec<Instant>,
    /// Whether each queue's lease was longer than usual at its last heartbeat.
    is_long: Vec<bool>,
}

impl Heartbeat {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let (broker, now) = (shared.maintenance.clone(), Instant::now());
        let next_at: Vec<Instant> = shared.queues.iter().map(|_| now).collect();
        let is_long = vec![false; next_at.len()];
        Self { shared, broker, next_at, is_long }
    }

    /// Returns the queues whose heartbeat is due now or soon. Returns none if the role was woken
    /// only because a heartbeat is due earlier than before.
    fn due(&mut self, now: Instant) -> Vec<usize> {
        for (next_at, queue) in self.next_at.iter_mut().zip(&self.shared.queues) {
            *next_at = queue.take_beat_at().map_or(*next_at, |at| at.min(*next_at));
        }
        let soon = now + AGAIN.min(self.shared.config.lease / BEATS_PER_LEASE);
        if self.next_at.iter().all(|at| *at > now) {
            return Vec::new();
        }
        (0..self.next_at.len()).filter(|at| self.next_at[*at] <= soon).collect()
    }

    /// Sends one heartbeat for these queues, with one write and one deadline. Returns for each
    /// queue whether its heartbeat was acknowledged.
    async fn beat(&self, places: &[usize]) -> Vec<bool> {
        let (lease, sent_at) = (self.shared.config.lease, Instant::now());
        let mut befores: Vec<Option<Before>> =
            befores(&self.shared).into_iter().map(Some).collect();
        let asked: Vec<(&Served, Before)> = places
            .iter()
            .filter_map(|at| Some((&self.shared.queues[*at], befores[*at].take()?)))
            .collect();
        let calls = asked
            .iter()
            .map(|(queue, before)| self.broker.renew_call(&queue.name, &before.worker, lease));
        let Ok(answers) = timeout(lease / 2, self.broker.run_all(calls.collect())).await else {
            self.broker.reconnect();
            return vec![false; places.len()];
        };
        let mut worked = vec![true; places.len()];
        let mut lapsed = Vec::new();
        for (nth, ((queue, before), answer)) in asked.into_iter().zip(answers).enumerate() {
            match answer.and_then(|reply| Broker::read_renew(&queue.name, reply)) {
                Ok(renewed) => self.take_in(queue, sent_at, &before, &renewed),
                Err(problem) if problem.refusal() == Some(Refusal::Lapsed) => {
                    lapsed.push((nth, queue, before));
                }
                Err(problem) => worked[nth] = missed(&self.shared.log, queue, problem),
            }
        }
        self.shared.wakeups.expiry_learned();
        self.log_lapsed(&lapsed);
        // New ids are taken after the answers, and for all queues at once, so that no queue waits
        // for another.
        let replacing = lapsed.iter().map(|(_, queue, before)| {
            let registering = self.take_new_id(queue, before);
            async { timeout(lease / 2, registering).await.unwrap_or(false) }
        });
        let replaced = join_all(replacing).await;
        for ((nth, ..), replaced) in lapsed.iter().zip(replaced) {
            worked[*nth] = replaced;
            self.shared.wakeups.expiry_learned();
        }
        worked
    }

    fn take_in(&self, queue: &Served, sent_at: Instant, before: &Before, renewed: &Renewed) {
        let was_certain = queue.lease_is_certain();
        queue.renewed(sent_at, renewed.lease, before.grants);
        if !was_certain {
            // The worker sent no claim while its lease was uncertain, so the queue may have work.
            queue.hint();
        }
        queue.set_next_expiry(renewed.next_expiry);
        queue.set_workers(renewed.workers);
        reconcile(&self.shared, before, renewed);
    }

    /// Logs one event for all queues. The event names the queue in which the worker held the most
    /// tasks.
    fn log_lapsed(&self, lapsed: &[(usize, &Served, Before)]) {
        let most = lapsed.iter().max_by_key(|(_, _, before)| before.attempts.len());
        let Some((_, most, before)) = most else { return };
        let (queues, queue, worker) = (lapsed.len(), most.name.clone(), before.worker.clone());
        let held: usize = lapsed.iter().map(|(_, _, before)| before.attempts.len()).sum();
        log_event!(
            self.shared.log,
            WARN,
            queues,
            %queue,
            %worker,
            held,
            "Redis no longer knows this worker: its lease is over, or Redis lost data; the tasks \
             that the worker held there are no longer its own, and it continues under a new id"
        );
    }

    /// Takes a new id after the lease was reaped. Answers to calls under the old id must not count.
    async fn take_new_id(&self, queue: &Served, before: &Before) -> bool {
        let (worker, registered_at) = (new_worker_id(&self.shared.config), Instant::now());
        let registered = self
            .broker
            .register(&queue.name, &worker, self.shared.config.lease, &self.shared.description)
            .await;
        match registered {
            Ok(registered) => {
                for attempt in &before.attempts {
                    attempt.stop(Stop::Lost);
                }
                queue.replace_worker(worker, registered_at, self.shared.config.lease);
                queue.set_next_expiry(registered.next_expiry);
                queue.hint();
                // The queue may have been removed because it was unused.
                if let Err(problem) = self.broker.announce(&queue.name).await {
                    let (log, name) = (&self.shared.log, queue.name.clone());
                    let text = "could not announce the queue";
                    log_event!(log, DEBUG, queue = %name, error = %problem, "{text}");
                }
                true
            }
            Err(problem) => missed(&self.shared.log, queue, problem),
        }
    }
}

impl Role for Heartbeat {
    async fn tick(&mut self) -> Duration {
        let lease = self.shared.config.lease;
        let (began_at, connects) = (Instant::now(), self.broker.connects());
        let places = self.due(began_at);
        let worked = if places.is_empty() { Vec::new() } else { self.beat(&places).await };
        let took = began_at.elapsed();
        // A wait for a connection is not logged here, because the outage itself is logged.
        let is_connected = self.broker.connects() == connects;
        if worked.contains(&true) && is_connected && took > lease / SLOW_PART {
            log_slow(&self.shared, took);
        }
        let (now, chance) = (Instant::now(), fastrand::f64());
        for (at, worked) in places.into_iter().zip(worked) {
            let given = self.shared.queues[at].lease_to_keep(lease);
            let interval = given / BEATS_PER_LEASE;
            let was_long = std::mem::replace(&mut self.is_long[at], given > lease);
            let enough = match (given > lease, was_long) {
                (false, _) => USUAL_LEAST,
                (true, true) => LONG_LEAST,
                (true, false) => FIRST_LEAST,
            };
            let wait = interval.mul_f64(enough + (1.0 - enough) * chance);
            self.next_at[at] = now + if worked { wait } else { AGAIN.min(interval) };
        }
        let first = self.next_at.iter().min().copied().unwrap_or(now + lease);
        first.saturating_duration_since(now)
    }
}

/// Logs that the answer to a heartbeat took long. The event includes advice for the likely cause.
fn log_slow(shared: &Shared, took: Duration) {
    let (held, lease) = (shared.attempts.len(), shared.config.lease);
    let (took_ms, lease_ms) = (outcome_log::millis(took), outcome_log::millis(lease));
    let text = if held >= MANY_HELD {
        "a heartbeat for so many tasks took long; if a heartbeat takes a third of the lease, \
         leases end: run fewer tasks at once in each worker, or set a longer lease"
    } else {
        "Redis took long to answer a heartbeat; if an answer takes a third of the lease, leases \
         end: find out why Redis, the network or this machine is slow (SLOWLOG, latency, CPU)"
    };
    log_event!(shared.log, WARN, took_ms, lease_ms, held, "{text}");
}

/// Logs that Redis rejected a heartbeat. Returns `false`, because the heartbeat was not
/// acknowledged.
fn missed(log: &Log, queue: &Served, problem: BrokerError) -> bool {
    if !problem.is_transient() {
        let name = queue.name.clone();
        log_event!(log, ERROR, queue = %name, error = %problem, "Redis rejected a heartbeat");
    }
    false
}

#[cfg(test)]
#[path = "heartbeat_tests.rs"]
mod tests;
