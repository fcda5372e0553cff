//! Finds out what the workers of a queue mean for its tasks: whether they know them, and whether
//! they may claim them.

use std::time::Duration;

use crate::{
    broker::{Broker, BrokerError, WorkerLoad},
    id::{QueueName, WorkerId},
    inspect::{Inspector, WorkerDescription},
    obstacle::Obstacle,
    process_leases::is_same,
    process_page::ProcessDoing,
};

/// At most this many workers are named.
const NAMED_MAX: usize = 4;

/// At most this many processes are read to find that of a worker with another id.
const PROCESSES_MAX: usize = 100;

/// The tasks of at most so many queues of a worker are counted, if all its slots are in use.
const QUEUES_MAX: usize = 100;

/// At most so many counts of tasks are read.
const COUNTS_MAX: usize = 1_000;

/// A worker of a queue whose lease is not over.
#[derive(Debug)]
pub(crate) struct LiveWorker {
    id: WorkerId,
    description: WorkerDescription,
    /// How many tasks of the queue it runs.
    working: u64,
    /// How many tasks of other queues it runs. Only counted if its process uses all slots.
    elsewhere: u64,
    /// How many slots it may use now, as its process has said.
    slots: u64,
    /// How many slots are in use, as its process has said; `None` if it has said nothing.
    busy: Option<u64>,
    /// For how long its handlers have blocked all threads, as its process has said.
    blocked: Option<Duration>,
}

/// The workers that serve a queue.
#[derive(Debug)]
pub(crate) struct LiveWorkers {
    read: Vec<LiveWorker>,
    /// How many were not read.
    others: u64,
}

impl LiveWorkers {
    pub(crate) fn is_empty(&self) -> bool {
        self.read.is_empty()
    }

    /// Returns whether a worker knows the task of this name.
    pub(crate) fn knows(&self, task: &str) -> bool {
        self.read.iter().any(|worker| worker.knows(task))
    }

    /// Says that there are more workers than were read, after what is said of those.
    pub(crate) fn others(&self, said: &[Obstacle]) -> Option<Obstacle> {
        let is_of_workers = |obstacle: &Obstacle| {
            matches!(
                obstacle,
                Obstacle::UnknownTask { .. }
                    | Obstacle::FewerSlots { .. }
                    | Obstacle::Blocked { .. }
                    | Obstacle::Busy { .. }
            )
        };
        let count = self.others;
        (count > 0 && said.iter().any(is_of_workers)).then_some(Obstacle::MoreWorkers { count })
    }
}

impl Inspector {
    /// Reads the workers that serve a queue.
    pub(crate) async fn live_workers(&self, queue: &QueueName) -> Result<LiveWorkers, BrokerError> {
        let (loads, others) = self.broker.worker_loads(queue).await?;
        Ok(LiveWorkers { read: self.live_of(queue, loads).await?, others })
    }

    /// Reads one worker; none if it is not registered in the queue, or its lease is over.
    pub(crate) async fn live_worker(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
    ) -> Result<LiveWorkers, BrokerError> {
        let load = self.broker.worker_load(queue, worker).await?;
        let read = self.live_of(queue, load.into_iter().collect()).await?;
        Ok(LiveWorkers { read, others: 0 })
    }

    /// Says that the handlers of a worker block it.
    pub(crate) async fn blocked_worker(
        &self,
        queue: &QueueName,
        load: WorkerLoad,
    ) -> Result<Option<Obstacle>, BrokerError> {
        let read = self.live_of(queue, vec![load]).await?;
        Ok(blocked_workers(&read.iter().collect::<Vec<_>>()))
    }

    async fn live_of(
        &self,
        queue: &QueueName,
        loads: Vec<WorkerLoad>,
    ) -> Result<Vec<LiveWorker>, BrokerError> {
        if loads.is_empty() {
            return Ok(Vec::new());
        }
        let now_ms = self.broker.now_ms().await?;
        let live = loads.into_iter().filter(|load| load.lease_until_ms > now_ms);
        let mut workers: Vec<LiveWorker> = live.map(LiveWorker::of).collect();
        allow(&self.broker, &mut workers).await?;
        count_elsewhere(&self.broker, queue, &mut workers).await?;
        Ok(workers)
    }
}

/// Reads how many slots the processes of these workers may use.
async fn allow(broker: &Broker, workers: &mut [LiveWorker]) -> Result<(), BrokerError> {
    let fleet = Broker::fleet();
    let ids: Vec<&str> = workers.iter().map(|worker| worker.id.as_str()).collect();
    let found = broker.processes_of(&fleet, &ids).await?;
    // A worker that has lost a lease has another id than its process.
    let others = if found.iter().any(Option::is_none) {
        broker.processes(&fleet, "", PROCESSES_MAX).await?.0
    } else {
        Vec::new()
    };
    for (worker, found) in workers.iter_mut().zip(&found) {
        let process = found.as_ref().or_else(|| {
            let about = |text: &str| serde_json::from_str(text).unwrap_or_default();
            others.iter().find(|other| is_same(&about(&other.description), &worker.description))
        });
        let doing = process.and_then(|seen| serde_json::from_str::<ProcessDoing>(&seen.doing).ok());
        if let Some(doing) = doing {
            // An operator may ask for more than there are.
            worker.slots = worker.slots.min(doing.slots as u64);
            worker.busy = Some(doing.busy as u64);
            worker.blocked = doing.blocked_ms.map(Duration::from_millis);
        }
    }
    Ok(())
}

/// Counts the tasks that these workers run of other queues, which share the slots. What processes
/// say of their slots is up to 5 s old, so the counts decide.
async fn count_elsewhere(
    broker: &Broker,
    queue: &QueueName,
    workers: &mut [LiveWorker],
) -> Result<(), BrokerError> {
    let (mut pairs, mut owners) = (Vec::new(), Vec::new());
    for (at, worker) in workers.iter().enumerate().filter(|(_, worker)| worker.may_be_full()) {
        let others = worker.description.queues.iter().filter(|name| *name != queue.as_str());
        for other in others.take(QUEUES_MAX).filter_map(|name| QueueName::new(name).ok()) {
            pairs.push((other, worker.id.clone()));
            owners.push(at);
        }
    }
    pairs.truncate(COUNTS_MAX);
    for (owner, held) in owners.into_iter().zip(broker.held(&pairs).await?) {
        workers[owner].elsewhere += held;
    }
    Ok(())
}

impl LiveWorker {
    fn of(load: WorkerLoad) -> Self {
        let description: WorkerDescription =
            serde_json::from_str(&load.description).unwrap_or_default();
        let slots = description.concurrency as u64;
        let (id, working) = (load.id, load.working);
        Self { id, working, elsewhere: 0, slots, busy: None, blocked: None, description }
    }

    /// Returns whether tasks of other queues may use the slots that are left.
    fn may_be_full(&self) -> bool {
        self.working < self.slots && self.busy.is_none_or(|busy| busy >= self.slots)
    }

    fn knows(&self, task: &str) -> bool {
        self.description.tasks.iter().any(|known| known == task)
    }

    fn has_fewer(&self) -> bool {
        self.slots < self.description.concurrency as u64
    }
}

/// Names the workers whose handlers block them.
fn blocked_workers(blocked: &[&LiveWorker]) -> Option<Obstacle> {
    let since = blocked.iter().filter_map(|worker| worker.blocked).max()?;
    let workers = blocked.iter().map(|worker| worker.id.clone()).take(NAMED_MAX).collect();
    Some(Obstacle::Blocked { workers, count: blocked.len() as u64, since })
}

/// What the workers mean for a task of this name, or for any task.
pub(crate) fn of_workers(workers: &LiveWorkers, task: Option<&str>) -> Vec<Obstacle> {
    if workers.is_empty() {
        return vec![Obstacle::NoWorker];
    }
    let fits = |worker: &&LiveWorker| task.is_none_or(|task| worker.knows(task));
    let fitting: Vec<&LiveWorker> = workers.read.iter().filter(fits).collect();
    if let (true, Some(task)) = (fitting.is_empty(), task) {
        return vec![Obstacle::UnknownTask { task: task.to_owned() }];
    }
    // One that is blocked uses none of its slots.
    let (blocked, fitting): (Vec<_>, Vec<_>) =
        fitting.into_iter().partition(|worker| worker.blocked.is_some());
    let slots = fitting.iter().map(|worker| worker.slots).sum();
    let working: u64 = fitting.iter().map(|worker| worker.working).sum();
    let elsewhere: u64 = fitting.iter().map(|worker| worker.elsewhere).sum();
    if working + elsewhere < slots {
        return Vec::new();
    }
    let mut obstacles: Vec<Obstacle> = blocked_workers(&blocked).into_iter().collect();
    let fewer: Vec<WorkerId> = fitting
        .iter()
        .filter(|worker| worker.has_fewer())
        .map(|worker| worker.id.clone())
        .collect();
    if !fewer.is_empty() {
        obstacles.push(Obstacle::FewerSlots {
            count: fewer.len() as u64,
            of: fitting.len() as u64,
            slots,
            workers: fewer.into_iter().take(NAMED_MAX).collect(),
        });
    }
    if slots > 0 || obstacles.is_empty() {
        obstacles.push(Obstacle::Busy { slots, working, elsewhere });
    }
    obstacles
}
