//! Claims tasks and sends reports: [`Claimer`]. A turn is one write to Redis. It contains the
//! reports since the last turn and a claim for the idle slots.
//!
//! While one turn is under way, reports collect for the next one. So batches grow with the load,
//! and an idle worker adds no delay. If half of the slots are enough for a good batch, a loaded
//! worker has two or more turns under way at once, so that Redis works while handlers run.

use std::{future::ready, sync::Arc, task::Poll, time::Duration};

use futures_util::{StreamExt, future::BoxFuture, poll, stream::FuturesOrdered};
use optimus_core::{
    broker::{BrokerError, Reply},
    platform,
};

use crate::{
    claim_request::ClaimRequest, claims::Claims, reporter::take_in_reports, role::Role,
    shared::Shared,
};

/// The most script calls of reports in one turn.
const REPORT_CALLS_MAX: usize = 24;
const AGAIN: Duration = Duration::ZERO;
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// The role that claims tasks. It sends the reports in the same writes.
pub(crate) struct Claimer {
    shared: Arc<Shared>,
    claims: Claims,
    /// The turns under way, in the order in which they were sent. A claim counts as received only
    /// once all claims before it are received.
    turns: FuturesOrdered<BoxFuture<'static, Turn>>,
    failures: u32,
}

/// One exchange with Redis: what was sent, and its answers.
struct Turn {
    /// The number under which the reporter keeps the batches of this turn.
    number: u64,
    /// How many batches this turn sent.
    batches: usize,
    requests: Vec<ClaimRequest>,
    answers: Vec<Result<Reply, BrokerError>>,
}

impl Claimer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let (claims, turns) = (Claims::new(shared.clone()), FuturesOrdered::new());
        Self { shared, claims, turns, failures: 0 }
    }

    /// Starts a turn if there is a report to send or a task to claim.
    async fn begin_turn(&mut self) -> bool {
        // `ask_alone` comes first, so that this turn also sends the releases that it causes.
        let alone = self.claims.ask_alone();
        let batches = self.shared.reporter.take(REPORT_CALLS_MAX);
        let requests = alone.map_or_else(|| self.claims.requests(), |request| vec![request]);
        if batches.is_empty() && requests.is_empty() {
            return false;
        }
        let broker = self.shared.broker.clone();
        let mut calls: Vec<_> =
            batches.iter().map(|report_batch| report_batch.call(&broker)).collect();
        calls.extend(requests.iter().map(|request| self.claims.send(request)));
        let count = batches.len();
        let number = self.shared.reporter.lend(batches);
        let mut turn: BoxFuture<'static, Turn> = Box::pin(async move {
            let answers = broker.run_all(calls).await;
            Turn { number, batches: count, requests, answers }
        });
        // The first poll sends the calls. Without it, a turn would leave only after the tasks of an
        // answer that has arrived meanwhile, together with the turn after it, and Redis would have
        // nothing to do while handlers run.
        match poll!(&mut turn) {
            Poll::Ready(turn) => self.turns.push_back(Box::pin(ready(turn))),
            Poll::Pending => self.turns.push_back(turn),
        }
        true
    }

    /// Returns whether another turn would be large enough while the others are under way.
    fn is_another_worth_it(&self) -> bool {
        let enough = self.claims.limits.enough(self.turns.len());
        let reports = self.shared.reporter.ready();
        self.has_room() && (reports >= enough || self.claims.could_fill(enough))
    }

    /// Returns whether another turn may be under way.
    fn has_room(&self) -> bool {
        self.turns.len() < self.claims.limits.turns
    }

    /// Processes the answers of a turn. Returns `true` if all answers arrived.
    fn finish(&mut self, turn: Turn) -> bool {
        let Turn { number, batches, requests, mut answers } = turn;
        let to_requests = answers.split_off(batches);
        let batches = self.shared.reporter.take_back(number);
        let mut worked = take_in_reports(&self.shared, batches, &mut answers.into_iter());
        for (request, answer) in requests.into_iter().zip(to_requests) {
            worked &= self.claims.take_in(request, answer);
        }
        #[cfg(feature = "metrics")]
        if worked {
            self.shared.metrics.beats.turns.ended();
        } else {
            self.shared.metrics.beats.turns.ended_in_part();
        }
        worked
    }

    /// Returns the answers of the next turn. Returns `None` if an event that another turn could
    /// handle came first.
    async fn next(&mut self) -> Option<Turn> {
        let room = self.has_room();
        tokio::select! {
            biased;
            turn = self.turns.next() => turn,
            () = self.shared.wakeups.claimer.woken(), if room => None,
        }
    }
}

impl Role for Claimer {
    /// Takes turns until there is nothing to do. Afterwards, no turn is under way.
    async fn tick(&mut self) -> Duration {
        if !self.begin_turn().await {
            return self.claims.rest();
        }
        let mut worked = true;
        while !self.turns.is_empty() {
            while worked && self.is_another_worth_it() && self.begin_turn().await {}
            if let Some(turn) = self.next().await {
                worked &= self.finish(turn);
                // Ready tasks run first, so that the next turn sends the reports of tasks that end
                // at once.
                platform::yield_now().await;
                if worked && self.turns.is_empty() {
                    self.begin_turn().await;
                }
            }
        }
        if worked {
            self.failures = 0;
            return AGAIN;
        }
        self.failures += 1;
        let wait = BACKOFF_FIRST.saturating_mul(1 << self.failures.min(8)).min(BACKOFF_MAX);
        // No event may end this rest early, because the claimer must not send calls to a dead Redis
        // in a loop.
        tokio::time::sleep(wait.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
        AGAIN
    }
}
