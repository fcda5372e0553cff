//! One run: steps applied to the store and to the reference, compared after each.

use optimus_core::{
    Lease, Submission, TaskId, WorkerId,
    broker::{Completion, Failure, Release},
};

use crate::{
    actors::made_id,
    acts::{LEASE, LEASE_MS, lease, ms},
    bench::{Bench, START},
};

use super::{
    reference::{Departure, Place, World},
    step::Step,
};

/// Half a lease.
const BEAT_MS: u64 = LEASE_MS / 2;
/// The number of workers of each queue that may die.
pub(crate) const WORKERS: usize = 2;

/// Two queues of one store, and what users know of them.
pub(crate) struct FlowRun<'a> {
    pub(crate) benches: &'a [Bench; 2],
    pub(crate) world: World,
    /// In ms after the start.
    pub(crate) now: u64,
    pub(crate) workers: [Vec<Worker>; 2],
    pub(crate) last: Option<Report>,
    /// Whether a waiter took the token of the wakeup list, and no worker has claimed since.
    pub(crate) woken: [bool; 2],
    /// Whether the last claim granted nothing, and said that work is left.
    pub(crate) has_found_nothing: bool,
    /// How many ids and permits were made.
    made: usize,
    transcript: Option<Vec<String>>,
}

/// A worker, with the number of its last claim.
#[derive(Debug, Clone)]
pub(crate) struct Worker {
    pub(crate) id: WorkerId,
    pub(crate) seq: u64,
    starts: u32,
}

/// What a worker reported.
#[derive(Debug, Clone)]
pub(crate) enum Report {
    Complete(usize, Vec<Completion>),
    Fail(usize, Vec<Failure>),
    Release(usize, Vec<Release>),
}

/// The worker that never dies, and takes back what others lose.
fn survivor() -> WorkerId {
    WorkerId::from_stored("survivor")
}

impl<'a> FlowRun<'a> {
    /// A run on two empty queues.
    pub(crate) async fn new(benches: &'a [Bench; 2]) -> Self {
        let worker = |number: usize| {
            let id = WorkerId::from_stored(&format!("w{number}"));
            Worker { id, seq: 0, starts: 0 }
        };
        let workers = [0, 1].map(|_| (0..WORKERS).map(worker).collect());
        let run = Self {
            benches,
            world: World::default(),
            now: 0,
            workers,
            last: None,
            woken: [false; 2],
            has_found_nothing: false,
            made: 0,
            transcript: None,
        };
        for queue in 0..2 {
            run.register(queue, &survivor()).await;
            for worker in &run.workers[queue] {
                run.register(queue, &worker.id).await;
            }
        }
        run
    }

    /// Makes the run note each step.
    pub(crate) fn noting(self) -> Self {
        Self { transcript: Some(Vec::new()), ..self }
    }

    /// The steps that were noted, with short names for the tasks.
    pub(crate) fn transcript(&self, problem: &str) -> String {
        let lines = self.transcript.iter().flatten().map(String::as_str);
        let text = lines.chain([problem]).collect::<Vec<_>>().join("\n");
        crate::names::Names::of(self.world.order.iter()).put_into(&text)
    }

    /// Notes what a step does.
    pub(crate) fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.transcript {
            lines.push(format!("{:>7}  {}", self.now, what()));
        }
    }

    /// Applies the steps one by one, until the store differs from the reference.
    pub(crate) async fn go(&mut self, steps: &[Step]) -> Result<(), Departure> {
        for (at, step) in steps.iter().enumerate() {
            self.note(|| format!("{step:?}"));
            self.apply(step).await.map_err(|why| format!("at step {at}, {why}"))?;
            self.compare().await.map_err(|why| format!("after step {at}, {why}"))?;
        }
        self.drain().await.map_err(|why| format!("at the end, {why}"))
    }

    /// Applies one step.
    pub(crate) async fn apply(&mut self, step: &Step) -> Result<(), Departure> {
        match *step {
            Step::Clock { ms } => self.pass_time(ms).await,
            Step::Lose { queue, worker } => self.lose(queue, worker).await,
            Step::Submit { .. } | Step::Gathered { .. } => self.submit(step).await,
            Step::Group { .. } | Step::Seal { .. } | Step::Again { .. } | Step::Disband { .. } => {
                self.act_on_groups(step).await
            }
            Step::Claim { queue, worker, want } => self.claim(queue, worker, want).await,
            Step::Collect { queue, worker, want } => self.collect(queue, worker, want).await,
            Step::Complete { queue, worker, ref picks } => {
                self.complete(queue, self.picked(queue, worker, picks)).await
            }
            Step::Fail { queue, worker, ref picks, how } => {
                self.fail(queue, self.picked(queue, worker, picks), how).await
            }
            Step::Release { queue, worker, ref picks, snooze_ms } => {
                self.release(queue, self.picked(queue, worker, picks), snooze_ms).await
            }
            Step::Repeat => self.repeat().await,
            Step::Cancel { task } | Step::Requeue { task } | Step::Delete { task } => {
                self.operate(step, task).await
            }
            Step::Limit { .. }
            | Step::Pause { .. }
            | Step::Resume { .. }
            | Step::Acquire { .. }
            | Step::GiveBack { .. } => self.act_on_gates(step).await,
            Step::Relay => self.relay().await,
        }
    }

    async fn register(&self, queue: usize, worker: &WorkerId) {
        let bench = &self.benches[queue];
        let answer = bench.at(self.now).register(&bench.queue, worker, LEASE, "{}").await;
        answer.expect("a worker registers");
    }

    /// An id that is the same in every run of these steps.
    pub(crate) fn new_id(&mut self, queue: usize) -> TaskId {
        self.made += 1;
        made_id(&self.benches[queue].queue, 7, START + self.now, self.made)
    }

    /// Time passes while all workers but one send heartbeats.
    async fn beat(&mut self, ms: u64, but: Option<(usize, usize)>) -> Result<(), Departure> {
        let end = self.now + ms;
        while self.now < end {
            self.now = end.min(self.now + BEAT_MS);
            for queue in 0..2 {
                let alive = self.workers[queue].iter().enumerate();
                let alive = alive.filter(|(at, _)| but != Some((queue, *at)));
                let alive: Vec<WorkerId> =
                    alive.map(|(_, worker)| worker.id.clone()).chain([survivor()]).collect();
                for worker in alive {
                    self.renew(queue, &worker).await?;
                }
            }
        }
        Ok(())
    }

    async fn renew(&self, queue: usize, worker: &WorkerId) -> Result<(), Departure> {
        let bench = &self.benches[queue];
        let renewed = bench.at(self.now).renew(&bench.queue, worker, LEASE).await;
        let renewed = renewed.map_err(|problem| format!("a heartbeat fails: {problem:?}"))?;
        let mut held: Vec<TaskId> = renewed.held.into_iter().map(|(id, _)| id).collect();
        held.sort();
        let ours: Vec<TaskId> = self.world.held(worker).into_iter().map(|one| one.id).collect();
        let ours: Vec<TaskId> = ours.into_iter().filter(|id| *id.queue() == bench.queue).collect();
        if held == ours { Ok(()) } else { Err(format!("{worker} holds {held:?}, not {ours:?}")) }
    }

    pub(crate) async fn pass_time(&mut self, ms: u64) -> Result<(), Departure> {
        self.beat(ms, None).await
    }

    /// A worker dies. Its lease ends, and another one takes its tasks back.
    async fn lose(&mut self, queue: usize, worker: usize) -> Result<(), Departure> {
        let id = self.workers[queue][worker].id.clone();
        let held = self.held_in(queue, &id);
        self.beat(LEASE_MS + 1, Some((queue, worker))).await?;
        let bench = &self.benches[queue];
        let reaped = bench.at(self.now).reap(&bench.queue, &survivor(), LEASE, 128).await;
        let reaped = reaped.expect("a reap is answered");
        if reaped.tasks != held.len() {
            return Err(format!("{} tasks are taken back, not {held:?}", reaped.tasks));
        }
        for lease in held {
            self.come_back(&lease.id, self.now);
            self.world.task(&lease.id).losses += 1;
        }
        let worker = &mut self.workers[queue][worker];
        (worker.starts, worker.seq) = (worker.starts + 1, 0);
        worker.id = WorkerId::from_stored(&format!("{id}+"));
        let id = worker.id.clone();
        self.register(queue, &id).await;
        Ok(())
    }

    /// The leases of a worker in one queue.
    pub(crate) fn held_in(&self, queue: usize, worker: &WorkerId) -> Vec<Lease> {
        let mut held = self.world.held(worker);
        held.retain(|lease| *lease.id.queue() == self.benches[queue].queue);
        held
    }

    /// The leases that a step means, each once.
    fn picked(&self, queue: usize, worker: usize, picks: &[usize]) -> Vec<Lease> {
        let held = self.held_in(queue, &self.workers[queue][worker].id);
        let mut picked: Vec<Lease> = Vec::new();
        for pick in picks {
            if let Some(lease) = held.get(pick % held.len().max(1))
                && !picked.contains(lease)
            {
                picked.push(lease.clone());
            }
        }
        picked
    }

    /// A task leaves its worker to wait until then, or is cancelled if it was asked to stop.
    pub(crate) fn come_back(&mut self, id: &TaskId, due: u64) {
        if self.world.tasks[id].stop_asked {
            self.end(id, Place::Cancelled);
        } else {
            self.world.leave_worker(id, Place::Waits(due));
        }
    }

    /// Sends tasks; all must be accepted.
    pub(crate) async fn send(&self, queue: usize, tasks: &[Submission]) -> Result<(), Departure> {
        let receipts = self.benches[queue].submit(self.now, tasks).await;
        let is_created = |receipt| matches!(receipt, &optimus_core::broker::Receipt::Created);
        if receipts.iter().all(is_created) { Ok(()) } else { Err(format!("{receipts:?}")) }
    }

    async fn claim(&mut self, queue: usize, at: usize, want: usize) -> Result<(), Departure> {
        let worker = &mut self.workers[queue][at];
        worker.seq += 1;
        let (id, seq) = (worker.id.clone(), worker.seq);
        let bench = &self.benches[queue];
        bench.answer_wakeup().await;
        self.woken[queue] = false;
        let waiting = self
            .world
            .tasks
            .iter()
            .filter(|(_, task)| task.queue == queue && matches!(task.place, Place::Waits(_)));
        let waiting: Vec<TaskId> = waiting.map(|(id, _)| id.clone()).collect();
        self.world.look_at_gates(queue, self.now, &waiting);
        let claimed = bench.at(self.now).claim(&bench.queue, &id, seq, want).await;
        let claimed = claimed.map_err(|problem| format!("a claim fails: {problem:?}"))?;
        let leases: Vec<Lease> =
            claimed.grants.iter().map(|grant| lease(&grant.id, &id, claimed.token)).collect();
        self.note(|| {
            let ids: Vec<String> = leases.iter().map(|lease| lease.id.stored()).collect();
            format!("         grants {ids:?}, more: {}", claimed.more)
        });
        self.has_found_nothing = leases.is_empty() && claimed.more;
        for grant in claimed.grants {
            self.check_input(&grant.id, grant.record)?;
        }
        self.world.claimed(self.now, (queue, want), (&leases, claimed.more))
    }

    /// Collects for the runs that the worker leads.
    pub(crate) async fn collect(
        &mut self,
        queue: usize,
        worker: usize,
        want: usize,
    ) -> Result<(), Departure> {
        let held = self.held_in(queue, &self.workers[queue][worker].id);
        let leaders = held.iter().filter(|lease| self.world.is_leading(&lease.id));
        for leader in leaders.cloned().collect::<Vec<_>>() {
            self.collect_for(queue, &leader, want).await?;
        }
        Ok(())
    }

    /// Collects for one run.
    pub(crate) async fn collect_for(
        &mut self,
        queue: usize,
        leader: &Lease,
        want: usize,
    ) -> Result<(), Departure> {
        let broker = self.benches[queue].at(self.now);
        let collected = broker.collect(leader, want).await.expect("a collect is answered");
        let collected = collected.ok_or("the worker holds a leader, and may not collect")?;
        let leases: Vec<Lease> = (collected.grants.iter())
            .map(|grant| lease(&grant.id, &leader.worker, collected.token))
            .collect();
        self.note(|| format!("         collects {leases:?}"));
        self.world.collected((leader, want), (&leases, collected.more))
    }

    /// Relays carry all effects of both queues.
    pub(crate) async fn relay(&mut self) -> Result<(), Departure> {
        loop {
            let mut moved = 0;
            for bench in self.benches {
                let turn = bench.relay(self.now).await;
                if let Some((queue, problem)) = turn.failed.first() {
                    return Err(format!("nothing can be carried to {queue}: {problem:?}"));
                }
                moved += turn.moved + usize::from(turn.more);
            }
            if moved == 0 {
                break;
            }
        }
        self.world.relayed();
        self.compare_groups().await
    }

    /// How long steps wait.
    pub(crate) fn wait(millis: u64) -> std::time::Duration {
        ms(millis)
    }
}
