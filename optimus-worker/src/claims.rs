//! Decides what to claim next, and processes the answers: [`Claims`].

use std::{sync::Arc, time::Duration};

use optimus_core::{
    Lease, QueueName,
    broker::{Broker, BrokerError, Claimed, Grant, Refusal, Reply, ScriptCall},
    log_event,
};
use tokio::time::Instant;

use crate::{
    claim_request::{ClaimRequest, Mode},
    executor,
    poll_schedule::{Load, backup_wait},
    prepare::{Claim, prepare},
    queue_claims::QueueClaims,
    rejections::Rejections,
    served_queue::Served,
    shared::Shared,
    shares::{Open, Shares},
    slots::Slot,
    turn_limits::TurnLimits,
};

/// The wait before a rejected claim is sent again.
const AFTER_REJECTION: Duration = Duration::from_secs(1);
const REST: Duration = Duration::from_secs(3600);

/// The claims of all served queues.
pub(crate) struct Claims {
    shared: Arc<Shared>,
    queues: Vec<QueueClaims>,
    rejected: Rejections,
    shares: Shares,
    pub(crate) limits: TurnLimits,
    /// The number of slots that claims under way may fill.
    reserved: usize,
    /// How many tasks were granted.
    begun: u64,
    overflowing: bool,
}

impl Claims {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let queues = shared.queues.iter().map(|_| QueueClaims::default()).collect();
        let weights = shared.queues.iter().map(|queue| queue.weight);
        let by_weight = Shares::new(shared.config.order, weights);
        let rejected = Rejections::of("claims");
        Self {
            queues,
            rejected,
            shares: by_weight,
            limits: TurnLimits::of(shared.config.concurrency),
            reserved: 0,
            begun: 0,
            overflowing: false,
            shared,
        }
    }

    /// Returns the number of slots that no claim under way may fill.
    fn idle(&self) -> usize {
        self.shared.slots.idle().saturating_sub(self.reserved)
    }

    /// Returns whether this many slots are idle and a queue is known to have work.
    pub(crate) fn could_fill(&self, slots: usize) -> bool {
        let shared = &self.shared;
        if self.idle() < slots || self.overflowing || shared.shutdown.is_quiet() {
            return false;
        }
        let has_work = |(claims, queue): (&QueueClaims, &Served)| {
            claims.knows_of_work() && queue.may_have_work() && queue.lease_is_certain()
        };
        self.queues.iter().zip(shared.queues.iter()).any(has_work) && !shared.quarantine.any()
    }

    fn is_under_way(&self) -> bool {
        self.queues.iter().any(|claims| claims.under_way > 0 || claims.unanswered.is_some())
    }

    /// Handles the case that only quarantined tasks are held: gives them back, and claims one of
    /// them alone.
    pub(crate) fn ask_alone(&mut self) -> Option<ClaimRequest> {
        let shared = self.shared.clone();
        if !shared.quarantine.any() || self.is_under_way() {
            return None;
        }
        let (now, is_quiet) = (Instant::now(), shared.shutdown.is_quiet());
        if is_quiet || shared.slots.busy() > 0 || self.idle() == 0 || shared.attempts.running() > 0
        {
            let over = shared.quarantine.give_up(now, fastrand::f64());
            for (lease, wait) in over {
                executor::give_back_for(&shared, lease, wait);
            }
            // Each held task has left a slot idle. If an operator withholds it, another may run it.
            let is_for_others = is_quiet || shared.slots.idle() == 0;
            executor::give_back_quarantined(&shared, |_| is_for_others);
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

    /// Returns a claim that ends a run alone once its time limit is over. Until then, quarantined
    /// tasks stop other claims.
    fn ask_to_end_alone(&mut self) -> Option<ClaimRequest> {
        let home = self.shared.quarantine.out_of_time(Instant::now())?;
        let at = self.position(&home).filter(|_| !self.is_under_way() && self.idle() > 0)?;
        Some(self.ask(at, 1, Mode::EndAlone))
    }

    fn ask(&mut self, at: usize, want: usize, mode: Mode) -> ClaimRequest {
        self.queues[at].seq += 1;
        let (seq, queue) = (self.queues[at].seq, &self.shared.queues[at]);
        let (worker, hints, sent_at) = (queue.worker(), queue.ask(), Instant::now());
        ClaimRequest { queue: at, worker, seq, want, hints, mode, sent_at }
    }

    /// Returns what to claim now. Over all queues and turns, it never claims more tasks than there
    /// are idle slots.
    pub(crate) fn requests(&mut self) -> Vec<ClaimRequest> {
        if self.shared.shutdown.is_quiet() || self.is_overflowing() {
            return Vec::new();
        }
        let mut requests: Vec<ClaimRequest> =
            self.queues.iter_mut().filter_map(|l| l.unanswered.take()).collect();
        for request in &mut requests {
            request.worker = self.shared.queues[request.queue].worker();
            request.sent_at = Instant::now();
        }
        if self.shared.quarantine.any() {
            // The claim that is sent again may be this one.
            if requests.is_empty() {
                requests.extend(self.ask_to_end_alone());
            }
            return requests;
        }
        let again: usize = requests.iter().map(|request| request.want).sum();
        let idle = self.idle().saturating_sub(again);
        let now = Instant::now();
        self.poll(now);
        let open: Vec<Open> = (0..self.queues.len())
            .filter(|at| self.shared.queues[*at].may_have_work())
            // Without this limit, granted tasks could not start, and the worker would give them
            // back again and again.
            .filter(|at| self.shared.queues[*at].lease_is_certain())
            .filter(|at| !self.shared.reporter.is_full_of(&self.shared.queues[*at].name))
            .filter(|at| self.queues[*at].under_way == 0 || self.queues[*at].has_more)
            .filter(|at| requests.iter().all(|request| request.queue != *at))
            .map(|at| Open { at, running: self.shared.slots.running(at) })
            .collect();
        for (at, want) in self.shares.divide(now.into_std(), idle, self.limits.tasks, &open) {
            requests.push(self.ask(at, want, Mode::Share));
        }
        self.pass_on_due(&mut requests);
        requests
    }

    /// Adds a hint to each queue whose poll or due time has come.
    fn poll(&mut self, now: Instant) {
        let load = self.load();
        for (queue, claims) in self.shared.queues.iter().zip(&mut self.queues) {
            if claims.polls.is_time(now, queue.workers(), load) {
                queue.hint();
            }
        }
    }

    fn load(&self) -> Load {
        let config = &self.shared.config;
        let is_loaded = self.idle() <= config.concurrency / 2;
        Load { poll: config.poll, is_loaded, begun: self.begun, queues: self.queues.len() as u64 }
    }

    /// Claims zero tasks if it is this worker's turn to poll and no slot is idle. This claim still
    /// moves due tasks into the ready list, and wakes another worker.
    fn pass_on_due(&mut self, requests: &mut Vec<ClaimRequest>) {
        for at in 0..self.queues.len() {
            if !self.queues[at].polls.take_fired() {
                continue;
            }
            let is_asked =
                requests.iter().any(|request| request.queue == at) || self.queues[at].under_way > 0;
            if !is_asked && self.shared.queues[at].lease_is_certain() {
                requests.push(self.ask(at, 0, Mode::Share));
            }
        }
    }

    fn is_overflowing(&mut self) -> bool {
        let overflowing = self.shared.reporter.is_full();
        if overflowing && !self.overflowing {
            let held = self.shared.reporter.len();
            log_event!(
                self.shared.log,
                ERROR,
                held,
                "too many reports are held; this worker claims nothing until Redis accepts them"
            );
        }
        self.overflowing = overflowing;
        overflowing
    }

    /// Returns the script call of a claim. From now on, the claim counts as under way.
    pub(crate) fn send(&mut self, request: &ClaimRequest) -> ScriptCall {
        self.reserved += request.want;
        self.queues[request.queue].under_way += 1;
        let (broker, queue) = (&self.shared.broker, &self.shared.queues[request.queue]);
        let name = queue.claim_sent(request.sent_at, self.shared.config.lease);
        if request.mode == Mode::Alone {
            broker.claim_alone_call(name, &request.worker, request.seq)
        } else {
            broker.claim_call(name, &request.worker, request.seq, request.want)
        }
    }

    /// Processes the answer to a claim. Returns `true` if the exchange itself succeeded.
    pub(crate) fn take_in(
        &mut self,
        request: ClaimRequest,
        answer: Result<Reply, BrokerError>,
    ) -> bool {
        let (at, seq) = (request.queue, request.seq);
        let is_answered = !matches!(&answer, Err(problem) if problem.is_transient());
        let worked = self.decide(request, answer);
        let claims = &mut self.queues[at];
        if is_answered {
            claims.answered_seq = claims.answered_seq.max(seq);
        }
        self.shared.queues[at].set_received_seq(claims.received_seq());
        worked
    }

    fn decide(&mut self, request: ClaimRequest, answer: Result<Reply, BrokerError>) -> bool {
        self.reserved -= request.want;
        let (queue, claims) = (&self.shared.queues[request.queue], &mut self.queues[request.queue]);
        queue.claim_ended();
        claims.under_way -= 1;
        match answer.and_then(|reply| Broker::read_claim(&queue.name, reply)) {
            Ok(claimed) => {
                self.rejected.answered(&self.shared.log, (request.queue, queue), Ok(()));
                queue.accepted();
                if !claimed.grants.is_empty() {
                    queue.granted(request.sent_at, self.shared.config.lease);
                }
                self.shares.answered(request.queue, request.charged(), claimed.grants.len());
                self.begun += claimed.grants.len() as u64;
                if request.mode == Mode::EndAlone {
                    self.shared.quarantine.end(Instant::now());
                }
                let backup = claimed.standby.map_or(Duration::ZERO, backup_wait);
                let due_at = claimed.next_due.map(|wait| Instant::now() + wait + backup);
                // If work is left, the answer has no due time, and other workers may rely on the
                // previous due time.
                claims.polls.due_at = due_at.or(claims.polls.due_at.filter(|_| claimed.more));
                queue.set_due(claims.polls.due_at);
                claims.polls.polled(Instant::now(), self.begun);
                claims.has_more = claimed.more;
                if !claimed.more {
                    self.shares.had_no_work(request.queue);
                    queue.found_empty(request.hints);
                } else if !queue.may_have_work() {
                    queue.hint();
                }
                queue.answered(request.hints);
                if claims.polls.due_at.is_some() {
                    self.shared.wakeups.due_learned();
                }
                self.start(&request, claimed);
                true
            }
            Err(problem) if problem.is_transient() => {
                queue.granted(request.sent_at, self.shared.config.lease);
                // Only the last claim without an answer is sent again.
                if let Some(lost) = claims.unanswered.replace(request) {
                    self.shares.answered(lost.queue, lost.charged(), 0);
                }
                false
            }
            Err(problem) => {
                self.shares.answered(request.queue, request.charged(), 0);
                if request.mode == Mode::EndAlone {
                    self.shared.quarantine.ask_later(Instant::now());
                }
                self.refused(&request, &problem)
            }
        }
    }

    /// Processes a claim that granted no task. Returns `true` if the exchange itself succeeded.
    fn refused(&mut self, request: &ClaimRequest, problem: &BrokerError) -> bool {
        let queue = &self.shared.queues[request.queue];
        match problem.refusal() {
            Some(Refusal::Paused) => {
                queue.accepted();
                self.shares.had_no_work(request.queue);
                queue.found_empty(request.hints);
            }
            Some(Refusal::Lapsed) => {
                queue.lapsed();
                return false;
            }
            Some(refusal) if refusal != Refusal::Newer => {}
            refusal => {
                // After a rejection, the queue takes no slots and no turns from the worker's other
                // queues.
                if refusal.is_some() {
                    queue.log_outdated(&self.shared.log, problem);
                } else {
                    let at = (request.queue, queue);
                    self.rejected.answered(&self.shared.log, at, Err(problem));
                }
                self.queues[request.queue].polls.due_at = Some(Instant::now() + AFTER_REJECTION);
                self.shares.had_no_work(request.queue);
                queue.refused(request.hints);
            }
        }
        true
    }

    fn start(&self, request: &ClaimRequest, claimed: Claimed) {
        let queue = &self.shared.queues[request.queue];
        let certain = queue.worker() == request.worker && queue.lease_is_certain();
        let Claimed { token, now_ms, grants, more, .. } = claimed;
        let all_idle = self.shared.slots.busy() == 0;
        if !more && all_idle {
            // There is no other work, so the slots are free for quarantined tasks.
            self.shared.quarantine.end_rest();
        }
        let mut prepared = Vec::with_capacity(grants.len());
        for Grant { id, record, tries, was_tried, start_by } in grants {
            let lease = Lease { id, worker: request.worker.clone(), token };
            // Checked after the slot is taken, because a shutdown that begins later waits for the
            // slot.
            let may_start = |_: &Slot| certain && !self.shared.shutdown.is_quiet();
            match self.shared.slots.take(request.queue).filter(may_start) {
                Some(slot) => {
                    let alone = request.mode == Mode::Alone;
                    let claim = Claim { lease, record, tries, was_tried, start_by, now_ms, alone };
                    prepared.extend(prepare(&self.shared, claim, slot));
                }
                None => executor::give_back(&self.shared, lease),
            }
        }
        executor::start(&self.shared, prepared);
    }

    /// Returns how long the claimer rests until the next turn, unless a wakeup comes before.
    pub(crate) fn rest(&self) -> Duration {
        // A worker that is ending claims no due tasks, so a due time must not end the rest at once.
        if self.shared.shutdown.is_quiet() {
            return REST;
        }
        let quarantine = &self.shared.quarantine;
        let holds_back = quarantine.any() || self.overflowing;
        let (load, queues) = (self.load(), self.shared.queues.iter().zip(&self.queues));
        let times =
            queues.filter_map(|(queue, claims)| claims.polls.next_at(queue.workers(), load));
        let next = times.filter(|_| !holds_back).chain(self.shared.reporter.ready_at());
        // Without an idle slot, a claim is useless while a task runs alone.
        let next_for_quarantine = quarantine.next().filter(|_| self.idle() > 0);
        let next = next.chain(next_for_quarantine).min();
        next.map_or(REST, |due| due.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
