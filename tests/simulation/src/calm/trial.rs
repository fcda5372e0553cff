//! Submits plain tasks to workers after all faults: [`trial`].

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use optimus_core::{Call, Client};
use optimus_testkit::history::What;
use tokio::time::{Instant, sleep};

use super::trial_record::{Member, Plain, Record};
use super::{fair, live};
use crate::fault_plan::{Calm, Fair};
use crate::tasks::{Kind, Work};
use crate::world::{Setup, World};

/// The first number of a trial's tasks.
pub const TRIAL: u64 = 1_000_000_000;
/// The time after which a disconnected worker works as usual again. A lost answer is given up after
/// 8 s, and the wait for a connection grows to 3 s.
const SETTLES: Duration = Duration::from_secs(15);
/// The most tasks. More tasks would take longer and prove no more.
const TASKS_MAX: usize = 8_000;
const ALL_BEGIN_WITHIN: Duration = Duration::from_secs(300);
const CHECK_EVERY: Duration = Duration::from_millis(250);
/// How long a task of the trial runs.
pub(super) const LASTS_MS: Range<u64> = 20..60;
const PAUSES_MS: [u64; 6] = [1, 5, 30, 300, 1_200, 7_000];

/// One trial.
struct Trial {
    world: Arc<World>,
    client: Client,
    process: u32,
    random: fastrand::Rng,
    tasks: BTreeMap<u64, Plain>,
}

/// Lets workers run plain tasks, first one by one and then many at once, and checks the workers.
/// `running` returns the workers. A worker that could not connect at its start ends in the
/// meantime.
pub async fn trial(
    world: &Arc<World>,
    running: impl FnOnce() -> Vec<(u32, Setup)>,
    random: fastrand::Rng,
) {
    let (network, process) = (&world.network, world.next_process());
    network.end_faults();
    let Ok(client) = world.client(process).await else {
        network.complain("a client can't connect, though there is no fault");
        return;
    };
    sleep(SETTLES).await;
    let workers = running();
    network.be_quick();
    network.set_fault_plan(Calm::new(random.clone()));
    let mut trial = Trial { world: world.clone(), client, process, random, tasks: BTreeMap::new() };
    trial.one_by_one().await;
    if trial.random.u8(..3) == 0 {
        trial.all_at_once(&workers).await;
        trial.one_by_one().await;
    }
    network.set_fault_plan(Fair);
    trial.check(workers);
}

impl Trial {
    /// Submits few tasks, for workers that are idle.
    async fn one_by_one(&mut self) {
        for _ in 0..self.random.usize(4..16) {
            let pause = PAUSES_MS[self.random.usize(..PAUSES_MS.len())];
            sleep(Duration::from_millis(self.random.u64(..=pause))).await;
            let queue = self.random.usize(..self.world.queues.names().len());
            let count = self.random.usize(1..4);
            self.submit(queue, count).await;
        }
        self.all_begin().await;
    }

    /// Submits so many tasks to each queue, by its weight, that its share is visible.
    async fn all_at_once(&mut self, workers: &[(u32, Setup)]) {
        let queues = self.world.queues.clone();
        let slots: Vec<usize> = workers.iter().map(|(_, setup)| setup.concurrency).collect();
        let most = slots.iter().max().copied().unwrap_or(1);
        let enough = fair::enough(most, queues.names().len());
        let all = (enough * 3 / 2 * slots.len()).min(TASKS_MAX);
        let weights: usize = queues.weights().iter().map(|weight| *weight as usize).sum();
        let under_way = slots.iter().sum::<usize>().min(256);
        for queue in queues.names() {
            self.operate(self.client.pause(queue).await);
        }
        for (queue, weight) in queues.weights().iter().enumerate() {
            let mut left = all * *weight as usize / weights + under_way;
            while left > 0 {
                let count = left.min(1_000);
                self.submit(queue, count).await;
                left -= count;
            }
        }
        for (queue, name) in queues.names().iter().enumerate() {
            self.operate(self.client.resume(name).await);
            let now = self.world.network.journal.now_ns();
            let begun = |number: &u64| self.world.network.journal.begun(*number) > 0;
            for (_, task) in self.tasks.iter_mut().filter(|(number, _)| !begun(number)) {
                if task.queue == queue {
                    task.since = now;
                }
            }
        }
        self.all_begin().await;
    }

    fn operate<T>(&self, answer: Result<T, optimus_core::Error>) {
        if let Err(problem) = answer {
            self.world.network.complain(format!("though there is no fault: {problem}"));
        }
    }

    async fn submit(&mut self, queue: usize, count: usize) {
        let journal = self.world.network.journal.clone();
        let from = TRIAL + self.tasks.len() as u64;
        let name = self.world.queues.names()[queue].to_string();
        let calls: Vec<Call<Work>> = (from..from + count as u64)
            .map(|number| {
                journal.write(self.process, What::Invoke { task: number, biz: None, delay_ms: 0 });
                let lasts = Kind::Lasts(self.random.u64(LASTS_MS));
                Work::new(number, lasts).queue(name.clone())
            })
            .collect();
        if let Err(problem) = self.client.submit_all(calls).await {
            self.world.network.complain(format!("though there is no fault: {problem}"));
        }
        let since = journal.now_ns();
        self.tasks.extend((from..from + count as u64).map(|task| (task, Plain { queue, since })));
    }

    /// Waits until each task has begun.
    async fn all_begin(&self) {
        let network = &self.world.network;
        let deadline = Instant::now() + ALL_BEGIN_WITHIN;
        let open = || self.tasks.keys().filter(|task| network.journal.begun(**task) == 0).count();
        while open() > 0 {
            if Instant::now() > deadline {
                let (open, all) = (open(), self.tasks.len());
                network.complain(format!("{open} of {all} plain tasks do not begin"));
                return;
            }
            sleep(CHECK_EVERY).await;
        }
    }

    fn check(self, workers: Vec<(u32, Setup)>) {
        let network = &self.world.network;
        for task in self.tasks.keys() {
            let begun = network.journal.begun(*task);
            if begun > 1 {
                network.complain(format!("plain task {task} began {begun} times"));
            }
        }
        let workers = workers.into_iter().map(|(process, setup)| Member { process, setup });
        let queues = &self.world.queues;
        let facts = (workers.collect(), queues.weights().to_vec());
        let record = Record::new(facts, &self.tasks, network.journal.events());
        let unfair =
            if queues.strict { fair::check_strict(&record) } else { fair::check_weights(&record) };
        for wrong in live::check(&record).into_iter().chain(unfair) {
            network.complain(wrong);
        }
    }
}
