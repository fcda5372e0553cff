//! The statistics of a queue over some days, a process that is not heard from, and an operator who
//! reads both.

use std::time::Duration;

use optimus_core::broker::{Attendance, Broker};
use optimus_core::{ProcessCursor, StatsUnit, TaskStats, WorkerId};
use tokio::time::sleep;

use super::Actor;
use super::hand::{APART, Hand};
use super::steps::ms;
use crate::queues::queue;
use crate::tasks::Kind;
use crate::world::LEASE;

/// Longer than a day.
const LATER_MS: i64 = 26 * 3_600 * 1_000;
const GONE_AFTER: Duration = Duration::from_secs(1);
const SILENT: &str = "silent";

pub(super) async fn statistics(actor: &Actor) {
    let dead = actor.submit(1, Kind::Fatal).await;
    actor.wait_for(1, dead).await;
    attend(actor, SILENT).await;
    ask(actor).await;
    sleep(2 * GONE_AFTER).await;
    // The other process is no longer heard from.
    attend(actor, "present").await;
    drop(actor.user.client.broker().leave_fleet(&Broker::fleet(), &id("present")).await);
    count(actor).await;
    read(actor).await;
    // A worker that ends adds its last counts.
    actor.world.network.kill(1);
    sleep(LEASE).await;
}

fn id(name: &str) -> WorkerId {
    WorkerId::from_stored(name)
}

async fn attend(actor: &Actor, name: &str) {
    let id = &id(name);
    let attendance = Attendance { id, gone_after: GONE_AFTER, description: "{}", doing: "{}" };
    drop(actor.user.client.broker().attend(&Broker::fleet(), attendance).await);
}

/// Asks processes for something. A process of the scene obeys soon, and its workers end well.
async fn ask(actor: &Actor) {
    let client = &actor.user.client;
    drop(client.process(&id(SILENT)).quiet().await);
    drop(client.process(&id("unknown")).quiet().await);
    let mut after: Option<ProcessCursor> = None;
    for _ in 0..4 {
        let Ok(page) = client.inspector().processes(after.as_ref(), 1).await else { break };
        for process in &page.rows {
            drop(client.process(&process.id).slots(3).await);
            drop(client.process(&process.id).resume().await);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    sleep(ms(300)).await;
}

/// Counts in several minutes, hours and days.
async fn count(actor: &Actor) {
    let mut stats = TaskStats::default();
    stats.successes = 1;
    stats.record(Some(ms(3)), Some(ms(40)));
    for number in 1..5 {
        let hand = Hand::new(actor, "counts", LEASE).await;
        drop(hand.broker.tally(&hand.queue, &hand.worker, number, [("work", &stats)]).await);
        actor.world.network.set_clock(LATER_MS);
        let late = hand.broker.tally(&hand.queue, &hand.worker, number, [("work", &stats)]).await;
        drop(late);
    }
}

async fn read(actor: &Actor) {
    let inspector = actor.user.client.inspector();
    for unit in [StatsUnit::Minute, StatsUnit::Hour, StatsUnit::Day] {
        let found = inspector.stats(APART, unit, unit.kept()).await;
        // Two hours of minutes are kept.
        let is_whole = unit == StatsUnit::Minute
            || actor.world.network.faults() > 0
            || found.is_ok_and(|stats| stats.total().successes == 4);
        if !is_whole {
            actor.world.network.complain(format!("statistics by {unit:?} lack successes"));
        }
    }
    drop(inspector.fingerprints(queue().as_str()).await);
    drop(inspector.totals(queue().as_str()).await);
}
