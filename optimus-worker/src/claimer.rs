//! Takes turns with Redis: what finished since, and a claim for the idle slots, in one write.
//!
//! While one turn is under way the next one gathers, so batches grow with the load and an idle
//! worker adds no delay.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use optimus_core::{
    Lease, WorkerId,
    broker::{BATCH_MAX, Broker, BrokerError, Claimed, Refusal, Reply},
};

use crate::{
    executor,
    reporter::{Group, HELD_MAX},
    role::Role,
    shared::Shared,
};

/// Script calls of reports, and of claims, in one turn.
const REPORT_CALLS_MAX: usize = 8;
const CLAIM_CALLS_MAX: usize = 8;
const AGAIN: Duration = Duration::ZERO;
/// A claim that Redis rejects is asked again this much later.
const AFTER_REJECTION: Duration = Duration::from_secs(1);
const REST: Duration = Duration::from_secs(3600);
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// The role that claims, and carries the reports along.
pub(crate) struct Claimer {
    shared: Arc<Shared>,
    lines: Vec<Line>,
    failures: u32,
    overflowing: bool,
}

/// What the claimer remembers of each served queue.
#[derive(Debug, Default)]
struct Line {
    seq: u64,
    /// A claim whose answer never came; it is asked for again under its number.
    unanswered: Option<Ask>,
    due_at: Option<Instant>,
}

/// One claim.
#[derive(Debug, Clone)]
struct Ask {
    queue: usize,
    /// Under the id that the worker had when it was sent.
    worker: WorkerId,
    seq: u64,
    want: usize,
}

impl Claimer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let lines = shared.queues.iter().map(|_| Line::default()).collect();
        Self { shared, lines, failures: 0, overflowing: false }
    }

    /// What to claim now: never more, over all queues, than there are idle slots.
    fn asks(&mut self) -> Vec<Ask> {
        if self.shared.shutdown.is_quiet() || self.is_overflowing() {
            return Vec::new();
        }
        let mut asks: Vec<Ask> =
            self.lines.iter().filter_map(|line| line.unanswered.clone()).collect();
        for ask in &mut asks {
            ask.worker = self.shared.queues[ask.queue].worker();
        }
        let reserved: usize = asks.iter().map(|ask| ask.want).sum();
        let idle = self.shared.slots.idle().saturating_sub(reserved);
        let now = Instant::now();
        for (queue, line) in self.shared.queues.iter().zip(&mut self.lines) {
            if line.due_at.is_some_and(|due_at| due_at <= now) {
                line.due_at = None;
                queue.set_work(true);
            }
        }
        let open: Vec<usize> = (0..self.lines.len())
            .filter(|at| self.shared.queues[*at].may_have_work())
            .filter(|at| self.lines[*at].unanswered.is_none())
            .collect();
        let weights: Vec<u32> = open.iter().map(|at| self.shared.queues[*at].weight).collect();
        let shares = self.shared.config.order.divide(idle, &weights, fastrand::usize(..));
        for (queue, mut share) in open.into_iter().zip(shares) {
            while share > 0 && asks.len() < CLAIM_CALLS_MAX {
                self.lines[queue].seq += 1;
                let want = share.min(BATCH_MAX);
                let worker = self.shared.queues[queue].worker();
                asks.push(Ask { queue, worker, seq: self.lines[queue].seq, want });
                share -= want;
            }
        }
        asks
    }

    fn is_overflowing(&mut self) -> bool {
        let overflowing = self.shared.reporter.len() > HELD_MAX;
        if overflowing && !self.overflowing {
            tracing::error!(
                held = self.shared.reporter.len(),
                "too many results can't be reported; nothing is claimed until Redis takes them"
            );
        }
        self.overflowing = overflowing;
        overflowing
    }

    /// Takes in a claim's answer. `true` if the exchange itself worked.
    fn take_in(&mut self, ask: Ask, answer: Result<Reply, BrokerError>) -> bool {
        let queue = &self.shared.queues[ask.queue];
        let line = &mut self.lines[ask.queue];
        match answer.and_then(|reply| Broker::read_claim(&queue.name, reply)) {
            Ok(claimed) => {
                line.unanswered = None;
                line.due_at = claimed.next_due.map(|wait| Instant::now() + wait);
                queue.set_work(claimed.more);
                self.start(&ask, claimed);
                return true;
            }
            Err(problem) => match problem.refusal() {
                Some(Refusal::Paused) => {
                    line.unanswered = None;
                    queue.set_work(false);
                }
                Some(Refusal::Lapsed) => {
                    line.unanswered = None;
                    self.shared.beat.notify_one();
                    return false;
                }
                Some(_) => line.unanswered = None,
                None if problem.is_transient() => {
                    line.unanswered = Some(ask);
                    return false;
                }
                None => {
                    // It keeps neither slots nor turns from the worker's other queues.
                    tracing::error!(queue = %queue.name, %problem, "a claim was rejected");
                    line.unanswered = None;
                    line.due_at = Some(Instant::now() + AFTER_REJECTION);
                    queue.set_work(false);
                }
            },
        }
        true
    }

    fn start(&self, ask: &Ask, claimed: Claimed) {
        let queue = &self.shared.queues[ask.queue];
        let certain =
            queue.worker() == ask.worker && queue.lease_is_certain(self.shared.config.lease);
        for grant in claimed.grants {
            let lease =
                Lease { id: grant.id.clone(), worker: ask.worker.clone(), token: claimed.token };
            match self.shared.slots.take().filter(|_| certain) {
                Some(slot) => executor::start(&self.shared, lease, grant, claimed.now_ms, slot),
                None => executor::give_back(&self.shared, lease, grant.stamp),
            }
        }
        queue.set_heard_seq(ask.seq);
    }

    /// When to take the next turn unless something wakes the claimer before.
    fn rest(&self) -> Duration {
        let next_due = self.lines.iter().filter_map(|line| line.due_at).min();
        next_due.map_or(REST, |due| due.saturating_duration_since(Instant::now()))
    }
}

impl Role for Claimer {
    async fn tick(&mut self) -> Duration {
        let groups = self.shared.reporter.take(REPORT_CALLS_MAX);
        let asks = self.asks();
        if groups.is_empty() && asks.is_empty() {
            self.shared.listen.notify_one();
            return self.rest();
        }
        let broker = &self.shared.broker;
        let mut calls: Vec<_> = groups.iter().map(|group| group.call(broker)).collect();
        calls.extend(asks.iter().map(|ask| {
            let queue = &self.shared.queues[ask.queue];
            broker.claim_call(&queue.name, &ask.worker, ask.seq, ask.want)
        }));
        let mut answers = broker.run_all(calls).await.into_iter();
        let mut worked = take_in_reports(&self.shared, groups, &mut answers);
        for (ask, answer) in asks.into_iter().zip(answers) {
            worked &= self.take_in(ask, answer);
        }
        if worked {
            self.failures = 0;
            return AGAIN;
        }
        self.failures += 1;
        let wait = BACKOFF_FIRST.saturating_mul(1 << self.failures.min(8)).min(BACKOFF_MAX);
        // Nothing may cut this rest short: a dead Redis must not be asked in a loop.
        tokio::time::sleep(wait.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
        AGAIN
    }
}

/// Takes in the answers of reports; those that got none are held on. `true` if all got one.
pub(crate) fn take_in_reports(
    shared: &Shared,
    groups: Vec<Group>,
    answers: &mut impl Iterator<Item = Result<Reply, BrokerError>>,
) -> bool {
    let mut worked = true;
    for group in groups {
        let answer = answers.next().expect("an answer for each call");
        match answer.and_then(Broker::read_report) {
            Ok(stale) => {
                for position in stale {
                    if let Some(report) = group.reports.get(position) {
                        tracing::debug!(id = %report.lease().id, "reported before, or lost");
                    }
                }
                for report in &group.reports {
                    shared.attempts.remove(report.lease());
                }
                shared.reporter.answered(&group);
            }
            Err(problem) => {
                if !problem.is_transient() {
                    tracing::error!(queue = %group.queue, %problem, "a report was rejected; held");
                }
                shared.reporter.give_back(group);
                worked = false;
            }
        }
    }
    worked
}
