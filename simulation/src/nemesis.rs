//! What is done to processes and the store while users go on: [`Nemesis`].

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::world::{Crewman, Setup, World};

/// What a run may suffer beside its [weather](crate::weather).
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Workers at once.
    pub workers: usize,
    /// The store may come back as it was.
    pub fails_over: bool,
    /// The store's clock may be set. Never both: then a fence could be given twice.
    pub sets_clock: bool,
    /// How each of them is set up; at random, if it is not said.
    pub setup: Option<Setup>,
    /// One in so many looks does something; none if it is 0.
    pub rarity: u32,
}

/// Keeps up a crew of workers, and does them harm.
pub struct Nemesis {
    world: Arc<World>,
    plan: Plan,
    random: fastrand::Rng,
    crew: Vec<Crewman>,
    leaving: Vec<Crewman>,
}

impl Nemesis {
    /// One with a whole crew.
    pub fn new(world: Arc<World>, plan: Plan, random: fastrand::Rng) -> Self {
        let (crew, leaving) = (Vec::new(), Vec::new());
        let mut nemesis = Self { world, plan, random, crew, leaving };
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

    /// Starts a worker for each one that has ended.
    pub fn tend(&mut self) {
        self.crew.retain(|member| !member.main.is_finished());
        while self.crew.len() < self.plan.workers {
            let random = Setup {
                concurrency: [1, 2, 4, 16, 64][self.random.usize(..5)],
                poll: Duration::from_millis([500, 5_000][self.random.usize(..2)]),
                grace: Duration::from_millis([0, 500, 3_000][self.random.usize(..3)]),
                knows_all: self.random.bool(),
            };
            self.crew.push(self.world.worker(self.plan.setup.unwrap_or(random)));
        }
        self.leaving.retain(|member| !member.main.is_finished());
    }

    fn ask_to_leave(&mut self, at: usize) {
        let member = self.crew.swap_remove(at);
        self.world.ask_to_end(member.process);
        self.leaving.push(member);
    }

    fn act(&mut self) {
        let network = self.world.network.clone();
        let at = self.random.usize(..self.crew.len());
        let process = self.crew[at].process;
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

    /// Shorter than a lease, or longer.
    fn moment(&mut self) -> Duration {
        Duration::from_millis(self.random.u64(50..5_000))
    }

    /// Asks everybody to end, and waits for it.
    pub async fn dismiss(&mut self, within: Duration) {
        while !self.crew.is_empty() {
            self.ask_to_leave(0);
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
