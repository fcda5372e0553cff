//! Causes faults, one after the other, in an order that follows from its seed: [`Nemesis`].

mod network;
mod operator;
mod processes;
mod redis;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::profile::Plan;
use crate::scene::Environment;

/// One act of a nemesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Act {
    /// kill -9 of a worker.
    KillWorker,
    /// kill -9 of a client.
    KillClient,
    /// SIGTERM of a worker, and a new worker in its place.
    ReplaceWorker,
    /// SIGSTOP of workers for longer than their lease.
    FreezeLong,
    /// SIGSTOP of workers for less than half of their lease.
    FreezeShort,
    /// kill -9 of Redis, and a restart from its file.
    KillRedis,
    /// SIGSTOP of Redis.
    FreezeRedis,
    /// The clock of Redis jumps.
    SetClock,
    /// SCRIPT FLUSH, several times.
    FlushScripts,
    FlushOnce,
    /// FLUSHALL.
    LoseAll,
    /// CLIENT KILL of all connections, several times.
    KillConnections,
    KillOneConnection,
    /// CLIENT PAUSE.
    PauseClients,
    /// DEBUG SLEEP.
    SleepRedis,
    /// `maxmemory` below the used memory.
    FillRedis,
    /// A full disk for the append-only file.
    FillDisk,
    /// An operator pauses the queue, and resumes it soon.
    PauseQueue,
    /// A network fault between a worker and Redis: a hole, a reset, a lost reply, …
    DisturbNetwork,
}

/// The number of victims of each act.
pub(crate) type Done = BTreeMap<Act, u64>;

/// Performs one plan.
pub(crate) struct Nemesis {
    environment: Arc<Environment>,
    plan: Plan,
    random: fastrand::Rng,
    /// The acts that remain before any act is repeated.
    bag: Vec<Act>,
    /// When the nemesis ends, if it does not end by its count of acts.
    until: Option<Instant>,
    /// Set to end the nemesis now.
    stop: Arc<AtomicBool>,
}

impl Nemesis {
    pub(crate) fn new(
        environment: Arc<Environment>,
        plan: Plan,
        random: fastrand::Rng,
        until: Option<Instant>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self { environment, plan, random, bag: Vec::new(), until, stop }
    }

    /// Runs to the end, and removes the faults that it caused.
    ///
    /// # Errors
    ///
    /// When the operating system refuses an act, which is not under test.
    pub(crate) async fn run(mut self) -> anyhow::Result<Done> {
        let (mut done, mut count) = (Done::new(), 0);
        while !self.is_over(count) {
            let pause = self.plan.pause.mul_f64(0.5 + self.random.f64());
            sleep(pause).await;
            let act = self.draw();
            let victims = self.perform(act).await?;
            *done.entry(act).or_default() += victims;
            count += 1;
            self.environment.acts.fetch_add(1, Ordering::Relaxed);
        }
        Ok(done)
    }

    fn is_over(&self, count: u64) -> bool {
        self.plan.acts.is_empty()
            || self.stop.load(Ordering::Relaxed)
            || self.plan.count.is_some_and(|most| count >= most)
            || self.until.is_some_and(|until| Instant::now() >= until)
    }

    fn draw(&mut self) -> Act {
        if self.bag.is_empty() {
            let all = self.plan.acts.iter();
            self.bag.extend(all.flat_map(|(times, act)| (0..*times).map(|_| *act)));
            self.random.shuffle(&mut self.bag);
        }
        self.bag.pop().expect("a plan that runs has acts")
    }

    /// Performs one act, and returns the number of its victims.
    async fn perform(&mut self, act: Act) -> anyhow::Result<u64> {
        match act {
            Act::KillWorker => self.kill_worker(),
            Act::KillClient => self.kill_client(),
            Act::ReplaceWorker => self.replace_worker().await,
            Act::FreezeLong => self.freeze(1.25..2.25).await,
            Act::FreezeShort => self.freeze(0.05..0.45).await,
            Act::KillRedis => self.kill_redis().await,
            Act::FreezeRedis => self.freeze_redis().await,
            Act::SetClock => self.set_clock().await,
            Act::FlushScripts => self.flush(50, Duration::from_millis(10)).await,
            Act::FlushOnce => self.flush(1, Duration::ZERO).await,
            Act::LoseAll => self.lose_all().await,
            Act::KillConnections => self.kill_connections().await,
            Act::KillOneConnection => self.kill_one_connection().await,
            Act::PauseClients => self.pause_clients().await,
            Act::SleepRedis => self.sleep_redis().await,
            Act::FillRedis => self.fill_redis().await,
            Act::FillDisk => self.fill_disk().await,
            Act::PauseQueue => self.pause_queue().await,
            Act::DisturbNetwork => self.disturb_network().await,
        }
    }

    /// Returns the duration of this many leases.
    fn leases(&mut self, range: Range<f64>) -> Duration {
        let share = self.random.f64();
        self.environment.lease.mul_f64(range.start + (range.end - range.start) * share)
    }

    /// Returns a short duration. It is below half a lease, so it is no reason for a second
    /// execution.
    fn shortly(&mut self) -> Duration {
        self.leases(0.05..0.45)
    }
}
