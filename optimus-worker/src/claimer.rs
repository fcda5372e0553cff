//! Takes turns with Redis: what finished since, and a claim for the idle slots, in one write.
//!
//! While one turn is under way the next one gathers, so batches grow with the load and an idle
//! worker adds no delay. Where half of the slots are enough for a good batch, two turns are under
//! way at once under load, so that Redis works while handlers run.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, future::BoxFuture, stream::FuturesOrdered};
use optimus_core::{
    broker::{BrokerError, Reply},
    platform,
};

use crate::{
    ask::Ask,
    claims::{Claims, HALF_MIN},
    reporter::take_in_reports,
    role::Role,
    shared::Shared,
};

/// Script calls of reports in one turn.
const REPORT_CALLS_MAX: usize = 24;
const TURNS_MAX: usize = 2;
const AGAIN: Duration = Duration::ZERO;
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// The role that claims, and carries the reports along.
pub(crate) struct Claimer {
    shared: Arc<Shared>,
    claims: Claims,
    /// Taken in as they were sent: a claim counts as heard only when all before it were.
    turns: FuturesOrdered<BoxFuture<'static, Turn>>,
    failures: u32,
}

/// One exchange with Redis: what was sent, and its answers.
struct Turn {
    /// Under which the reporter keeps the groups.
    number: u64,
    /// How many groups were sent.
    batches: usize,
    asks: Vec<Ask>,
    answers: Vec<Result<Reply, BrokerError>>,
}

impl Claimer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let (claims, turns) = (Claims::new(shared.clone()), FuturesOrdered::new());
        Self { shared, claims, turns, failures: 0 }
    }

    /// Starts a turn, if there is something to report or to claim.
    fn begin_turn(&mut self) -> bool {
        // First, for what it gives back goes along.
        let alone = self.claims.ask_alone();
        let batches = self.shared.reporter.take(REPORT_CALLS_MAX);
        let asks = alone.map_or_else(|| self.claims.asks(), |ask| vec![ask]);
        if batches.is_empty() && asks.is_empty() {
            return false;
        }
        let broker = self.shared.broker.clone();
        let mut calls: Vec<_> =
            batches.iter().map(|report_batch| report_batch.call(&broker)).collect();
        calls.extend(asks.iter().map(|ask| self.claims.send(ask)));
        let count = batches.len();
        let number = self.shared.reporter.lend(batches);
        self.turns.push_back(Box::pin(async move {
            let answers = broker.run_all(calls).await;
            Turn { number, batches: count, asks, answers }
        }));
        true
    }

    /// Whether another turn beside those under way would carry enough.
    fn is_second_worth_it(&self) -> bool {
        let enough = HALF_MIN.max(self.claims.turn_max() / 2);
        let reports = self.shared.reporter.ready();
        self.turns.len() < TURNS_MAX && (reports >= enough || self.claims.could_fill(enough))
    }

    /// Takes in a turn's answers. `true` if all came.
    fn finish(&mut self, turn: Turn) -> bool {
        let Turn { number, batches, asks, mut answers } = turn;
        let to_asks = answers.split_off(batches);
        let batches = self.shared.reporter.take_back(number);
        let mut worked = take_in_reports(&self.shared, batches, &mut answers.into_iter());
        for (ask, answer) in asks.into_iter().zip(to_asks) {
            worked &= self.claims.take_in(ask, answer);
        }
        worked
    }

    /// What comes first: a turn's answers, or something that a second turn could take along.
    async fn next(&mut self) -> Option<Turn> {
        let room = self.turns.len() < TURNS_MAX;
        tokio::select! {
            biased;
            turn = self.turns.next() => turn,
            () = self.shared.wakeups.claimer.woken(), if room => None,
        }
    }
}

impl Role for Claimer {
    /// Turns, one after the other, until there is nothing to do. None is left under way.
    async fn tick(&mut self) -> Duration {
        if !self.begin_turn() {
            return self.claims.rest();
        }
        let mut worked = true;
        while !self.turns.is_empty() {
            if worked && self.is_second_worth_it() {
                self.begin_turn();
            }
            if let Some(turn) = self.next().await {
                worked &= self.finish(turn);
                // What is ready runs first, so that what ends at once goes along.
                platform::yield_now().await;
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
