//! Shards: workers hold them, one dies, one joins and one ends, while an operator changes their
//! number, pauses them and begins again.

use optimus_core::ShardsHandle;
use tokio::time::{Instant, sleep};

use super::Actor;
use super::steps::ms;
use crate::sources::{ROUNDS, SHARDS, Sources};
use crate::world::{LEASE, Setup, World};

pub(super) async fn shards(actor: &Actor) {
    let shards = actor.user.client.shards(ROUNDS);
    drop(actor.user.client.shards("nobody").set_count(3).await);
    drop(actor.user.client.shards("nobody").pause(0).await);
    works_on(actor, SHARDS).await;
    operate(&shards).await;
    works_on(actor, SHARDS).await;
    // The pauses of single shards end with another number.
    drop(shards.pause(0).await);
    drop(shards.set_count(SHARDS + 1).await);
    works_on(actor, SHARDS + 1).await;
    // Now each of the new shards has a position.
    sleep(LEASE / 4).await;
    // Its shards go to the others when its lease is over.
    if let Some(stay) = actor.world.network.posts.open().first() {
        actor.world.network.kill(stay.process);
    }
    let joins = actor.world.worker(Setup { sources: Sources::Shards, ..Setup::of(1) });
    sleep(LEASE).await;
    drop(shards.restart().await);
    drop(shards.set_count(SHARDS + 1).await);
    works_on(actor, SHARDS + 1).await;
    actor.world.ask_to_end(joins.process);
    drop(shards.look().await);
    drop(actor.user.client.shard_names().await);
}

/// Pauses and resumes one shard and all of them.
async fn operate(shards: &ShardsHandle) {
    drop(shards.because("ann", "a repair").pause(1).await);
    drop(shards.pause(99).await);
    sleep(LEASE / 2).await;
    drop(shards.pause_all().await);
    sleep(LEASE / 2).await;
    drop(shards.resume_one(1).await);
    drop(shards.resume().await);
}

/// Waits for a limited time until all shards of this count have begun a round from now on.
async fn works_on(actor: &Actor, count: u16) {
    let (posts, begun) = (&actor.world.network.posts, Instant::now());
    let before = posts.stays().len();
    let is_new = |index: u16| posts.stays()[before..].iter().any(|stay| stay.index == index);
    while !(0..count).all(is_new) && begun.elapsed() < 5 * LEASE {
        sleep(ms(20)).await;
    }
}

/// Complains if a round has not ended with its worker.
pub(super) fn check(world: &World) {
    for stay in world.network.posts.open() {
        world.network.complain(format!("nobody has ended {stay:?}"));
    }
}
