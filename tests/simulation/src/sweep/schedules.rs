//! Schedules, which the workers tick: one of their code, which a deploy changes, and those that an
//! operator makes, changes, pauses, runs, moves to another queue and removes.

use std::time::Duration;

use optimus_core::{Call, Missed, Overlap, Schedule, Task};
use tokio::time::{Instant, sleep};

use super::Actor;
use super::steps::ms;
use crate::sources::{CODED, Sources, Ticked};
use crate::world::{LEASE, Setup, World};

const NAME: &str = "own";
/// A schedule whose tasks last longer than its time.
const SLOW: &str = "slow";
const SECOND: Duration = Duration::from_secs(1);

fn every(name: &str, time: Duration, call: Call<Ticked>) -> Schedule {
    Schedule::every(name, time).missed(Missed::All).overlap(Overlap::All).call(call)
}

pub(super) async fn schedules(actor: &Actor) {
    let schedules = actor.user.client.schedules();
    drop(schedules.put(every(NAME, SECOND, Ticked::default().call())).await);
    let slow = Ticked { lasts_ms: 1_200, ..Ticked::default() }.call();
    let slow = every(SLOW, SECOND, slow).missed(Missed::RunOnce).overlap(Overlap::Skip);
    drop(schedules.put(slow).await);
    steps(actor, NAME, 2).await;
    steps(actor, CODED, 1).await;
    let second = Setup { sources: Sources::Release(2), ..Setup::of(1) };
    drop(actor.world.worker(second));
    drop(schedules.pause(NAME, "ann").await);
    drop(schedules.put(every(NAME, 2 * SECOND, Ticked::default().call())).await);
    drop(schedules.run_now(NAME).await);
    drop(schedules.resume(NAME).await);
    // Code decides about its schedule.
    drop(schedules.put(every(CODED, SECOND, Ticked::default().call())).await);
    drop(schedules.pause(CODED, "ann").await);
    drop(schedules.resume(CODED).await);
    drop(schedules.get(SLOW).await);
    drop(schedules.history(SLOW).await);
    steps(actor, CODED, 1).await;
    steps(actor, NAME, 1).await;
    let other = actor.world.queues.names()[1].clone();
    let moved = every(NAME, SECOND, Ticked::default().call().queue(other.as_str()));
    drop(schedules.pause(NAME, "ann").await);
    drop(schedules.put(moved).await);
    drop(schedules.resume(NAME).await);
    steps(actor, NAME, 1).await;
    for name in [NAME, SLOW] {
        drop(schedules.remove(name).await);
    }
}

/// Waits for a limited time until a schedule has taken so many steps from now on.
async fn steps(actor: &Actor, name: &str, count: usize) {
    let (ticks, begun) = (&actor.world.network.ticks, Instant::now());
    let taken = || ticks.steps().iter().filter(|step| step.schedule.1 == name).count();
    let wanted = taken() + count;
    while taken() < wanted && begun.elapsed() < 4 * LEASE {
        sleep(ms(20)).await;
    }
}

/// Complains about instants whose task is stored and has not run. The queues are empty.
pub(super) fn check(world: &World) {
    for (schedule, nominal_ms) in world.network.ticks.not_run() {
        world.network.complain(format!("the task of {schedule:?} at {nominal_ms} has not run"));
    }
}
