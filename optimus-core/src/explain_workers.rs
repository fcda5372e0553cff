//! Finds out what the workers of a queue mean for its tasks: whether they know them, and whether
//! they may claim them.

use crate::{
    broker::{Broker, BrokerError, WorkerLoad},
    explanation::Obstacle,
    id::{QueueName, WorkerId},
    inspect::{Inspector, WorkerDescription},
    process_page::{ProcessAbout, ProcessDoing},
};

/// At most this many workers are named.
const NAMED_MAX: usize = 4;

/// At most this many processes are read to find that of a worker with another id.
const PROCESSES_MAX: usize = 100;

/// A worker of a queue whose lease is not over.
#[derive(Debug)]
pub(crate) struct Crew {
    id: WorkerId,
    description: WorkerDescription,
    /// How many tasks of the queue it runs.
    working: u64,
    /// How many slots it may use now, as its process has said.
    slots: u64,
}

impl Inspector {
    /// Reads the workers that serve a queue.
    pub(crate) async fn crews(&self, queue: &QueueName) -> Result<Vec<Crew>, BrokerError> {
        let loads = self.broker.worker_loads(queue).await?;
        self.crews_of(loads).await
    }

    /// Reads one worker; `None` if it is not registered in the queue, or its lease is over.
    pub(crate) async fn crew(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
    ) -> Result<Option<Crew>, BrokerError> {
        let load = self.broker.worker_load(queue, worker).await?;
        Ok(self.crews_of(load.into_iter().collect()).await?.pop())
    }

    async fn crews_of(&self, loads: Vec<WorkerLoad>) -> Result<Vec<Crew>, BrokerError> {
        if loads.is_empty() {
            return Ok(Vec::new());
        }
        let now_ms = self.broker.now_ms().await?;
        let live = loads.into_iter().filter(|load| load.lease_until_ms > now_ms);
        let mut crews: Vec<Crew> = live.map(Crew::of).collect();
        allow(&self.broker, &mut crews).await?;
        Ok(crews)
    }
}

/// Reads how many slots the processes of these workers may use.
async fn allow(broker: &Broker, crews: &mut [Crew]) -> Result<(), BrokerError> {
    let fleet = Broker::fleet();
    let ids: Vec<&str> = crews.iter().map(|crew| crew.id.as_str()).collect();
    let found = broker.processes_of(&fleet, &ids).await?;
    // A worker that has lost a lease has another id than its process.
    let others = if found.iter().any(Option::is_none) {
        broker.processes(&fleet, "", PROCESSES_MAX).await?.0
    } else {
        Vec::new()
    };
    for (crew, found) in crews.iter_mut().zip(&found) {
        let process = found.as_ref().or_else(|| {
            let same = |about: ProcessAbout| {
                let own = &crew.description;
                (about.pid, about.started) == (own.pid, own.started) && about.host == own.host
            };
            let about = |text: &str| serde_json::from_str(text).unwrap_or_default();
            others.iter().find(|other| same(about(&other.description)))
        });
        let doing = process.and_then(|seen| serde_json::from_str::<ProcessDoing>(&seen.doing).ok());
        if let Some(doing) = doing {
            // An operator may ask for more than there are.
            crew.slots = crew.slots.min(doing.slots as u64);
        }
    }
    Ok(())
}

impl Crew {
    fn of(load: WorkerLoad) -> Self {
        let description: WorkerDescription =
            serde_json::from_str(&load.description).unwrap_or_default();
        let slots = description.concurrency as u64;
        Self { id: load.id, working: load.working, slots, description }
    }

    fn knows(&self, task: &str) -> bool {
        self.description.tasks.iter().any(|known| known == task)
    }

    fn has_fewer(&self) -> bool {
        self.slots < self.description.concurrency as u64
    }
}

/// Returns whether a worker knows the task of this name.
pub(crate) fn knows(crews: &[Crew], task: &str) -> bool {
    crews.iter().any(|crew| crew.knows(task))
}

/// What the workers mean for a task of this name, or for any task.
pub(crate) fn of_crews(crews: &[Crew], task: Option<&str>) -> Vec<Obstacle> {
    if crews.is_empty() {
        return vec![Obstacle::NoWorker];
    }
    let fits = |crew: &&Crew| task.is_none_or(|task| crew.knows(task));
    let fitting: Vec<&Crew> = crews.iter().filter(fits).collect();
    if let (true, Some(task)) = (fitting.is_empty(), task) {
        return vec![Obstacle::UnknownTask { task: task.to_owned() }];
    }
    let slots = fitting.iter().map(|crew| crew.slots).sum();
    let working = fitting.iter().map(|crew| crew.working).sum();
    if working < slots {
        return Vec::new();
    }
    let fewer: Vec<WorkerId> =
        fitting.iter().filter(|crew| crew.has_fewer()).map(|crew| crew.id.clone()).collect();
    let mut obstacles = Vec::new();
    if !fewer.is_empty() {
        obstacles.push(Obstacle::FewerSlots {
            count: fewer.len() as u64,
            of: fitting.len() as u64,
            slots,
            workers: fewer.into_iter().take(NAMED_MAX).collect(),
        });
    }
    if slots > 0 || obstacles.is_empty() {
        obstacles.push(Obstacle::Busy { slots, working });
    }
    obstacles
}
