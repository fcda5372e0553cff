//! Deaths of some days that a queue keeps, and an operator who reads and removes them.

use std::time::Duration;

use optimus_core::broker::{FailureOutcome, Keep};
use optimus_core::{HistoryFilter, HistoryOptions};
use tokio::time::sleep;

use super::Actor;
use super::hand::{APART, Hand};
use super::steps::ms;
use crate::world::LEASE;

const DAY_MS: i64 = 86_400_000;
/// Less than the lines of three deaths.
const BYTES: u64 = 120;
const AGE: Duration = Duration::from_secs(1_000 * 86_400);

pub(super) async fn history(actor: &Actor) {
    let hand = Hand::new(actor, "keeps", LEASE).await;
    let client = &actor.user.client;
    drop(client.keep_history(APART, &HistoryOptions::days(5)).await);
    drop(hand.broker.retain(&hand.queue, Some((5, BYTES, "*"))).await);
    // The third death is one too many, so the first one leaves.
    for worker in ["a", "b", "c"] {
        die(actor, worker).await;
    }
    read(actor).await;
    pass(actor, 2).await;
    die(actor, "d").await;
    // The first day is too old then, and the second one is not.
    pass(actor, 4).await;
    purge(actor).await;
    read(actor).await;
    // Nothing is left after the second one, and nothing is kept any more.
    drop(client.stop_history(APART).await);
    pass(actor, 3).await;
    purge(actor).await;
    drop(client.keep_history(APART, &HistoryOptions::days(5)).await);
    die(actor, "e").await;
    drop(client.remove_history(APART).await);
}

/// Lets a task die on a worker of that name.
async fn die(actor: &Actor, worker: &str) {
    let mut hand = Hand::new(actor, worker, LEASE).await;
    hand.submit(|call| call).await;
    let run = hand.claim(1).await;
    hand.fail(&run, FailureOutcome::Dead).await;
}

async fn pass(actor: &Actor, days: i64) {
    actor.world.network.set_clock(days * DAY_MS);
    sleep(ms(300)).await;
}

async fn purge(actor: &Actor) {
    let hand = Hand::new(actor, "purges", LEASE).await;
    let keep = Keep { tasks: 1_000_000, bytes: u64::MAX >> 12, age: AGE };
    drop(hand.broker.purge(&hand.queue, keep, AGE).await);
}

async fn read(actor: &Actor) {
    let inspector = actor.user.client.inspector();
    let Ok(now) = inspector.now().await else { return };
    let filter = HistoryFilter::day(now.date_naive());
    let mut after = None;
    for _ in 0..4 {
        let Ok(page) = inspector.history(APART, &filter, after.as_ref(), 1).await else { return };
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    drop(inspector.history_details(APART).await);
}
