//! Explains why a task has not started, why a queue's tasks are not claimed, and why a worker is
//! idle: [`Explanation`].

use std::fmt;

use chrono::{DateTime, Utc};
use futures_util::future::try_join_all;

use crate::{
    Error,
    broker::{Broker, WorkerLoad},
    gate::Gate,
    id::{QueueName, TaskId, WorkerId},
    inspect::{Inspector, PrerequisiteDetails, WorkerDescription},
    limit::LimitDetails,
    platform::instant,
    record::TaskRecord,
    state::TaskState,
};

/// What is between a task and its start, in the order in which the task passes it. The same for a
/// queue or a worker: what keeps its tasks from being claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// All that is known to be in the way. If this is empty, the next claim takes the task.
    pub obstacles: Vec<Obstacle>,
    /// The task does not start before this time, by Redis' clock; `None` if no obstacle has a time.
    pub not_before: Option<DateTime<Utc>>,
}

/// One thing that keeps tasks waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// The store has no data about the task.
    Forgotten,
    /// The task has ended in this state.
    Ended(TaskState),
    /// A worker runs the task.
    Running(Option<WorkerId>),
    /// Another task must succeed first.
    Prerequisite(PrerequisiteDetails),
    /// The task is not due, or no task of the queue is ready before this time.
    NotDue {
        /// When it is due.
        at: DateTime<Utc>,
    },
    /// Other tasks of its lane come first.
    Lane {
        /// The key of the lane.
        key: String,
        /// The tasks that have the lane now, at most four.
        holders: Vec<TaskId>,
        /// How many other tasks of the lane come before it.
        ahead: u64,
    },
    /// A limit lets no task start now, or is paused.
    Limit(LimitDetails),
    /// No worker serves the queue.
    NoWorker,
    /// The workers that serve the queue do not know the task.
    UnknownTask {
        /// The name of the task.
        task: String,
    },
    /// All slots of the workers that could run the task are in use.
    Busy {
        /// How many slots they have.
        slots: u64,
        /// How many tasks of the queue they run.
        working: u64,
    },
    /// Other ready tasks come first.
    Behind {
        /// How many.
        ahead: u64,
        /// Whether there may be more.
        or_more: bool,
    },
    /// No task of the queue is ready.
    NothingReady {
        /// How many tasks are blocked.
        blocked: u64,
    },
    /// The worker is not registered in the queue: it does not serve the queue, or its lease is
    /// over.
    NotRegistered,
}

impl Inspector {
    /// Explains why a task has not started. The reads are bounded: they do not depend on how many
    /// tasks the queue has.
    ///
    /// ```
    /// # async fn doc(client: &optimus_core::Client, id: &optimus_core::TaskId)
    /// # -> Result<(), optimus_core::Error> {
    /// println!("{}", client.inspector().explain(id).await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn explain(&self, id: &TaskId) -> Result<Explanation, Error> {
        let found = self.broker.inspect(id).await?;
        match found.state {
            TaskState::Forgotten => return Ok(Explanation::of(vec![Obstacle::Forgotten])),
            TaskState::Working => {
                return Ok(Explanation::of(vec![Obstacle::Running(found.worker)]));
            }
            state @ (TaskState::Success | TaskState::Dead | TaskState::Cancelled) => {
                return Ok(Explanation::of(vec![Obstacle::Ended(state)]));
            }
            _ => {}
        }
        let (record, mut obstacles) = (TaskRecord::decode(found.record).ok(), Vec::new());
        if let Some(after) = record.as_ref().and_then(|record| record.after.as_ref()) {
            let found = self.broker.prerequisites(id, after).await?.into_iter();
            obstacles.extend(found.filter(|found| !found.is_met).map(Obstacle::Prerequisite));
        }
        obstacles.extend(found.at_ms.map(|at| Obstacle::NotDue { at: instant(at) }));
        let lane = record.as_ref().and_then(|record| record.lane.as_ref()).map(|lane| &*lane.key);
        if let Some(key) = lane
            && let Some(place) = self.broker.lane_place(id, key).await?
        {
            let (key, holders, ahead) = (key.to_owned(), place.holders, place.ahead);
            obstacles.push(Obstacle::Lane { key, holders, ahead });
        }
        let mut gates = vec![Gate::Queue];
        if let Some(record) = &record {
            gates.push(Gate::Task(record.task.clone()));
            gates.extend(lane.map(|key| Gate::Lane(key.to_owned())));
            let others = record.limits.iter().map(|limit| &limit.gate);
            gates.extend(others.filter(|gate| matches!(gate, Gate::Named(_))).cloned());
        }
        obstacles.extend(shut_gates(&self.broker, id.queue(), gates).await?);
        let workers = self.broker.worker_loads(id.queue()).await?;
        let task = record.map(|record| record.task);
        obstacles.extend(of_workers(&workers, task.as_deref()));
        if found.state == TaskState::Ready {
            let (ahead, or_more) = self.broker.ready_place(id).await?;
            if ahead > 0 {
                obstacles.push(Obstacle::Behind { ahead, or_more });
            }
        }
        Ok(Explanation::of(obstacles))
    }

    /// Explains why no task of a queue is claimed.
    ///
    /// # Errors
    /// [`Error::is_unavailable`]; [`Error::is_invalid`] if no queue can have this name.
    pub async fn explain_queue(&self, queue: impl AsRef<str>) -> Result<Explanation, Error> {
        let queue = &QueueName::new(queue)?;
        let (mut obstacles, tasks) = self.of_queue(queue).await?;
        let workers = self.broker.worker_loads(queue).await?;
        obstacles.extend(of_workers(&workers, None));
        if !workers.is_empty() && !tasks.is_empty() {
            let unknown = tasks.into_iter().find(|task| !knows(&workers, task));
            obstacles.extend(unknown.map(|task| Obstacle::UnknownTask { task }));
        }
        Ok(Explanation::of(obstacles))
    }

    /// Explains why a worker claims no task of a queue.
    ///
    /// # Errors
    /// As for [`explain_queue`](Self::explain_queue).
    pub async fn explain_worker(
        &self,
        queue: impl AsRef<str>,
        worker: &WorkerId,
    ) -> Result<Explanation, Error> {
        let queue = &QueueName::new(queue)?;
        let Some(load) = self.broker.worker_load(queue, worker).await? else {
            return Ok(Explanation::of(vec![Obstacle::NotRegistered]));
        };
        let workers = [load];
        let (mut obstacles, tasks) = self.of_queue(queue).await?;
        obstacles.extend(of_workers(&workers, None));
        let unknown = tasks.into_iter().find(|task| !knows(&workers, task));
        obstacles.extend(unknown.map(|task| Obstacle::UnknownTask { task }));
        Ok(Explanation::of(obstacles))
    }

    /// What keeps a queue from being claimed, without its workers, and the names of its first ready
    /// tasks.
    async fn of_queue(&self, queue: &QueueName) -> Result<(Vec<Obstacle>, Vec<String>), Error> {
        let load = self.broker.queue_load(queue).await?;
        let mut obstacles = shut_gates(&self.broker, queue, vec![Gate::Queue]).await?;
        if load.ready == 0 {
            let at = load.next_due_ms.map(|at| Obstacle::NotDue { at: instant(at) });
            obstacles.push(Obstacle::NothingReady { blocked: load.blocked });
            obstacles.extend(at);
        }
        let records = load.first.into_iter().filter_map(|record| TaskRecord::decode(record).ok());
        Ok((obstacles, records.map(|record| record.task).collect()))
    }
}

/// The gates that let no task start now.
async fn shut_gates(
    broker: &Broker,
    queue: &QueueName,
    gates: Vec<Gate>,
) -> Result<Vec<Obstacle>, Error> {
    let reads = gates.iter().map(|gate| broker.limit(queue, gate));
    let found = try_join_all(reads).await?.into_iter().flatten();
    Ok(found.filter(is_shut).map(Obstacle::Limit).collect())
}

fn is_shut(gate: &LimitDetails) -> bool {
    let is_full = |most| gate.working >= u64::from(most);
    gate.shut.is_some()
        || gate.tokens == Some(0)
        || gate.limit.max_working_limit().is_some_and(is_full)
        || gate.waiting > 0
}

fn described(worker: &WorkerLoad) -> WorkerDescription {
    serde_json::from_str(&worker.description).unwrap_or_default()
}

fn knows(workers: &[WorkerLoad], task: &str) -> bool {
    workers.iter().any(|worker| described(worker).tasks.iter().any(|known| known == task))
}

/// What the workers mean for a task of this name, or for any task.
fn of_workers(workers: &[WorkerLoad], task: Option<&str>) -> Option<Obstacle> {
    if workers.is_empty() {
        return Some(Obstacle::NoWorker);
    }
    let fits =
        |worker: &&WorkerLoad| task.is_none_or(|task| knows(std::slice::from_ref(*worker), task));
    let fitting: Vec<&WorkerLoad> = workers.iter().filter(fits).collect();
    if let (true, Some(task)) = (fitting.is_empty(), task) {
        return Some(Obstacle::UnknownTask { task: task.to_owned() });
    }
    let slots = fitting.iter().map(|worker| described(worker).concurrency as u64).sum();
    let working = fitting.iter().map(|worker| worker.working).sum();
    (working >= slots).then_some(Obstacle::Busy { slots, working })
}

impl Explanation {
    fn of(obstacles: Vec<Obstacle>) -> Self {
        let not_before = obstacles.iter().filter_map(Obstacle::ends).max();
        Self { obstacles, not_before }
    }
}

impl Obstacle {
    /// Returns when it ends at the earliest, if that is known.
    fn ends(&self) -> Option<DateTime<Utc>> {
        match self {
            Self::NotDue { at } => Some(*at),
            Self::Limit(gate) => match &gate.shut {
                Some(shut) => shut.until,
                None => gate.next,
            },
            _ => None,
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.obstacles.is_empty() {
            return f.write_str("nothing is in the way: the next claim takes it");
        }
        for (number, obstacle) in (1..).zip(&self.obstacles) {
            let line_break = if number == 1 { "" } else { "\n" };
            write!(f, "{line_break}{number}. {obstacle}")?;
        }
        match self.not_before {
            Some(at) => write!(f, "\nnot before {}", at.to_rfc3339()),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forgotten => f.write_str("nothing is known of the task"),
            Self::Ended(state) => write!(f, "the task has ended: it is {state}"),
            Self::Running(Some(worker)) => write!(f, "worker {worker} runs the task"),
            Self::Running(None) => f.write_str("a worker runs the task"),
            Self::Prerequisite(PrerequisiteDetails { prerequisite, state, .. }) => {
                write!(f, "it waits until {prerequisite} has succeeded, which is {state}")
            }
            Self::NotDue { at } => write!(f, "it is due at {}", at.to_rfc3339()),
            Self::Lane { key, holders, ahead } => {
                write!(f, "lane {key}: {ahead} tasks are before it; the lane is held by")?;
                if holders.is_empty() {
                    return f.write_str(" no task, which is about to change");
                }
                holders.iter().try_for_each(|id| write!(f, " {id}"))
            }
            Self::Limit(gate) => limit_text(gate, f),
            Self::NoWorker => f.write_str("no worker serves the queue"),
            Self::UnknownTask { task } => write!(f, "no worker of the queue knows task {task}"),
            Self::Busy { slots, working } => {
                write!(f, "all slots are in use: {working} tasks run in {slots} slots")
            }
            Self::Behind { ahead, or_more: false } => {
                write!(f, "{ahead} ready tasks are before it")
            }
            Self::Behind { ahead, or_more: true } => {
                write!(f, "at least {ahead} ready tasks are before it")
            }
            Self::NothingReady { blocked } => {
                write!(f, "no task is ready; {blocked} wait for a lane or a limit")
            }
            Self::NotRegistered => f.write_str("the worker is not registered in the queue"),
        }
    }
}

fn limit_text(gate: &LimitDetails, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{}: ", gate.gate)?;
    if let Some(shut) = &gate.shut {
        let by = if shut.by.is_empty() { "a task" } else { &shut.by };
        write!(f, "paused by {by}")?;
        if !shut.why.is_empty() {
            write!(f, " ({})", shut.why)?;
        }
        return match shut.until {
            Some(until) => write!(f, " until {}", until.to_rfc3339()),
            None => f.write_str(" until it is resumed"),
        };
    }
    if let Some(rate) = gate.limit.rate_limit() {
        write!(f, "{rate}, {} may start now; ", gate.tokens.unwrap_or(0))?;
    }
    if let Some(most) = gate.limit.max_working_limit() {
        write!(f, "{} of {most} run; ", gate.working)?;
    }
    write!(f, "{} tasks wait", gate.waiting)
}
