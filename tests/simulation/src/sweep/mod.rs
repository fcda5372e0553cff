//! Causes one fault at each exchange of each scene, and at each `redis.call` of a script. The sweep
//! is exhaustive, while [`run`](crate::run) is random.

mod actor;
mod after;
mod calls;
mod clock_back;
mod dispenses;
mod gathers;
mod groups;
mod hand;
mod history;
mod inspects;
mod lanes;
mod limits;
mod one_by_one;
mod operates;
mod operations;
mod scans;
mod scene;
mod schedules;
mod schedules_by_hand;
mod shards;
mod statistics;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

pub use self::actor::Actor;
pub use self::calls::fail_each_call;
pub(crate) use self::limits::release_all;
pub use self::scene::Scene;
use crate::drain_and_check::{check_run, dismiss, drain};
use crate::exchange_fault::{Fault, Silence};
use crate::fault_plan::{FaultPlan, Once, Twice};
use crate::load::Load;
use crate::nemesis::{Nemesis, Plan};
use crate::run::{Outcome, Voice};
use crate::script_probe::Probe;
use crate::tally::Tally;
use crate::user::Shared;
use crate::world::{LEASE, Setup, World, simulate};

/// The seed of every scene.
const SEED: u64 = 1;
const SCENE_ENDS_WITHIN: Duration = Duration::from_secs(120);
/// A number that no exchange has.
const NEVER: u64 = u64::MAX;

/// The faults for each exchange.
pub const FAULTS: [Fault; 10] = [
    Fault::RequestLost(Silence::Broken),
    Fault::RequestLost(Silence::Kept),
    Fault::ReplyLost(Silence::Broken),
    Fault::ReplyLost(Silence::Kept),
    Fault::Doubled,
    Fault::Delayed(LEASE.saturating_add(LEASE)),
    Fault::Late(LEASE.saturating_add(LEASE)),
    Fault::RolledBack { calls: 3 },
    Fault::DiesBefore,
    Fault::DiesAfter,
];

/// The outcome of one performance of a scene.
#[derive(Debug)]
pub struct Performance {
    /// The outcome of the run.
    pub outcome: Outcome,
    /// The number of exchanges until the end of the scene.
    pub exchanges: u64,
    /// The observer of each `redis.call`.
    pub probe: Probe,
}

/// Runs a scene without faults.
pub fn rehearse(scene: Scene) -> Performance {
    let fault_plan = Once { at: NEVER, fault: Fault::Doubled };
    let mut performance = run_scene(scene, fault_plan, Voice::Quiet);
    let Tally { submitted, executions, .. } = performance.outcome.tally;
    if scene.runs_each_once() && executions != submitted {
        performance.outcome.wrong.push(format!("{submitted} tasks ran {executions} times"));
    }
    performance
}

/// Runs a scene in which each exchange that begins with one of these scripts arrives twice.
pub fn run_twice(scene: Scene, scripts: &'static [&'static str]) -> Performance {
    run_scene(scene, Twice(scripts), Voice::Quiet)
}

/// Runs a scene with that fault at the exchange with this number.
pub fn run_with(scene: Scene, at: u64, fault: Fault, voice: Voice) -> Performance {
    run_scene(scene, Once { at, fault }, voice)
}

fn run_scene(scene: Scene, fault_plan: impl FaultPlan + 'static, voice: Voice) -> Performance {
    simulate(SEED, async |mut world| {
        world.queues = scene.queues();
        let world = Arc::new(world);
        let network = world.network.clone();
        if voice == Voice::Loud {
            network.be_loud();
        }
        network.check_every(1);
        network.keep_copies();
        network.set_fault_plan(fault_plan);
        let exchanges = perform(scene, &world).await;
        let (trace, tally) = (network.trace(), network.tally());
        let outcome = Outcome { seed: SEED, trace, tally, wrong: network.wrong() };
        Performance { outcome, exchanges, probe: network.probe.clone() }
    })
}

/// Runs the scene to its end. Returns the number of exchanges of the scene itself.
async fn perform(scene: Scene, world: &Arc<World>) -> u64 {
    let (workers, grace, knows_all) = (scene.workers(), Duration::ZERO, scene.knows_all());
    let sources = scene.sources();
    let setup = Setup { grace, knows_all, sources, ..Setup::of(4) };
    let plan =
        Plan { workers, setup: Some(setup), fails_over: false, sets_clock: false, rarity: 0 };
    let mut nemesis = Nemesis::new(world.clone(), plan, fastrand::Rng::with_seed(SEED));
    let shared = Arc::new(Shared::default());
    let process = world.next_process();
    let (theirs, all) = (shared.clone(), world.clone());
    let user = world.spawn(process, async move {
        let actor = Actor::new(all, process, theirs).await;
        scene.run_scene(actor).await;
    });
    let ended = async {
        while !user.is_finished() {
            nemesis.tend();
            sleep(Duration::from_millis(100)).await;
        }
    };
    if timeout(SCENE_ENDS_WITHIN, ended).await.is_err() {
        world.network.complain("the scene does not end");
    }
    let exchanges = world.network.exchanges();
    // A task that waits for a stop request receives it here.
    let helper = drain(world, (&shared, Load::Plain), (&mut nemesis, |_| false)).await;
    dismiss(world, &mut nemesis, helper).await;
    // The scene may have died before it could end a worker that it has started.
    let begun = Instant::now();
    while !world.network.posts.open().is_empty() && begun.elapsed() < 4 * LEASE {
        world.ask_all_to_end();
        sleep(Duration::from_millis(100)).await;
    }
    check_run(world).await;
    scene.check(world);
    exchanges
}
