//! Performs one run with schedules or with shards: a seed decides about workers, operators and
//! faults. Seeds are in turn those of schedules and of
//! shards.

use std::sync::Arc;

use crate::drain_and_check::{check_run, dismiss, drain};
use crate::load::Load;
use crate::nemesis::Nemesis;
use crate::run::{Outcome, Voice};
use crate::user::Shared;
use crate::world::World;
use crate::{run_schedules, run_shards};

/// Runs the simulation of schedules or of shards with a seed.
pub fn run_sources(seed: u64, voice: Voice) -> Outcome {
    if seed.is_multiple_of(2) {
        run_schedules::run(seed, voice)
    } else {
        run_shards::run(seed, voice)
    }
}

/// Returns the outcome of a run that has ended.
pub(crate) fn outcome(seed: u64, world: &World) -> Outcome {
    let (trace, tally) = (world.network.trace(), world.network.tally());
    Outcome { seed, trace, tally, wrong: world.network.wrong() }
}

/// Ends a run: removes all schedules, runs the tasks that are left, and ends the workers.
pub(crate) async fn end(world: &Arc<World>, nemesis: &mut Nemesis) {
    let shared = Arc::new(Shared::default());
    let helper = drain(world, (&shared, Load::Plain), (nemesis, |_| false)).await;
    dismiss(world, nemesis, helper).await;
    check_run(world).await;
    for (schedule, nominal_ms) in world.network.ticks.not_run() {
        world.network.complain(format!("the task of {schedule:?} at {nominal_ms} has not run"));
    }
    for stay in world.network.posts.open() {
        world.network.complain(format!("nobody has ended {stay:?}"));
    }
}
