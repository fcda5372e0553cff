//! Rosters under random histories: members that are killed, frozen and join, answers that are
//! lost, outages, counts that change, flushes and failovers that lose writes. The members run the
//! code of the worker ([`HeldPosts`](optimus_core::HeldPosts)) on a clock of the test. After each
//! step the test checks what the members believe:
//!
//! - a post has one holder, except within a lease after a failover;
//! - nobody holds posts of two generations at the same time, with the same exception;
//! - no fence goes back;
//! - once nothing has happened for a while, each post is held, and loads differ by at most one.
//!
//! `OPTIMUS_ROSTER_SEEDS=1000 cargo test -p optimus-transitions --test rosters` runs more of them.

#[path = "../common/mod.rs"]
#[macro_use]
mod common;
mod history;
mod member;

use common::{acts, bench, dump, jobs, rosters};
use history::{Faults, History};

/// How many histories of each kind are tried.
fn seeds() -> u64 {
    let given = std::env::var("OPTIMUS_ROSTER_SEEDS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(6)
}

async fn hold(faults: Faults) {
    for seed in 0..seeds() {
        let mut history = History::new(bench::Bench::embedded(), seed, faults);
        history.run().await;
        assert!(history.quiet_looks > 0, "seed {seed}: the roster was never quiet");
    }
}

const USUAL: Faults = Faults { recounts: 0, flushes: 0, failovers: 0 };

#[tokio::test]
async fn kills_freezes_joins_outages_and_lost_answers() {
    hold(USUAL).await;
}

#[tokio::test]
async fn counts_that_change() {
    hold(Faults { recounts: 3, ..USUAL }).await;
}

#[tokio::test]
async fn flushes() {
    hold(Faults { flushes: 2, ..USUAL }).await;
}

#[tokio::test]
async fn failovers_that_lose_writes() {
    hold(Faults { failovers: 2, recounts: 1, ..USUAL }).await;
}

#[tokio::test]
async fn histories_on_a_real_redis() {
    let faults = Faults { recounts: 2, flushes: 1, failovers: 0 };
    let mut history = History::new(bench::Bench::redis().await, 77, faults);
    history.run().await;
}
