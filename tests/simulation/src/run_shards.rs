//! Runs shards from a seed: workers that join, end, die and are cut off, failovers or clocks that
//! are set, a flush, and an operator who changes the number of shards and pauses them.
//!
//! A shard has one worker at any time, also while its number changes. Without faults, each shard is
//! worked on within a lease and a second, and the workers hold about the same number of shards.

use std::sync::Arc;
use std::time::Duration;

use optimus_core::{Client, ShardsDetails};
use tokio::time::{Instant, sleep};

use crate::fault_plan::{Fair, Rough};
use crate::nemesis::{Nemesis, Plan};
use crate::run::{Outcome, Voice};
use crate::run_sources::{end, outcome};
use crate::sources::{ROUNDS, Sources};
use crate::world::{LEASE, Setup, World, simulate};

const ACTS: u32 = 20;
/// A failover breaks the connection, and after a flush nobody knows the shards for a moment.
const RESUMES_MAX: u32 = 5;
/// The longest time between two acts of the operator.
const REST_MAX_MS: u64 = 4_000;
/// Members count for what others give back after a part of a lease, and rounds take some time.
const SETTLES_WITHIN: Duration = Duration::from_secs(15);
/// How long a shard may have no worker after the death of one.
const UNHELD_MAX: Duration = Duration::from_secs(LEASE.as_secs() + 1);

pub(crate) fn run(seed: u64, voice: Voice) -> Outcome {
    let mut random = fastrand::Rng::with_seed(!seed);
    simulate(seed, async |world| {
        let world = Arc::new(world);
        if voice == Voice::Loud {
            world.network.be_loud();
        }
        run_scene(&world, &mut random).await;
        outcome(seed, &world)
    })
}

async fn run_scene(world: &Arc<World>, random: &mut fastrand::Rng) {
    let network = &world.network;
    let fails_over = random.u8(..3) == 0;
    let plan = Plan {
        workers: random.usize(2..7),
        fails_over,
        sets_clock: !fails_over && random.bool(),
        setup: Some(Setup { sources: Sources::Shards, ..Setup::of(2) }),
        rarity: [4, 10, 30][random.usize(..3)],
    };
    // After a flush, a clock that was set back could give a fence again.
    let flushes = !plan.sets_clock && random.bool();
    let flushes_at = flushes.then(|| random.u32(..ACTS));
    network.check_every(random.u64(8..64));
    if fails_over {
        network.keep_copies();
    }
    network.set_fault_plan(Rough::new(random.u64(..), LEASE));
    let client = world.client(0).await.expect("the observer has no faults");
    let mut nemesis = Nemesis::new(world.clone(), plan, random.fork());
    for act in 0..ACTS {
        let rest = Duration::from_millis(random.u64(..REST_MAX_MS));
        nemesis.run(Instant::now() + rest).await;
        operate(&client, random).await;
        if flushes_at == Some(act) {
            network.flush();
        }
    }
    network.set_fault_plan(Fair);
    network.heal();
    nemesis.be_calm();
    for _ in 0..RESUMES_MAX {
        if client.shards(ROUNDS).resume().await.is_ok() {
            break;
        }
        sleep(LEASE).await;
    }
    settle(world, &client, &mut nemesis).await;
    lose_one(world, &client, &mut nemesis).await;
    end(world, &mut nemesis).await;
}

async fn operate(client: &Client, random: &mut fastrand::Rng) {
    let shards = client.shards(ROUNDS);
    match random.u8(..12) {
        0..3 => drop(shards.set_count(random.u16(1..10)).await),
        3 => drop(shards.pause(random.u16(..4)).await),
        4 => drop(shards.pause_all().await),
        5..8 => drop(shards.resume().await),
        8 => drop(shards.restart().await),
        _ => drop(shards.look().await),
    }
}

/// Waits until nothing has happened for a while, and checks that the shards are shared.
async fn settle(world: &Arc<World>, client: &Client, nemesis: &mut Nemesis) {
    nemesis.run(Instant::now() + SETTLES_WITHIN).await;
    let Ok(seen) = client.shards(ROUNDS).look().await else { return };
    expect_all_held(world, &seen, "after all faults");
    let loads: Vec<usize> = seen.workers.iter().map(|worker| worker.holds).collect();
    let (least, most) = (loads.iter().min().copied(), loads.iter().max().copied());
    if most.unwrap_or(0) > least.unwrap_or(0) + 1 {
        world.network.complain(format!("the workers hold {loads:?} shards"));
    }
}

/// Kills a worker, and checks that its shards have others in time.
async fn lose_one(world: &Arc<World>, client: &Client, nemesis: &mut Nemesis) {
    let Some(stay) = world.network.posts.open().first().copied() else { return };
    world.network.kill(stay.process);
    nemesis.tend();
    sleep(UNHELD_MAX).await;
    if let Ok(seen) = client.shards(ROUNDS).look().await {
        expect_all_held(world, &seen, "after a death");
    }
}

fn expect_all_held(world: &World, seen: &ShardsDetails, when: &str) {
    let free = seen.shards.iter().filter(|shard| shard.holder.is_none());
    let free: Vec<u16> = free.map(|shard| shard.index).collect();
    if !free.is_empty() || seen.shards.is_empty() || !seen.old.is_empty() {
        world.network.complain(format!(
            "{when}, nobody holds {free:?} of {} shards, and some still hold {:?}",
            seen.count, seen.old
        ));
    }
}
