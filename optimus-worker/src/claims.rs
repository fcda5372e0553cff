//! What to claim next, and what becomes of the answers: [`Claims`].

use std::{sync::Arc, time::Duration};

use optimus_core::{
    Lease, QueueName,
    broker::{BATCH_MAX, Broker, BrokerError, Claimed, Grant, Refusal, Reply, ScriptCall},
    tell,
};
use tokio::time::Instant;

use crate::{
    ask::{Ask, Mode},
    executor,
    looks::{Load, Looks, backup_wait},
    prepare::{Claim, prepare},
    shared::Shared,
    shares::{Open, Shares, TURN_TASKS_MAX},
    slots::Slot,
};

/// From twice so many slots on, half of them are enough for one turn.
pub(crate) const HALF_MIN: usize = 32;
/// A claim that Redis rejects is asked again this much later.
const AFTER_REJECTION: Duration = Duration::from_secs(1);
const REST: Duration = Duration::from_secs(3600);

/// The claims of all served queues.
pub(crate) struct Claims {
    shared: Arc<Shared>,
    queues: Vec<QueueClaims>,
    shares: Shares,
    /// Slots that claims under way may fill.
    reserved: usize,
    /// How many tasks were granted.
    begun: u64,
    overflowing: bool,
}

/// What is remembered of each served queue.
#[derive(Debug, Default)]
struct QueueClaims {
    seq: u64,
    /// A claim whose answer never came; it is asked for again under its number.
    unanswered: Option<Ask>,
    /// The last claim that Redis has answered.
    answered_seq: u64,
    looks: Looks,
    /// The last claim left work behind.
    has_more: bool,
    /// Claims that are not answered yet.
    under_way: usize,
}

impl QueueClaims {
    /// Up to which claim all are answered, or will never be. What an earlier one granted and this
    /// worker does not know, nobody will tell it any more.
    fn heard_seq(&self) -> u64 {
        self.unanswered.as_ref().map_or(self.answered_seq, |ask| ask.seq - 1)
    }
}

impl Claims {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let queues = shared.queues.iter().map(|_| QueueClaims::default()).collect();
        let weights = shared.queues.iter().map(|queue| queue.weight);
        let by_weight = Shares::new(shared.config.order, weights);
        Self { queues, shares: by_weight, reserved: 0, begun: 0, overflowing: false, shared }
    }

    /// Slots that no claim under way may fill.
    fn idle(&self) -> usize {
        self.shared.slots.idle().saturating_sub(self.reserved)
    }

    /// The most that one turn claims.
    pub(crate) fn turn_max(&self) -> usize {
        let concurrency = self.shared.config.concurrency;
        let most = if concurrency < 2 * HALF_MIN { concurrency } else { concurrency.div_ceil(2) };
        most.min(TURN_TASKS_MAX)
    }

    /// Whether a queue is known to have work for so many idle slots.
    pub(crate) fn could_fill(&self, slots: usize) -> bool {
        let deep = self.queues.iter().any(|claims| claims.has_more && claims.unanswered.is_none());
        deep && self.idle() >= slots
    }

    fn is_under_way(&self) -> bool {
        self.queues.iter().any(|claims| claims.under_way > 0 || claims.unanswered.is_some())
    }

    /// Once nothing but quarantined tasks is held: gives them back, and claims one of them alone.
    pub(crate) fn ask_alone(&mut self) -> Option<Ask> {
        let shared = self.shared.clone();
        if !shared.quarantine.any() || self.is_under_way() {
            return None;
        }
        let (now, is_quiet) = (Instant::now(), shared.shutdown.is_quiet());
        let all_idle = shared.slots.busy() == 0;
        if is_quiet || !all_idle || shared.attempts.running() > 0 {
            let over = shared.quarantine.give_up(now, fastrand::f64());
            for (lease, wait) in over {
                executor::give_back_for(&shared, lease, wait);
            }
            executor::let_go(&shared, |_| is_quiet);
            return None;
        }
        let (held, home) = shared.quarantine.release(now);
        for lease in held {
            executor::give_back(&shared, lease);
        }
        let at = self.position(&home?)?;
        Some(self.ask(at, 1, Mode::Alone))
    }

    fn position(&self, name: &QueueName) -> Option<usize> {
        self.shared.queues.iter().position(|queue| queue.name == *name)
    }

    /// While quarantined tasks keep the worker from others: a claim once the time alone is over.
    fn ask_for_company(&mut self) -> Option<Ask> {
        let home = self.shared.quarantine.out_of_time(Instant::now())?;
        let at = self.position(&home).filter(|_| !self.is_under_way() && self.idle() > 0)?;
        Some(self.ask(at, 1, Mode::Company))
    }

    fn ask(&mut self, at: usize, want: usize, mode: Mode) -> Ask {
        self.queues[at].seq += 1;
        let (seq, queue) = (self.queues[at].seq, &self.shared.queues[at]);
        let (worker, hints, sent_at) = (queue.worker(), queue.ask(), Instant::now());
        Ask { queue: at, worker, seq, want, hints, mode, sent_at }
    }

    /// What to claim now: never more, over all queues and turns, than there are idle slots.
    pub(crate) fn asks(&mut self) -> Vec<Ask> {
        if self.shared.shutdown.is_quiet() || self.is_overflowing() {
            return Vec::new();
        }
        let mut asks: Vec<Ask> =
            self.queues.iter_mut().filter_map(|l| l.unanswered.take()).collect();
        for ask in &mut asks {
            ask.worker = self.shared.queues[ask.queue].worker();
            ask.sent_at = Instant::now();
        }
        if self.shared.quarantine.any() {
            asks.extend(self.ask_for_company());
            return asks;
        }
        let again: usize = asks.iter().map(|ask| ask.want).sum();
        let idle = self.idle().saturating_sub(again).min(self.turn_max());
        let now = Instant::now();
        self.look_by_itself(now);
        let open: Vec<Open> = (0..self.queues.len())
            .filter(|at| self.shared.queues[*at].may_have_work())
            // What is granted then could not start, and would come back at once, again and again.
            .filter(|at| self.shared.queues[*at].lease_is_certain())
            .filter(|at| !self.shared.reporter.is_full_of(&self.shared.queues[*at].name))
            .filter(|at| self.queues[*at].under_way == 0 || self.queues[*at].has_more)
            .filter(|at| asks.iter().all(|ask| ask.queue != *at))
            .map(|at| Open { at, running: self.shared.slots.running(at) })
            .collect();
        for (at, mut share) in self.shares.divide(now.into_std(), idle, &open) {
            while share > 0 {
                let want = share.min(BATCH_MAX);
                asks.push(self.ask(at, want, Mode::Share));
                share -= want;
            }
        }
        self.pass_on_due(&mut asks);
        asks
    }

    /// Hints at each queue whose time has come, though nothing woke the worker for it.
    fn look_by_itself(&mut self, now: Instant) {
        let load = self.load();
        for (queue, claims) in self.shared.queues.iter().zip(&mut self.queues) {
            if claims.looks.come(now, queue.workers(), load) {
                queue.hint();
            }
        }
    }

    fn load(&self) -> Load {
        let config = &self.shared.config;
        let is_loaded = self.idle() <= config.concurrency / 2;
        Load { poll: config.poll, is_loaded, begun: self.begun, queues: self.queues.len() as u64 }
    }

    /// Where it is this worker's turn to look and it has no slot, a claim of nothing makes what is
    /// due ready, and wakes a worker that has one.
    fn pass_on_due(&mut self, asks: &mut Vec<Ask>) {
        for at in 0..self.queues.len() {
            if !self.queues[at].looks.take_fired() {
                continue;
            }
            let is_asked = asks.iter().any(|ask| ask.queue == at) || self.queues[at].under_way > 0;
            if !is_asked && self.shared.queues[at].lease_is_certain() {
                asks.push(self.ask(at, 0, Mode::Share));
            }
        }
    }

    fn is_overflowing(&mut self) -> bool {
        let overflowing = self.shared.reporter.is_full();
        if overflowing && !self.overflowing {
            let held = self.shared.reporter.len();
            tell!(
                self.shared.log,
                ERROR,
                held,
                "too many reports are held; this worker claims nothing until Redis accepts them"
            );
        }
        self.overflowing = overflowing;
        overflowing
    }

    /// The call of a claim, which counts as under way from now on.
    pub(crate) fn send(&mut self, ask: &Ask) -> ScriptCall {
        self.reserved += ask.want;
        self.queues[ask.queue].under_way += 1;
        let (broker, queue) = (&self.shared.broker, &self.shared.queues[ask.queue]);
        let name = queue.claim_sent(ask.sent_at, self.shared.config.lease);
        if ask.mode == Mode::Alone {
            broker.claim_alone_call(name, &ask.worker, ask.seq)
        } else {
            broker.claim_call(name, &ask.worker, ask.seq, ask.want)
        }
    }

    /// Takes in a claim's answer. `true` if the exchange itself worked.
    pub(crate) fn take_in(&mut self, ask: Ask, answer: Result<Reply, BrokerError>) -> bool {
        let (at, seq) = (ask.queue, ask.seq);
        let is_answered = !matches!(&answer, Err(problem) if problem.is_transient());
        let worked = self.decide(ask, answer);
        let claims = &mut self.queues[at];
        if is_answered {
            claims.answered_seq = claims.answered_seq.max(seq);
        }
        self.shared.queues[at].set_heard_seq(claims.heard_seq());
        worked
    }

    fn decide(&mut self, ask: Ask, answer: Result<Reply, BrokerError>) -> bool {
        self.reserved -= ask.want;
        let (queue, claims) = (&self.shared.queues[ask.queue], &mut self.queues[ask.queue]);
        queue.claim_heard();
        claims.under_way -= 1;
        match answer.and_then(|reply| Broker::read_claim(&queue.name, reply)) {
            Ok(claimed) => {
                if !claimed.grants.is_empty() {
                    queue.granted(ask.sent_at, self.shared.config.lease);
                }
                self.shares.answered(ask.queue, ask.charged(), claimed.grants.len());
                self.begun += claimed.grants.len() as u64;
                if ask.mode == Mode::Company {
                    self.shared.quarantine.end(Instant::now());
                }
                let backup = claimed.standby.map_or(Duration::ZERO, backup_wait);
                let due_at = claimed.next_due.map(|wait| Instant::now() + wait + backup);
                // Where work is left, none is told, and others may count on the one before.
                claims.looks.due_at = due_at.or(claims.looks.due_at.filter(|_| claimed.more));
                queue.set_due(claims.looks.due_at);
                claims.looks.looked(Instant::now(), self.begun);
                claims.has_more = claimed.more;
                if !claimed.more {
                    self.shares.had_no_work(ask.queue);
                    queue.found_empty(ask.hints);
                } else if !queue.may_have_work() {
                    queue.hint();
                }
                queue.answered(ask.hints);
                self.shared.wakeups.claim_answered();
                self.start(&ask, claimed);
                true
            }
            Err(problem) if problem.is_transient() => {
                queue.granted(ask.sent_at, self.shared.config.lease);
                claims.unanswered = Some(ask);
                false
            }
            Err(problem) => {
                self.shares.answered(ask.queue, ask.charged(), 0);
                if ask.mode == Mode::Company {
                    self.shared.quarantine.ask_later(Instant::now());
                }
                self.refused(&ask, &problem)
            }
        }
    }

    /// Nothing was granted. `true` if the exchange itself worked.
    fn refused(&mut self, ask: &Ask, problem: &BrokerError) -> bool {
        let queue = &self.shared.queues[ask.queue];
        match problem.refusal() {
            Some(Refusal::Paused) => {
                self.shares.had_no_work(ask.queue);
                queue.found_empty(ask.hints);
            }
            Some(Refusal::Lapsed) => {
                queue.lapsed();
                return false;
            }
            Some(refusal) if refusal != Refusal::Newer => {}
            _ => {
                // It keeps neither slots nor turns from the worker's other queues.
                queue.log_rejection(&self.shared.log, problem);
                self.queues[ask.queue].looks.due_at = Some(Instant::now() + AFTER_REJECTION);
                self.shares.had_no_work(ask.queue);
                queue.found_empty(ask.hints);
            }
        }
        true
    }

    fn start(&self, ask: &Ask, claimed: Claimed) {
        let queue = &self.shared.queues[ask.queue];
        let certain = queue.worker() == ask.worker && queue.lease_is_certain();
        let Claimed { token, now_ms, grants, more, .. } = claimed;
        let all_idle = self.shared.slots.busy() == 0;
        if !more && all_idle {
            // There is nothing else to be claimed for.
            self.shared.quarantine.end_rest();
        }
        let mut prepared = Vec::with_capacity(grants.len());
        for Grant { id, record, tries, was_tried, start_by } in grants {
            let lease = Lease { id, worker: ask.worker.clone(), token };
            // Asked once the slot is taken: a shutdown that begins later waits for it.
            let may_start = |_: &Slot| certain && !self.shared.shutdown.is_quiet();
            match self.shared.slots.take(ask.queue).filter(may_start) {
                Some(slot) => {
                    let alone = ask.mode == Mode::Alone;
                    let claim = Claim { lease, record, tries, was_tried, start_by, now_ms, alone };
                    prepared.extend(prepare(&self.shared, claim, slot));
                }
                None => executor::give_back(&self.shared, lease),
            }
        }
        executor::start(&self.shared, prepared);
    }

    /// When to take the next turn unless something comes before.
    pub(crate) fn rest(&self) -> Duration {
        // What is due is claimed by nobody meanwhile, so it must not cut the rest to nothing.
        if self.shared.shutdown.is_quiet() {
            return REST;
        }
        let quarantine = &self.shared.quarantine;
        let holds_back = quarantine.any() || self.overflowing;
        let (load, queues) = (self.load(), self.shared.queues.iter().zip(&self.queues));
        let times =
            queues.filter_map(|(queue, claims)| claims.looks.next_at(queue.workers(), load));
        let next_due = times.filter(|_| !holds_back);
        // Without an idle slot nothing can be claimed beside a task that runs alone.
        let next_for_quarantine = quarantine.next().filter(|_| self.idle() > 0);
        let next_due =
            next_due.chain(self.shared.reporter.ready_at()).chain(next_for_quarantine).min();
        next_due.map_or(REST, |due| due.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
