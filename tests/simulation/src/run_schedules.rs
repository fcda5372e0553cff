//! Runs schedules from a seed, over a change of the clock of a zone: several workers of two
//! releases, which have a function in different queues, kills, lost answers, failovers or clocks
//! that are set, a flush, and an operator.
//!
//! Each instant of a schedule must be taken once, and no other time; and the instants must be those
//! that the local clock shows.

use std::sync::Arc;
use std::time::Duration;

use chrono_tz::Tz;
use optimus_core::{Call, Client, Missed, Overlap, Schedule, Task as _};
use optimus_testkit::ZONES;
use tokio::time::{Instant, sleep};

use crate::fault_plan::{Fair, Rough};
use crate::local_clock::{Kind, MINUTE_MS, changes, instants};
use crate::nemesis::{Nemesis, Plan};
use crate::queues::{QUEUE, Queues};
use crate::run::{Outcome, Voice};
use crate::run_sources::{end, outcome};
use crate::sources::{MOVED, Sources, Ticked};
use crate::world::{Setup, World, simulate_at};

/// 2027-01-01. Each change of a clock in that year has its turn.
const YEAR_BEGINS_MS: u64 = 1_798_761_600_000;
const DAYS: u64 = 364;
const LEASE: Duration = Duration::from_secs(20);
/// How long the run lasts, and how long before the change it begins.
const LASTS: Duration = Duration::from_secs(100 * 60);
const BEFORE_MS: u64 = 40 * MINUTE_MS;
/// After this time without faults, nothing may be due any more.
const CATCHES_UP_WITHIN: Duration = Duration::from_secs(120);
/// Workers look at a schedule within this time after it is due.
const LOOKS_WITHIN_MS: i64 = 2_000;
/// One in this many checks of the nemesis does harm; it checks five times a second.
const RARITY: u32 = 400;
/// How many schedules stay as they are.
const STEADY: usize = 5;
/// A schedule that the operator changes, moves to another queue, pauses, runs and removes.
const CHANGED: &str = "changed";
const ACTS: u32 = 40;

/// The draw of a run.
struct Course {
    zone: Tz,
    zone_name: &'static str,
    random: fastrand::Rng,
    flushes: bool,
    /// Since when the journal knows the instants: a flush forgets those before it.
    known_since_ms: u64,
}

pub(crate) fn run(seed: u64, voice: Voice) -> Outcome {
    let mut random = fastrand::Rng::with_seed(!seed);
    let zone_name = ZONES[random.usize(..ZONES.len())];
    let zone: Tz = zone_name.parse().unwrap_or(Tz::UTC);
    let all = changes(zone, YEAR_BEGINS_MS, DAYS);
    let change = match all.len() {
        0 => YEAR_BEGINS_MS,
        many => all[random.usize(..many)],
    };
    let (flushes, begins_ms) = (random.u8(..4) == 0, change - BEFORE_MS);
    simulate_at(begins_ms, seed, async |mut world| {
        world.queues = Queues::of(&[1, 1]);
        let world = Arc::new(world);
        if voice == Voice::Loud {
            world.network.be_loud();
        }
        let course = Course { zone, zone_name, random, flushes, known_since_ms: begins_ms };
        course.run(&world).await;
        outcome(seed, &world)
    })
}

fn setup(sources: Sources) -> Setup {
    let poll = Duration::from_secs(10);
    Setup { poll, lease: LEASE, sources, ..Setup::of(4) }
}

impl Course {
    async fn run(mut self, world: &Arc<World>) {
        let (network, random) = (&world.network, &mut self.random);
        let fails_over = random.u8(..3) == 0;
        let plan = Plan {
            workers: random.usize(2..5),
            fails_over,
            sets_clock: !fails_over && random.bool(),
            setup: Some(setup(Sources::Release(3))),
            rarity: RARITY,
        };
        network.check_every(random.u64(32..128));
        if fails_over {
            network.keep_copies();
        }
        let client = world.client(0).await.expect("the observer has no faults");
        self.store(&client).await;
        network.set_fault_plan(Rough::new(self.random.u64(..), LEASE));
        let mut nemesis = Nemesis::new(world.clone(), plan, self.random.fork());
        let begun = Instant::now();
        let step = LASTS / ACTS;
        for act in 0..ACTS {
            nemesis.run(begun + step * (act + 1)).await;
            self.act(&client).await;
            if act == ACTS / 3 {
                nemesis.deploy(setup(Sources::Release(4)));
            }
            if act == ACTS / 2 && self.flushes {
                network.flush();
                self.known_since_ms = network.time.now_us() / 1_000;
                // What was made at run time is as durable as tasks.
                self.store(&client).await;
            }
        }
        network.set_fault_plan(Fair);
        network.heal();
        nemesis.be_calm();
        // A failover may have lost what was stored last.
        self.store(&client).await;
        nemesis.run(Instant::now() + CATCHES_UP_WITHIN).await;
        expect_none_due(world, &client).await;
        self.compare(world);
        end(world, &mut nemesis).await;
    }

    /// Stores the schedules that stay as they are. A repeat changes nothing.
    async fn store(&self, client: &Client) {
        let usual = |schedule: Schedule| {
            schedule.missed(Missed::All).overlap(Overlap::All).call(Ticked::default().call())
        };
        let mut all = vec![usual(Schedule::every("every", Duration::from_secs(97)))];
        for kind in Kind::ALL {
            let schedule = Schedule::cron(kind.name(), kind.expression());
            all.push(usual(schedule.tz(self.zone_name)));
        }
        let slow = Ticked { lasts_ms: 90_000, ..Ticked::default() }.call();
        let minutes = |name, call: Call<Ticked>| Schedule::cron(name, "* * * * *").call(call);
        all.push(minutes("skips", slow).missed(Missed::Skip).overlap(Overlap::Skip));
        let brief = Ticked { lasts_ms: 20_000, ..Ticked::default() }.call();
        all.push(minutes("queues", brief).missed(Missed::RunOnce).overlap(Overlap::Queue));
        for schedule in all {
            drop(client.schedules().put(schedule).await);
        }
    }

    /// Lets the operator act.
    async fn act(&mut self, client: &Client) {
        let schedules = client.schedules();
        match self.random.u8(..7) {
            0..3 => {
                let time = Duration::from_secs(self.random.u64(60..200));
                let queue = if self.random.bool() { QUEUE } else { MOVED };
                let call = Ticked::default().call().queue(queue);
                drop(schedules.put(Schedule::every(CHANGED, time).call(call)).await);
            }
            3 => drop(schedules.pause(CHANGED, "ann").await),
            4 => drop(schedules.resume(CHANGED).await),
            5 => drop(schedules.run_now(CHANGED).await),
            _ => drop(schedules.remove(CHANGED).await),
        }
        self.store(client).await;
    }

    /// Compares the instants with those that the local clock shows.
    fn compare(&self, world: &World) {
        for kind in Kind::ALL {
            let steps = world.network.ticks.steps();
            let steps: Vec<_> = steps.iter().filter(|s| s.schedule.1 == kind.name()).collect();
            let range = match (steps.first(), steps.last()) {
                (Some(first), Some(last)) => (first.due_ms - 1, last.next_ms),
                // At these hours the clock shows none.
                _ => (self.known_since_ms, world.network.time.now_us() / 1_000),
            };
            let expected = instants(self.zone, kind, range);
            if steps.is_empty() && !expected.is_empty() {
                world.network.complain(format!("the schedule {} has no instants", kind.name()));
            }
            for step in steps {
                let next = expected.range(step.nominal_ms + 1..).next().copied();
                let is_right = expected.contains(&step.nominal_ms)
                    && step.nominal_ms == step.due_ms
                    && next == Some(step.next_ms);
                if !is_right {
                    let zone = self.zone_name;
                    world.network.complain(format!("{zone}: {step:?}, and then {next:?}"));
                }
            }
        }
    }
}

/// Returns the store's clock, less a time in which workers may look at what is due.
fn just_before_ms(world: &World) -> i64 {
    i64::try_from(world.network.time.now_us() / 1_000).unwrap_or(i64::MAX) - LOOKS_WITHIN_MS
}

/// Complains about schedules that nobody has taken to the present. A schedule of code is only
/// the matter of the workers that have it.
async fn expect_none_due(world: &World, client: &Client) {
    sleep(Duration::from_secs(1)).await;
    for queue in world.queues.names() {
        let Ok(page) = client.schedules().list(queue, None, 100).await else { continue };
        if queue.as_str() == QUEUE && page.rows.len() < STEADY {
            world.network.complain(format!("only {} schedules are stored", page.rows.len()));
        }
        for row in page.rows {
            let late = row.next.is_some_and(|next| next.timestamp_millis() < just_before_ms(world));
            if late {
                world.network.complain(format!("{} is still due at {:?}", row.name, row.next));
            }
        }
    }
}
