//! Deaths of some days that a queue keeps, what the tasks have said, and an operator who reads and
//! removes them.

use std::time::Duration;

use optimus_core::broker::{Broker, FailureOutcome, Keep, SaidLines};
use optimus_core::{HistoryFilter, HistoryOptions, TaskId, platform};

use super::Actor;
use super::hand::{APART, Hand};
use crate::world::LEASE;

const DAY_MS: u64 = 86_400_000;
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
        die(actor, worker, 0).await;
    }
    read(actor).await;
    die(actor, "d", 2).await;
    // The first day is too old then, and the second one is not.
    purge(actor, 6).await;
    read(actor).await;
    // Nothing is left after the second one, and nothing is kept any more.
    drop(client.stop_history(APART).await);
    purge(actor, 9).await;
    drop(client.keep_history(APART, &HistoryOptions::days(5)).await);
    die(actor, "e", 0).await;
    drop(client.remove_history(APART).await);
}

/// Lets a task die on a worker of that name, so many days later.
async fn die(actor: &Actor, worker: &str, days: u64) {
    let mut hand = Hand::new(actor, worker, LEASE).await;
    hand.submit(|call| call).await;
    let run = hand.claim(1).await;
    hand.broker = later(&hand, days);
    // One of the two has ended long ago.
    let gone = TaskId::new(hand.queue.clone());
    let said = run.iter().map(|lease| &lease.id).chain([&gone]).map(lines).collect::<Vec<_>>();
    drop(hand.broker.annotate(&hand.queue, &said).await);
    hand.fail(&run, FailureOutcome::Dead).await;
}

fn lines(id: &TaskId) -> SaidLines {
    SaidLines { id: id.clone(), fence: 1, last: 1, count: 1, text: "1 1 copied".into() }
}

/// Returns the broker, so many days later.
fn later(hand: &Hand<'_>, days: u64) -> Broker {
    hand.broker.at(platform::now_ms() + days * DAY_MS)
}

async fn purge(actor: &Actor, days: u64) {
    let hand = Hand::new(actor, "purges", LEASE).await;
    let keep = Keep { age: AGE, ..Keep::DEFAULT };
    drop(later(&hand, days).purge(&hand.queue, keep, AGE).await);
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
