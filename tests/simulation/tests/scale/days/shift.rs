//! Some minutes in which workers run tasks: [`Shifts`].

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use optimus_core::{Call, Client, TaskId};
use optimus_simulation::{
    tasks::{Kind, Mute, Poison, Rare, Work},
    world::{Member, Setup, World},
};
use tokio::time::{Instant, sleep};

use super::{DAY_MS, Harm, START_MS};

/// How many dead tasks a queue keeps, and how many cancelled ones.
pub(crate) const KEEP: usize = 40;
/// For how long it keeps them.
pub(crate) const KEEP_FOR: Duration = Duration::from_secs(5 * 86_400);
const WORKERS: usize = 2;
const DRAINED_WITHIN: Duration = Duration::from_secs(300);
/// Longer than a task waits for its next attempt by a clock that is right.
const WAITS_MAX: Duration = Duration::from_secs(120);
/// The most by which the clock of the store is set.
pub(crate) const STEP_MS_MAX: u64 = 2 * 3_600_000;

/// A task that was submitted.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) id: TaskId,
    pub(crate) queue: usize,
    pub(crate) task: &'static str,
    pub(crate) kind: Kind,
    /// When it was made ready again after its death, in ns of the journal.
    pub(crate) requeued_ns: Vec<u64>,
    /// When the last shift that ran it was over, in ns of the journal.
    pub(crate) over_ns: u64,
}

/// The workers, their user and what harms them.
pub(crate) struct Shifts {
    world: Arc<World>,
    client: Client,
    random: fastrand::Rng,
    harm: Harm,
    members: Vec<Member>,
    pub(crate) known: BTreeMap<u64, Known>,
    /// The tasks that this shift has submitted or made ready again.
    fresh: BTreeSet<u64>,
}

impl Shifts {
    pub(crate) fn new(
        world: Arc<World>,
        client: Client,
        random: fastrand::Rng,
        harm: Harm,
    ) -> Self {
        let (members, known, fresh) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        Self { world, client, random, harm, members, known, fresh }
    }

    /// Returns when the shifts of a day begin: one by day, and on most days one that passes
    /// midnight.
    pub(crate) fn begins(&mut self, day: u64) -> Vec<u64> {
        let midnight = (START_MS / DAY_MS + day + 1) * DAY_MS;
        let noon = midnight - DAY_MS / 2;
        let mut begins = vec![noon + self.random.u64(..8 * 3_600_000)];
        if self.random.u8(..5) > 0 {
            begins.push(midnight - self.random.u64(90_000..200_000));
        }
        begins
    }

    /// Works for some minutes, until all tasks have ended and the workers have left.
    pub(crate) async fn work(&mut self) {
        self.fresh.clear();
        for _ in 0..WORKERS {
            self.hire();
        }
        let until = Instant::now() + Duration::from_secs(self.random.u64(150..300));
        self.requeue_some().await;
        while Instant::now() < until {
            for _ in 0..self.random.usize(1..6) {
                self.submit().await;
            }
            sleep(Duration::from_millis(self.random.u64(1_000..10_000))).await;
            self.cancel_hanging().await;
            if self.harm == Harm::KillsAndClocks && self.random.u8(..24) == 0 {
                self.disturb();
            }
        }
        self.world.network.heal();
        self.drain().await;
        for member in self.members.drain(..) {
            member.stop.cancel();
            // One that was killed has no result.
            drop(member.main.await);
        }
        let over_ns = self.world.network.journal.now_ns();
        for number in &self.fresh {
            self.known.get_mut(number).unwrap().over_ns = over_ns;
        }
    }

    fn hire(&mut self) {
        let (poll, lease) = (Duration::from_secs(5), Duration::from_secs(15));
        let keep_ended = Some((KEEP, KEEP_FOR));
        self.members.push(self.world.worker(Setup { poll, lease, keep_ended, ..Setup::of(4) }));
    }

    async fn submit(&mut self) {
        let number = self.known.len() as u64;
        // The first queues have most tasks.
        let [a, b] = [0; 2].map(|_| self.random.usize(..self.world.queues.names().len()));
        let queue = a.min(b);
        let (id, task, kind) = self.send(number, queue).await;
        let (requeued_ns, over_ns) = (Vec::new(), 0);
        self.known.insert(number, Known { id, queue, task, kind, requeued_ns, over_ns });
        self.fresh.insert(number);
    }

    async fn send(&mut self, number: u64, queue: usize) -> (TaskId, &'static str, Kind) {
        let name = self.world.queues.names()[queue].to_string();
        let short = Kind::Lasts(0);
        let kind = match self.random.u8(..32) {
            0..6 => {
                let call = Call::new(Mute { number }).queue(name);
                return (self.client.submit(call).await.unwrap().id().clone(), "mute", short);
            }
            6..10 => {
                let call = Call::new(Rare { number }).queue(name);
                return (self.client.submit(call).await.unwrap().id().clone(), "rare", short);
            }
            10 if self.harm == Harm::KillsAndClocks && self.random.u8(..8) == 0 => {
                let call = Call::new(Poison { number }).queue(name);
                return (self.client.submit(call).await.unwrap().id().clone(), "poison", short);
            }
            10..12 => Kind::Fails(self.random.u32(1..3)),
            12 => Kind::Panics,
            13 => Kind::Snoozes,
            14 => Kind::RetriesAfter,
            15..17 => Kind::Fatal,
            17..19 => Kind::Tells,
            19 => Kind::GivesUp,
            20 => Kind::Hangs,
            _ => Kind::Lasts(self.random.u64(..2_000)),
        };
        let call = Work::new(number, kind).queue(name);
        (self.client.submit(call).await.unwrap().id().clone(), "work", kind)
    }

    async fn cancel_hanging(&mut self) {
        let hanging = self.fresh.iter().map(|number| &self.known[number]);
        let hanging = hanging.filter(|known| known.kind == Kind::Hangs);
        let ids: Vec<TaskId> = hanging.map(|known| known.id.clone()).collect();
        drop(self.client.cancel_all(ids).await);
    }

    /// Lets a task that has died run again.
    async fn requeue_some(&mut self) {
        let now_ns = self.world.network.journal.now_ns();
        let recent = self.known.iter_mut().rev().take(200);
        for (number, known) in recent {
            if known.kind == Kind::Fatal
                && self.random.u8(..6) == 0
                && self.client.requeue(&known.id).await.is_ok()
            {
                known.requeued_ns.push(now_ns);
                self.fresh.insert(*number);
            }
        }
    }

    fn disturb(&mut self) {
        let network = &self.world.network;
        if self.random.bool() {
            let at = self.random.usize(..self.members.len());
            let member = self.members.swap_remove(at);
            network.kill(member.process);
            self.hire();
        } else {
            let by = i64::try_from(self.random.u64(..STEP_MS_MAX)).unwrap();
            network.heal();
            network.set_clock(if self.random.bool() { by } else { -by });
        }
    }

    async fn drain(&mut self) {
        let (run_at, until) = (Instant::now() + WAITS_MAX, Instant::now() + DRAINED_WITHIN);
        while self.is_left().await {
            assert!(Instant::now() < until, "tasks remain");
            if self.harm == Harm::KillsAndClocks && Instant::now() > run_at {
                self.run_waiting().await;
            }
            self.cancel_hanging().await;
            self.replace_the_killed();
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// Runs the tasks now whose next attempt was set by a clock that was ahead.
    async fn run_waiting(&self) {
        for number in &self.fresh {
            drop(self.client.run_now(&self.known[number].id).await);
        }
    }

    async fn is_left(&self) -> bool {
        for queue in self.world.queues.names() {
            let counts = self.client.inspector().counts(queue).await.unwrap();
            if counts.ready + counts.delayed + counts.retry + counts.working > 0 {
                return true;
            }
        }
        false
    }

    /// Poison has killed some of them.
    fn replace_the_killed(&mut self) {
        self.members.retain(|member| !member.main.is_finished());
        while self.members.len() < WORKERS {
            self.hire();
        }
    }
}
