//! Renews the leases: [`Heartbeat`]. Each queue has its own answer: a failure in one does not
//! affect the others.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::join_all;
use optimus_core::{
    WorkerId,
    broker::{Broker, BrokerError, Refusal, Renewed},
    log_event,
};
use tokio::time::{Instant, timeout};

use crate::{
    attempts::Stop,
    declared_history,
    lease_state::BEATS_PER_LEASE,
    outcome_log,
    reconcile::{Before, befores, reconcile},
    rejections::Rejections,
    role::Role,
    served_queue::Served,
    shared::Shared,
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
    rejected: Rejections,
    /// The latest id of the worker. A queue may still know it under an earlier one.
    latest: Mutex<WorkerId>,
    /// How many connections there had been at the last heartbeat that was answered.
    connects: u64,
}

/// A queue whose heartbeat was sent: its position, and what the worker held there before.
struct Asked<'a> {
    at: usize,
    queue: &'a Served,
    before: Before,
}

/// Whether a queue's heartbeat was acknowledged, by its position.
type Answer = (usize, Result<(), BrokerError>);

impl Heartbeat {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let (broker, now) = (shared.maintenance.clone(), Instant::now());
        let next_at: Vec<Instant> = shared.queues.iter().map(|_| now).collect();
        let is_long = vec![false; next_at.len()];
        let (rejected, latest) = (Rejections::of("heartbeats"), Mutex::new(shared.member.clone()));
        Self { shared, broker, next_at, is_long, rejected, latest, connects: 0 }
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

    /// Sends heartbeats for these queues. If Redis does not know the worker in one of them, it may
    /// have lost all data. Then this sends heartbeats for the other queues, too, so that one event
    /// counts the tasks of all queues.
    async fn beat(&self, places: &[usize]) -> Vec<Answer> {
        let (mut answers, mut lapsed) = self.send(places).await;
        if !lapsed.is_empty() && places.len() < self.next_at.len() {
            let others: Vec<usize> =
                (0..self.next_at.len()).filter(|at| !places.contains(at)).collect();
            let (more_answers, more_lapsed) = self.send(&others).await;
            answers.extend(more_answers);
            lapsed.extend(more_lapsed);
        }
        self.shared.wakeups.expiry_learned();
        self.log_lapsed(&lapsed);
        // The new id is taken after the answers, and in all queues at once, so that no queue waits
        // for another.
        let (within, worker) = (self.shared.config.lease / 2, self.next_id(&lapsed));
        let replacing = lapsed.iter().map(|asked| {
            let registering = self.take_new_id(asked.queue, &asked.before, worker.clone());
            async { timeout(within, registering).await.unwrap_or_else(|_| Err(late())) }
        });
        let replaced = join_all(replacing).await;
        if replaced.iter().any(Result::is_ok) {
            self.shared.wakeups.registered_again();
        }
        for (asked, replaced) in lapsed.iter().zip(replaced) {
            answers.push((asked.at, replaced));
            self.shared.wakeups.expiry_learned();
        }
        answers
    }

    /// Sends one heartbeat for each of these queues, with one write and one deadline. Returns the
    /// answers, and separately the queues in which Redis does not know the worker.
    async fn send(&self, places: &[usize]) -> (Vec<Answer>, Vec<Asked<'_>>) {
        let (lease, sent_at) = (self.shared.config.lease, Instant::now());
        let mut befores: Vec<Option<Before>> =
            befores(&self.shared).into_iter().map(Some).collect();
        let ask = |at: &usize| {
            let (queue, before) = (&self.shared.queues[*at], befores[*at].take()?);
            Some(Asked { at: *at, queue, before })
        };
        let asked: Vec<Asked<'_>> = places.iter().filter_map(ask).collect();
        let calls = asked
            .iter()
            .map(|asked| self.broker.renew_call(&asked.queue.name, &asked.before.worker, lease));
        let Ok(replies) = timeout(lease / 2, self.broker.run_all(calls.collect())).await else {
            self.broker.reconnect();
            return (asked.iter().map(|asked| (asked.at, Err(late()))).collect(), Vec::new());
        };
        let (mut answers, mut lapsed) = (Vec::new(), Vec::new());
        for (asked, reply) in asked.into_iter().zip(replies) {
            match reply.and_then(|reply| Broker::read_renew(&asked.queue.name, reply)) {
                Ok(renewed) => {
                    self.take_in(asked.queue, sent_at, &asked.before, &renewed);
                    answers.push((asked.at, Ok(())));
                }
                Err(problem) if problem.refusal() == Some(Refusal::Lapsed) => lapsed.push(asked),
                Err(problem) => answers.push((asked.at, Err(problem))),
            }
        }
        (answers, lapsed)
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
        queue.tick_heard(renewed.next_tick);
        reconcile(&self.shared, before, renewed);
    }

    /// Logs one event for all queues. The event names the queue in which the worker held the most
    /// tasks.
    fn log_lapsed(&self, lapsed: &[Asked<'_>]) {
        let held = |asked: &Asked<'_>| asked.before.attempts.len();
        let Some(most) = lapsed.iter().max_by_key(|asked| held(asked)) else { return };
        let (queue, worker) = (most.queue.name.clone(), most.before.worker.clone());
        let (queues, held) = (lapsed.len(), lapsed.iter().map(held).sum::<usize>());
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

    /// Returns the id under which the worker continues in all of these queues, so that operators
    /// see one worker. It is a new one if one of them has lost the latest id. Otherwise it is the
    /// latest id: none of them has known the worker under it, unless a call to register had no
    /// answer, and that call is safe to repeat.
    fn next_id(&self, lapsed: &[Asked<'_>]) -> WorkerId {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if lapsed.iter().any(|asked| asked.before.worker == *latest) {
            *latest = new_worker_id(&self.shared.config);
        }
        latest.clone()
    }

    /// Takes another id after the lease was reaped. Answers to calls under the old id must not
    /// count.
    async fn take_new_id(
        &self,
        queue: &Served,
        before: &Before,
        worker: WorkerId,
    ) -> Result<(), BrokerError> {
        let registered_at = Instant::now();
        let registered = self
            .broker
            .register(&queue.name, &worker, self.shared.config.lease, &self.shared.description)
            .await?;
        for attempt in &before.attempts {
            attempt.stop(Stop::Lost);
        }
        queue.replace_worker(worker, registered_at, self.shared.config.lease);
        queue.set_next_expiry(registered.next_expiry);
        queue.hint();
        // Redis may have lost the schedules, too.
        queue.tick_heard(Some(Duration::ZERO));
        self.tell_again(queue).await;
        Ok(())
    }

    /// Tells Redis what it may have lost of a queue: that it is there, and which history it keeps.
    async fn tell_again(&self, queue: &Served) {
        let announced = self.broker.announce(&queue.name).await;
        let kept = declared_history::keep(&self.broker, &self.shared.registry, &queue.name).await;
        if let Err(problem) = announced.and(kept) {
            let (log, name) = (&self.shared.log, queue.name.clone());
            let text = "could not announce the queue, or set the history that it keeps";
            log_event!(log, DEBUG, queue = %name, error = %problem, "{text}");
        }
    }
}

impl Role for Heartbeat {
    async fn tick(&mut self) -> Duration {
        let lease = self.shared.config.lease;
        let (began_at, connects_before) = (Instant::now(), self.broker.connects());
        let places = self.due(began_at);
        let answers = if places.is_empty() { Vec::new() } else { self.beat(&places).await };
        let took = began_at.elapsed();
        // A wait for a connection is not logged here, because the outage itself is logged.
        let connects = self.broker.connects();
        let is_connected = connects == connects_before;
        let has_worked = answers.iter().any(|(_, answer)| answer.is_ok());
        if has_worked && is_connected && took > lease / SLOW_PART {
            log_slow(&self.shared, took);
        }
        if has_worked && connects != self.connects {
            self.connects = connects;
            self.shared.wakeups.connected_again();
        }
        let (now, chance) = (Instant::now(), fastrand::f64());
        for (at, answer) in answers {
            let (queue, worked) = (&self.shared.queues[at], answer.is_ok());
            self.rejected.answered(&self.shared.log, (at, queue), answer.as_ref().copied());
            let given = queue.lease_to_keep(lease);
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
    let text = advice(held);
    log_event!(shared.log, WARN, took_ms, lease_ms, held, "{text}");
}

/// What to do about it, for a worker that holds so many tasks.
fn advice(held: usize) -> &'static str {
    if held >= MANY_HELD {
        "a heartbeat for so many tasks took long; if a heartbeat takes a third of the lease, \
         leases end: run fewer tasks at once in each worker, or set a longer lease"
    } else {
        "Redis took long to answer a heartbeat; if an answer takes a third of the lease, leases \
         end: find out why Redis, the network or this machine is slow (SLOWLOG, latency, CPU)"
    }
}

/// The error of a call that Redis did not answer in time, and may have done.
fn late() -> BrokerError {
    BrokerError::Unknown("Redis did not answer in time".into())
}

#[cfg(test)]
#[path = "heartbeat_tests.rs"]
mod tests;
