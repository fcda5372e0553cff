//! Takes turns with Redis: what finished since, and a claim for the idle slots, in one write.
//!
//! While one turn is under way the next one gathers, so batches grow with the load and an idle
//! worker adds no delay. Where half of the slots are enough for a good batch, two turns are under
//! way at once under load, so that Redis works while handlers run.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, future::BoxFuture, stream::FuturesOrdered};
use optimus_core::{
    Lease, WorkerId,
    broker::{BATCH_MAX, Broker, BrokerError, Claimed, Grant, Refusal, Reply},
};

use crate::{
    executor,
    prepare::{Claim, prepare},
    reporter::{Group, HELD_MAX},
    role::Role,
    shared::Shared,
};

/// Script calls of reports, and of claims, in one turn.
const REPORT_CALLS_MAX: usize = 8;
const CLAIM_CALLS_MAX: usize = 8;
const TURNS_MAX: usize = 2;
/// A second turn is only worth its calls with so much to report or to claim.
const SECOND_TURN_MIN: usize = 32;
const AGAIN: Duration = Duration::ZERO;
/// A claim that Redis rejects is asked again this much later.
const AFTER_REJECTION: Duration = Duration::from_secs(1);
const REST: Duration = Duration::from_secs(3600);
/// While a task runs alone, or waits for all others to end.
const LOOK_FOR_THE_END: Duration = Duration::from_millis(50);
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// The role that claims, and carries the reports along.
pub(crate) struct Claimer {
    shared: Arc<Shared>,
    lines: Vec<Line>,
    /// Taken in as they were sent: a claim counts as heard only when all before it were.
    turns: FuturesOrdered<BoxFuture<'static, Turn>>,
    /// Slots that claims under way may fill.
    reserved: usize,
    failures: u32,
    overflowing: bool,
}

/// One exchange with Redis: what was sent, and its answers.
struct Turn {
    groups: Vec<Group>,
    asks: Vec<Ask>,
    answers: Vec<Result<Reply, BrokerError>>,
}

/// What the claimer remembers of each served queue.
#[derive(Debug, Default)]
struct Line {
    seq: u64,
    /// A claim whose answer never came; it is asked for again under its number.
    unanswered: Option<Ask>,
    due_at: Option<Instant>,
    /// The last claim left work behind.
    has_more: bool,
    /// Claims that are not answered yet.
    under_way: usize,
}

/// One claim.
#[derive(Debug, Clone)]
struct Ask {
    queue: usize,
    /// Under the id that the worker had when it was sent.
    worker: WorkerId,
    seq: u64,
    want: usize,
    /// Of the queue, when it was sent.
    hints: u64,
    /// Nothing else is held, and nothing will be before its task has ended.
    alone: bool,
}

impl Claimer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let lines = shared.queues.iter().map(|_| Line::default()).collect();
        let turns = FuturesOrdered::new();
        Self { shared, lines, turns, reserved: 0, failures: 0, overflowing: false }
    }

    /// Starts a turn, if there is something to report or to claim.
    fn begin_turn(&mut self) -> bool {
        let alone = self.ask_alone();
        let groups = self.shared.reporter.take(REPORT_CALLS_MAX);
        let asks = alone.map_or_else(|| self.asks(), |ask| vec![ask]);
        if groups.is_empty() && asks.is_empty() {
            return false;
        }
        let broker = self.shared.broker.clone();
        let mut calls: Vec<_> = groups.iter().map(|group| group.call(&broker)).collect();
        calls.extend(asks.iter().map(|ask| {
            let name = &self.shared.queues[ask.queue].name;
            if ask.alone {
                broker.claim_alone_call(name, &ask.worker, ask.seq)
            } else {
                broker.claim_call(name, &ask.worker, ask.seq, ask.want)
            }
        }));
        for ask in &asks {
            self.reserved += ask.want;
            self.lines[ask.queue].under_way += 1;
        }
        self.turns.push_back(Box::pin(async move {
            let answers = broker.run_all(calls).await;
            Turn { groups, asks, answers }
        }));
        true
    }

    /// Whether another turn beside those under way would carry enough.
    fn is_second_worth_it(&self) -> bool {
        let enough = SECOND_TURN_MIN.max(self.turn_max() / 2);
        let claimable = || {
            let deep = self.lines.iter().any(|line| line.has_more && line.unanswered.is_none());
            deep && self.idle() >= enough
        };
        self.turns.len() < TURNS_MAX && (self.shared.reporter.waiting() >= enough || claimable())
    }

    fn idle(&self) -> usize {
        self.shared.slots.idle().saturating_sub(self.reserved)
    }

    /// The most that one turn claims.
    fn turn_max(&self) -> usize {
        let concurrency = self.shared.config.concurrency;
        if concurrency < 2 * SECOND_TURN_MIN { concurrency } else { concurrency.div_ceil(2) }
    }

    /// Once nothing but suspects is held: gives them back, and asks for one of them anew.
    fn ask_alone(&mut self) -> Option<Ask> {
        let shared = self.shared.clone();
        let unanswered = self.lines.iter().any(|line| line.unanswered.is_some());
        let busy = !self.turns.is_empty() || unanswered || !shared.attempts.is_empty();
        if !shared.suspects.any() || busy || shared.reporter.len() > 0 {
            return None;
        }
        shared.suspects.end();
        let (held, home) = shared.suspects.release();
        for lease in held {
            executor::give_back(&shared, lease);
        }
        let at = shared.queues.iter().position(|queue| Some(&queue.name) == home.as_ref())?;
        if shared.shutdown.is_quiet() {
            return None;
        }
        Some(self.ask(at, 1, true))
    }

    fn ask(&mut self, at: usize, want: usize, alone: bool) -> Ask {
        self.lines[at].seq += 1;
        let (seq, queue) = (self.lines[at].seq, &self.shared.queues[at]);
        Ask { queue: at, worker: queue.worker(), seq, want, hints: queue.hints(), alone }
    }

    /// What to claim now: never more, over all queues and turns, than there are idle slots.
    fn asks(&mut self) -> Vec<Ask> {
        if self.shared.shutdown.is_quiet() || self.is_overflowing() {
            return Vec::new();
        }
        let mut asks: Vec<Ask> =
            self.lines.iter_mut().filter_map(|l| l.unanswered.take()).collect();
        for ask in &mut asks {
            ask.worker = self.shared.queues[ask.queue].worker();
        }
        if self.shared.suspects.any() {
            return asks;
        }
        let again: usize = asks.iter().map(|ask| ask.want).sum();
        let idle = self.idle().saturating_sub(again).min(self.turn_max());
        let now = Instant::now();
        for (queue, line) in self.shared.queues.iter().zip(&mut self.lines) {
            if line.due_at.is_some_and(|due_at| due_at <= now) {
                line.due_at = None;
                queue.hint();
            }
        }
        let open: Vec<usize> = (0..self.lines.len())
            .filter(|at| self.shared.queues[*at].may_have_work())
            .filter(|at| self.lines[*at].under_way == 0 || self.lines[*at].has_more)
            .filter(|at| asks.iter().all(|ask| ask.queue != *at))
            .collect();
        let weights: Vec<u32> = open.iter().map(|at| self.shared.queues[*at].weight).collect();
        let shares = self.shared.config.order.divide(idle, &weights, fastrand::usize(..));
        for (at, mut share) in open.into_iter().zip(shares) {
            while share > 0 && asks.len() < CLAIM_CALLS_MAX {
                let want = share.min(BATCH_MAX);
                asks.push(self.ask(at, want, false));
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
                line.due_at = claimed.next_due.map(|wait| Instant::now() + wait);
                line.has_more = claimed.more;
                if !claimed.more {
                    queue.found_empty(ask.hints);
                    // Another queue may keep the turns going for ever.
                    self.shared.listen.notify_one();
                } else if !queue.may_have_work() {
                    queue.hint();
                }
                self.start(&ask, claimed);
                return true;
            }
            Err(problem) => match problem.refusal() {
                Some(Refusal::Paused) => queue.found_empty(ask.hints),
                Some(Refusal::Lapsed) => {
                    self.shared.beat.notify_one();
                    return false;
                }
                Some(_) => {}
                None if problem.is_transient() => {
                    line.unanswered = Some(ask);
                    return false;
                }
                None => {
                    // It keeps neither slots nor turns from the worker's other queues.
                    tracing::error!(queue = %queue.name, %problem, "a claim was rejected");
                    line.due_at = Some(Instant::now() + AFTER_REJECTION);
                    queue.found_empty(ask.hints);
                }
            },
        }
        true
    }

    fn start(&self, ask: &Ask, claimed: Claimed) {
        let queue = &self.shared.queues[ask.queue];
        let certain =
            queue.worker() == ask.worker && queue.lease_is_certain(self.shared.config.lease);
        let Claimed { token, now_ms, grants, .. } = claimed;
        let mut prepared = Vec::with_capacity(grants.len());
        for Grant { id, record, tries } in grants {
            let lease = Lease { id, worker: ask.worker.clone(), token };
            match self.shared.slots.take().filter(|_| certain) {
                Some(slot) => {
                    let claim = Claim { lease, record, tries, now_ms, alone: ask.alone };
                    prepared.extend(prepare(&self.shared, claim, slot));
                }
                None => executor::give_back(&self.shared, lease),
            }
        }
        executor::start(&self.shared, prepared);
        queue.set_heard_seq(ask.seq);
    }

    /// When to take the next turn unless something wakes the claimer before.
    fn rest(&self) -> Duration {
        let next_due = self.lines.iter().filter_map(|line| line.due_at).min();
        let rest = next_due.map_or(REST, |due| due.saturating_duration_since(Instant::now()));
        // The keeper may have sent the last report, and tells nobody.
        if self.shared.suspects.any() { rest.min(LOOK_FOR_THE_END) } else { rest }
    }

    /// Takes in a turn's answers. `true` if all came.
    fn finish(&mut self, turn: Turn) -> bool {
        let Turn { groups, asks, answers } = turn;
        for ask in &asks {
            self.reserved -= ask.want;
            self.lines[ask.queue].under_way -= 1;
        }
        let mut answers = answers.into_iter();
        let mut worked = take_in_reports(&self.shared, groups, &mut answers);
        for (ask, answer) in asks.into_iter().zip(answers) {
            worked &= self.take_in(ask, answer);
        }
        worked
    }

    /// What comes first: a turn's answers, or something that a second turn could take along.
    async fn next(&mut self) -> Option<Turn> {
        let room = self.turns.len() < TURNS_MAX;
        tokio::select! {
            biased;
            turn = self.turns.next() => turn,
            () = self.shared.turn.notified(), if room => None,
        }
    }
}

impl Role for Claimer {
    /// Turns, one after the other, until there is nothing to do. None is left under way.
    async fn tick(&mut self) -> Duration {
        if !self.begin_turn() {
            self.shared.listen.notify_one();
            return self.rest();
        }
        let mut worked = true;
        while !self.turns.is_empty() {
            if worked && self.is_second_worth_it() {
                self.begin_turn();
            }
            if let Some(turn) = self.next().await {
                worked &= self.finish(turn);
                // What is ready runs first, so that what ends at once goes along.
                tokio::task::yield_now().await;
                if worked && self.turns.is_empty() {
                    self.begin_turn();
                }
            }
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
                    if let Some(lease) = group.lease(position) {
                        tracing::debug!(id = %lease.id, "reported before, or lost");
                    }
                }
                shared.attempts.remove(group.leases());
                shared.reporter.answered(&group);
            }
            Err(problem) => {
                if !problem.is_transient() {
                    let queue = group.queue();
                    tracing::error!(%queue, %problem, "a report was rejected; held");
                }
                shared.reporter.give_back(group);
                worked = false;
            }
        }
    }
    worked
}
