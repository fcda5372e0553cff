//! Performs one run. A seed decides about users, workers and faults, and the run has an outcome.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::calm::trial;
use crate::drain_and_check::{check_run, dismiss, drain};
use crate::fault_plan::Rough;
use crate::flow_limits::write_rules;
use crate::leftovers::expect_none;
use crate::load::Load;
use crate::nemesis::{Nemesis, Plan};
use crate::queues::Queues;
use crate::tally::Tally;
use crate::user::{NUMBERS, Shared, User};
use crate::world::{LEASE, World, simulate};

/// The time limit of every user's call after all faults have ended.
const USERS_END_WITHIN: Duration = Duration::from_secs(120);

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The seed with which the run can be repeated.
    pub seed: u64,
    /// The hash of all commands and replies.
    pub trace: u64,
    /// The counts.
    pub tally: Tally,
    /// The broken promises.
    pub wrong: Vec<String>,
}

/// Whether a run prints all commands, replies and faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// Prints nothing.
    Quiet,
    /// Prints each command and each fault.
    Loud,
}

/// Runs the simulation with a seed.
pub fn run(seed: u64, voice: Voice) -> Outcome {
    simulate(seed, async |mut world| {
        // The seed differs from that of the product's own random numbers.
        let mut random = fastrand::Rng::with_seed(!seed);
        world.queues = Queues::random(&mut random);
        let world = Arc::new(world);
        if voice == Voice::Loud {
            world.network.be_loud();
        }
        let load = Load::of(seed, world.queues.names().len());
        run_scene(&world, random, load).await;
        let (trace, tally) = (world.network.trace(), world.network.tally());
        Outcome { seed, trace, tally, wrong: world.network.wrong() }
    })
}

async fn run_scene(world: &Arc<World>, mut random: fastrand::Rng, load: Load) {
    let network = &world.network;
    let fails_over = random.u8(..4) == 0;
    // Many workers share the polls of a queue, and their leases are longer while they are
    // idle.
    let workers = if random.u8(..4) == 0 { random.usize(9..17) } else { random.usize(1..4) };
    let plan = Plan {
        workers,
        fails_over,
        sets_clock: !fails_over && random.u8(..4) == 0,
        setup: None,
        rarity: [0, 4, 10, 30][random.usize(..4)],
    };
    network.set_fault_plan(Rough::new(random.u64(..), LEASE));
    network.check_every(random.u64(8..64));
    if plan.fails_over {
        network.keep_copies();
    }
    if load == Load::Flows {
        write_rules(&network.journal, world.queues.names());
    }
    let shared = Arc::new(Shared::default());
    let (users, acts) = (random.usize(1..4), random.u32(20..80));
    let users: Vec<JoinHandle<()>> = (0..users)
        .map(|at| enlist(world, &shared, (at as u64, acts, random.fork()), load))
        .collect();
    let mut nemesis = Nemesis::new(world.clone(), plan, random.fork());
    nemesis.run(Instant::now() + Duration::from_secs(random.u64(4..20))).await;
    network.set_fault_plan(crate::fault_plan::Fair);
    network.heal();
    let ended = async {
        while users.iter().any(|user| !user.is_finished()) {
            nemesis.tend();
            sleep(Duration::from_millis(200)).await;
        }
    };
    if timeout(USERS_END_WITHIN, ended).await.is_err() {
        network.complain("a user's call does not end");
    }
    // Workers that do not know every task could delay the other workers.
    let helper = drain(world, (&shared, load), (&mut nemesis, |setup| setup.knows_all)).await;
    let running = || nemesis.processes().chain([(helper.process, helper.setup)]).collect();
    trial(world, running, random).await;
    dismiss(world, &mut nemesis, helper).await;
    check_run(world).await;
    if load == Load::Flows {
        expect_none(world);
    }
}

/// Starts a user in its own process. If the user can't connect, it starts again.
fn enlist(
    world: &Arc<World>,
    shared: &Arc<Shared>,
    (at, acts, random): (u64, u32, fastrand::Rng),
    load: Load,
) -> JoinHandle<()> {
    let (process, shared, all) = (world.next_process(), shared.clone(), world.clone());
    world.spawn(process, async move {
        let client = all.client_at_last(process).await;
        let (network, queues, next) = (all.network.clone(), all.queues.clone(), at * NUMBERS);
        let poisons = 1;
        let user = User { client, process, network, shared, queues, random, next, poisons, load };
        user.run(acts).await;
    })
}
