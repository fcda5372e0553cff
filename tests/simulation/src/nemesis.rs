//! Harms processes and the store while users work: [`Nemesis`].

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::queues::ALL;
use crate::sources::Sources;
use crate::world::{Member, Setup, World};

/// The slots of a worker. Most workers have few, so that tasks compete for slots.
const SLOTS: [usize; 10] = [1, 1, 2, 4, 4, 16, 16, 64, 256, 4_096];

/// The harm in a run, in addition to its [fault plan](crate::fault_plan).
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The number of workers at the same time.
    pub workers: usize,
    /// Whether the store may be rolled back.
    pub fails_over: bool,
    /// Whether the store's clock may be set. A run never allows both, because a fence could then be
    /// given twice.
    pub sets_clock: bool,
    /// The setup of each worker. It is random if absent.
    pub setup: Option<Setup>,
    /// One in this many checks does harm. No check does if this is 0.
    pub rarity: u32,
}

/// Keeps a set of workers running, and harms them.
pub struct Nemesis {
    world: Arc<World>,
    plan: Plan,
    random: fastrand::Rng,
    processes: Vec<Member>,
    leaving: Vec<Member>,
}

impl Nemesis {
    /// Returns a nemesis with a whole set of workers.
    pub fn new(world: Arc<World>, plan: Plan, random: fastrand::Rng) -> Self {
        let (processes, leaving) = (Vec::new(), Vec::new());
        let mut nemesis = Self { world, plan, random, processes, leaving };
        nemesis.tend();
        nemesis
    }

    /// Does harm until that instant.
    pub async fn run(&mut self, until: Instant) {
        while Instant::now() < until {
            sleep(Duration::from_millis(self.random.u64(20..400))).await;
            if self.plan.rarity > 0 && self.random.u32(..self.plan.rarity) == 0 {
                self.act();
            }
            self.tend();
        }
    }

    /// Starts a new worker in place of each worker that has ended.
    pub fn tend(&mut self) {
        self.processes.retain(|member| !member.main.is_finished());
        while self.processes.len() < self.plan.workers {
            let setup = self.plan.setup.unwrap_or_else(|| self.some_setup());
            self.processes.push(self.world.worker(setup));
        }
        self.leaving.retain(|member| !member.main.is_finished());
    }

    /// Starts new workers with this setup from now on.
    pub(crate) fn deploy(&mut self, setup: Setup) {
        self.plan.setup = Some(setup);
    }

    /// Does no more harm.
    pub(crate) fn be_calm(&mut self) {
        self.plan.rarity = 0;
    }

    /// Returns the running workers, and the setup of each.
    pub fn processes(&self) -> impl Iterator<Item = (u32, Setup)> {
        let running = self.processes.iter().filter(|member| !member.main.is_finished());
        running.map(|member| (member.process, member.setup))
    }

    fn some_setup(&mut self) -> Setup {
        let random = &mut self.random;
        let queues = self.world.queues.names().len();
        let some = 1 << random.usize(..queues) | random.u64(..) & random.u64(..);
        Setup {
            concurrency: SLOTS[random.usize(..SLOTS.len())],
            poll: Duration::from_millis([500, 5_000][random.usize(..2)]),
            grace: Duration::from_millis([0, 500, 3_000][random.usize(..3)]),
            knows_all: random.bool(),
            lease: Duration::from_secs([1, 2, 2, 6][random.usize(..4)]),
            serves: if random.u8(..4) == 0 { some } else { ALL },
            sources: Sources::Nothing,
            keep_ended: None,
        }
    }

    fn ask_to_leave(&mut self, at: usize) {
        let member = self.processes.swap_remove(at);
        self.world.ask_to_end(member.process);
        self.leaving.push(member);
    }

    fn act(&mut self) {
        let network = self.world.network.clone();
        let at = self.random.usize(..self.processes.len());
        let process = self.processes[at].process;
        match self.random.u8(..12) {
            0..2 => network.kill(process),
            2..4 => self.ask_to_leave(at),
            4..6 => network.cut(Some(process), self.moment()),
            6 => network.cut(None, self.moment()),
            7 => network.forget_scripts(),
            8..10 if self.plan.fails_over => network.roll_back(self.random.usize(1..8)),
            _ if self.plan.sets_clock => {
                let by_ms = [30, 700, 3_000, 60_000][self.random.usize(..4)];
                let by_ms = self.random.i64(1..by_ms);
                network.set_clock(if self.random.bool() { by_ms } else { -by_ms });
            }
            _ => {}
        }
    }

    /// Returns a duration that is shorter or longer than a lease.
    fn moment(&mut self) -> Duration {
        Duration::from_millis(self.random.u64(50..5_000))
    }

    /// Asks the workers with a matching setup to end, and waits until they have ended.
    pub async fn dismiss(&mut self, whose: impl Fn(&Setup) -> bool, within: Duration) {
        while let Some(at) = self.processes.iter().position(|member| whose(&member.setup)) {
            self.ask_to_leave(at);
        }
        let deadline = Instant::now() + within;
        while !self.leaving.is_empty() && Instant::now() < deadline {
            sleep(Duration::from_millis(100)).await;
            self.leaving.retain(|member| !member.main.is_finished());
        }
        for member in &self.leaving {
            let process = member.process;
            self.world.network.complain(format!("worker {process} does not end"));
        }
    }
}
