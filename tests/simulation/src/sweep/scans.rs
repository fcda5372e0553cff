//! A source: rows become tasks, one worker dies, the target of the tasks fails, and an operator
//! pauses the source, changes its slices and lets it scan at once.

use std::time::Duration;

use optimus_core::SourceHandle;
use tokio::time::{Instant, sleep};

use super::Actor;
use super::steps::ms;
use crate::rows::{ROWS, SLICES};
use crate::world::{LEASE, World};

/// A dead worker's tasks, and tasks whose answers were lost, come back within this time.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn scans(actor: &Actor) {
    let (client, rows) = (&actor.user.client, &actor.world.network.rows);
    let source = client.source(ROWS);
    drop(client.source("nobody").scan_now().await);
    rows.add(0..12);
    are_done(actor, &source, "the first rows").await;
    drop(source.because("ann", "a repair").pause().await);
    rows.add(12..20);
    sleep(LEASE / 2).await;
    drop(source.resume().await);
    are_done(actor, &source, "those of a pause").await;
    drop(source.set_slices(SLICES + 1).await);
    rows.add(20..32);
    are_done(actor, &source, "those of a new count").await;
    rows.go_away();
    rows.add(32..40);
    is_slow(&source).await;
    drop(client.sources().await);
    // Its slices go to the others when its lease is over.
    if let Some(stay) = actor.world.network.posts.stays().last() {
        actor.world.network.kill(stay.process);
    }
    rows.come_back();
    drop(source.scan_now().await);
    rows.add(40..48);
    are_done(actor, &source, "those of a failing target").await;
}

/// Waits until all rows are done. A store that was rolled back may have an old pause.
async fn are_done(actor: &Actor, source: &SourceHandle, which: &str) {
    let (network, begun) = (&actor.world.network, Instant::now());
    let mut checks = 0_u32;
    while !network.rows.open().is_empty() {
        if begun.elapsed() > PATIENCE {
            let open = network.rows.open();
            network.complain(format!("{which}: {open:?} have not become tasks in time"));
            return;
        }
        checks += 1;
        if checks.is_multiple_of(250) {
            drop(source.resume().await);
            drop(source.scan_now().await);
        }
        sleep(ms(20)).await;
    }
}

/// Waits for a limited time until the source is slow.
async fn is_slow(source: &SourceHandle) {
    let begun = Instant::now();
    while begun.elapsed() < 5 * LEASE {
        if source.look().await.is_ok_and(|seen| seen.slow_since.is_some()) {
            return;
        }
        sleep(ms(250)).await;
    }
}

/// Complains about pages that have not ended with their worker, and about rows whose tasks were
/// repeated. One fault costs at most the tasks of a worker.
pub(super) fn check(world: &World) {
    for stay in world.network.posts.open() {
        world.network.complain(format!("nobody has ended {stay:?}"));
    }
    let again = world.network.rows.again();
    if again > 4 && !world.network.journal.was_rolled_back() {
        world.network.complain(format!("{again} tasks have found their row done"));
    }
}
