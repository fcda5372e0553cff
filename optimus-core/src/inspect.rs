//! Reads tasks, queues and workers, and changes nothing: [`Inspector`].

use std::{collections::BTreeMap, fmt};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

pub use crate::broker::{Counts, LaneDetails, PrerequisiteDetails, ServerFacts, Totals};
use crate::{
    Error,
    broker::Broker,
    gate::Gate,
    id::{QueueName, TaskId, WorkerId},
    limit::{LimitDetails, TaskLimit},
    page_cursor::PageCursor,
    platform::instant,
    prerequisite_key::Key,
    record::{RecordError, TaskRecord},
    state::{AttemptError, TaskState},
    stats::{Stats, StatsUnit},
    stats_sum::check_last,
    task_log::TaskLog,
    task_page::{PAGE_MAX, TaskPage},
};

/// Reads the store of a client.
#[derive(Clone)]
pub struct Inspector {
    pub(crate) broker: Broker,
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = self.broker.endpoint().describe();
        f.debug_struct("Inspector").field("store", &store).finish_non_exhaustive()
    }
}

/// One task, with all its stored data.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TaskDetails {
    /// The id of the task.
    pub id: TaskId,
    /// The state of the task.
    pub state: TaskState,
    /// The worker that runs it.
    pub worker: Option<WorkerId>,
    /// When the task is due (delayed, retry) or ended, by Redis' clock.
    pub at: Option<DateTime<Utc>>,
    /// Attempts that failed.
    pub failures: u32,
    /// Attempts that ended because their worker was lost.
    pub losses: u32,
    /// How often workers gave the task back since it last ran, because they could not run it: they
    /// do not know the task's name, or the version of its record. If no worker can run the task for
    /// the `misfit_grace` of a worker (1 hour), it is Dead, with the reason *unknown*.
    pub misfits: u32,
    /// The last errors of the task, at most ten, the latest last.
    pub errors: Vec<AttemptError>,
    /// The record of the task; `None` once the task has succeeded.
    pub record: Option<Result<TaskRecord, RecordError>>,
    /// The summary of a success: `<task> <attempt> <ms> <worker>`.
    pub summary: Option<String>,
    /// What its attempts have said with [`Context::log`](crate::Context::log).
    pub log: TaskLog,
    /// When a cancel asked the worker that runs it to stop it, by Redis' clock. The task ends once
    /// its handler does.
    pub cancel_requested: Option<DateTime<Utc>>,
}

/// A worker, with its machine and the tasks that it runs in one queue.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WorkerDetails {
    /// The id of the worker.
    pub id: WorkerId,
    /// The description that the worker registered.
    pub description: WorkerDescription,
    /// When the worker's lease ends unless it is renewed, by Redis' clock.
    pub lease_until: DateTime<Utc>,
    /// The tasks that it runs.
    pub running: Vec<TaskId>,
}

/// The description that a worker registers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerDescription {
    /// The configured name of the worker, if any.
    pub name: Option<String>,
    /// The name of the machine.
    pub host: String,
    /// The id of the process.
    pub pid: u32,
    /// When the worker started, by its own clock.
    #[serde(rename = "started_ms", with = "chrono::serde::ts_milliseconds")]
    pub started: DateTime<Utc>,
    /// The queues that it serves.
    pub queues: Vec<String>,
    /// How many tasks it runs at the same time.
    pub concurrency: usize,
    /// The tasks that it can run.
    pub tasks: Vec<String>,
    /// The limits that the definitions of these tasks declare, by the queue of the definition.
    pub limits: BTreeMap<String, Vec<TaskLimit>>,
}

impl WorkerDescription {
    /// Returns whether a task of the worker declares a limit for this gate.
    pub(crate) fn declares(&self, queue: &QueueName, gate: &Gate) -> bool {
        let limits = self.limits.get(queue.as_str());
        limits.is_some_and(|limits| limits.iter().any(|known| known.gate == *gate))
    }
}

impl Inspector {
    pub(crate) fn new(broker: Broker) -> Self {
        Self { broker }
    }

    /// Returns all queues that are paused or have had a submit or a worker, except those that were
    /// unused for a day.
    ///
    /// # Errors
    /// [`Error::is_unavailable`], as for all methods here.
    pub async fn queues(&self) -> Result<Vec<QueueName>, Error> {
        Ok(self.broker.queues().await?)
    }

    /// Counts the tasks of a queue in each state.
    ///
    /// # Errors
    /// [`Error::is_unavailable`]; [`Error::is_invalid`] if no queue can have this name, as for all
    /// methods here that are given a queue.
    pub async fn counts(&self, queue: impl AsRef<str>) -> Result<Counts, Error> {
        Ok(self.broker.counts(&QueueName::new(queue)?).await?)
    }

    /// Reads how many tasks of a queue have succeeded, died and were cancelled so far.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn totals(&self, queue: impl AsRef<str>) -> Result<Totals, Error> {
        Ok(self.broker.totals(&QueueName::new(queue)?).await?)
    }

    /// Reads what ended in a queue in the last `last` minutes, hours or days, by task: how many
    /// attempts in which way, and how long they ran and waited. The present minute, hour or day is
    /// one of them.
    ///
    /// Workers count, and add their counts every 10 s, or up to every minute if the queue has many
    /// workers. A worker that is killed loses the counts since then;
    /// [`totals`](Self::totals) loses none. One read is at most 128 rows.
    ///
    /// ```
    /// # async fn doc(client: &optimus_core::Client) -> Result<(), optimus_core::Error> {
    /// # use optimus_core as optimus;
    /// use optimus::StatsUnit;
    ///
    /// let hour = client.inspector().stats("mail", StatsUnit::Minute, 60).await?;
    /// for (task, ended) in hour.by_task() {
    ///     println!("{task}: {} succeeded, {} died", ended.successes, ended.deaths);
    ///     println!("99 % ran for less than {:?}", ended.run.percentile(99.0));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unavailable`]; [`Error::is_invalid`] if `last` is 0.
    pub async fn stats(
        &self,
        queue: impl AsRef<str>,
        unit: StatsUnit,
        last: u32,
    ) -> Result<Stats, Error> {
        let queue = &QueueName::new(queue)?;
        check_last(last)?;
        Ok(self.broker.stats(queue, unit, last).await?)
    }

    /// Tasks in a state: at most `limit` (and [`PAGE_MAX`]), starting at `after`, which the page
    /// before has returned.
    ///
    /// A page is one call with at most about 256 KiB, so it may have fewer rows than `limit`;
    /// `next` shows whether there may be more. After a full page, the next one may be empty. A task
    /// that stays in the state is on one of the pages, and sometimes on two. In the ready list,
    /// tasks with a priority come first, although a claim merges both by age. If thousands of tasks
    /// of a queue are claimed between two pages, the second page may skip some. If Redis has
    /// restarted or failed over, a walk through tasks that wait for others begins them again. It
    /// may skip some instead if the server's user may not run `INFO`.
    ///
    /// ```
    /// # use optimus_core as optimus;
    /// use optimus::{Error, Inspector, TaskRow, TaskState};
    ///
    /// async fn all_dead(inspector: &Inspector, queue: &str) -> Result<Vec<TaskRow>, Error> {
    ///     let (mut rows, mut after) = (Vec::new(), None);
    ///     loop {
    ///         let page = inspector.list(queue, TaskState::Dead, after.as_ref(), 100).await?;
    ///         rows.extend(page.rows);
    ///         after = page.next;
    ///         if after.is_none() {
    ///             return Ok(rows);
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unavailable`]; [`Error::is_invalid`] if `after` is of another queue or state, or
    /// if `limit` is 0.
    pub async fn list(
        &self,
        queue: impl AsRef<str>,
        state: TaskState,
        after: Option<&PageCursor>,
        limit: usize,
    ) -> Result<TaskPage, Error> {
        let queue = &QueueName::new(queue)?;
        let limit = limit.min(PAGE_MAX);
        let place = after.map_or(Ok(""), |after| after.place_in(queue, state))?;
        if limit == 0 {
            // An empty page without a cursor would mean that no task is in the state.
            let problem = "the limit of a page is 0; ask for 1 row or more";
            return Err(Error::invalid(problem));
        }
        Ok(TaskPage::of(queue, state, self.broker.list(queue, state, limit, place).await?))
    }

    /// Reads all data of one task; `None` if nothing is stored.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn get(&self, id: &TaskId) -> Result<Option<TaskDetails>, Error> {
        let found = self.broker.inspect(id).await?;
        if found.state == TaskState::Forgotten {
            return Ok(None);
        }
        let record = (!found.record.is_empty()).then(|| {
            TaskRecord::decode(found.record).map(|mut record| {
                if record.has_blob {
                    record.payload = found.blob;
                }
                record
            })
        });
        let (failures, losses, misfits) = found.tries;
        Ok(Some(TaskDetails {
            id: id.clone(),
            state: found.state,
            worker: found.worker,
            at: found.at_ms.map(instant),
            failures,
            losses,
            misfits,
            errors: found.errors.lines().filter_map(read_error).collect(),
            record,
            summary: summary(&found.summary),
            log: TaskLog::read(&found.log),
            cancel_requested: found.cancel_ms.map(instant),
        }))
    }

    /// Finds the task to which a biz id belongs: one that has not ended, one in its `biz_window`,
    /// or one whose success is remembered for its `outcome_ttl`. `None` if the biz id is free.
    ///
    /// ```
    /// # async fn doc(client: &optimus_core::Client) -> Result<(), optimus_core::Error> {
    /// # use optimus_core as optimus;
    /// use optimus::Key;
    ///
    /// // With a function: `key(bill, "order-17")`.
    /// if let Some(id) = client.inspector().find(&Key::new("billing", "bill", "order-17")).await? {
    ///     println!("{id}: {}", client.inspector().explain(&id).await?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unavailable`]; [`Error::is_invalid`] if the key names a queue that can't exist.
    pub async fn find(&self, key: &Key) -> Result<Option<TaskId>, Error> {
        let (queue, task, biz_id) = key.parts()?;
        Ok(self.broker.find(&queue, task, biz_id).await?)
    }

    /// Returns the workers that serve a queue.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn workers(&self, queue: impl AsRef<str>) -> Result<Vec<WorkerDetails>, Error> {
        let seen = self.broker.workers(&QueueName::new(queue)?).await?;
        Ok(seen
            .into_iter()
            .map(|worker| WorkerDetails {
                id: worker.id,
                description: serde_json::from_str(&worker.description).unwrap_or_default(),
                lease_until: instant(worker.lease_until_ms),
                running: worker.running,
            })
            .collect())
    }

    /// Reads the lanes of a queue in which tasks wait: at most `limit` (and [`PAGE_MAX`]), the
    /// lane that has waited longest first, and then paused lanes in which only tasks wait whose
    /// turn it is. A lane in which no task waits is not listed, also if it is paused.
    ///
    /// # Errors
    /// [`Error::is_unavailable`]; [`Error::is_invalid`] if `limit` is 0.
    pub async fn lanes(
        &self,
        queue: impl AsRef<str>,
        limit: usize,
    ) -> Result<Vec<LaneDetails>, Error> {
        let queue = &QueueName::new(queue)?;
        if limit == 0 {
            return Err(Error::invalid("the limit is 0; ask for 1 lane or more"));
        }
        Ok(self.broker.lanes_and_paused(queue, limit.min(PAGE_MAX)).await?)
    }

    /// Reads what a task waits for, or has waited for: each [prerequisite](crate::Call::after), and
    /// the state of that task. It is empty for a task without prerequisites, and for one that has
    /// succeeded or is not known. Of a group, it is what the members wait for, until one has ended.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn prerequisites(&self, id: &TaskId) -> Result<Vec<PrerequisiteDetails>, Error> {
        let record = self.broker.inspect(id).await?.record;
        match TaskRecord::decode(record).ok().and_then(|record| record.after) {
            Some(after) => Ok(self.prerequisites_after(id, Some(&after)).await?),
            None => Ok(self.before_members(id).await?),
        }
    }

    /// Reads the limits of a queue that were set, are paused, keep tasks waiting, or are declared
    /// by a task that a worker of the queue can run: at most `limit` (and [`PAGE_MAX`]) of each of
    /// these, so that there may be more rows than `limit`. A `lane_rate` is listed only while tasks
    /// of the lane wait, for it or for another limit of theirs: they count at the one that opens
    /// last, so [`waiting`](LimitDetails::waiting) of the other may be 0.
    ///
    /// # Errors
    /// [`Error::is_unavailable`]; [`Error::is_invalid`] if `limit` is 0.
    pub async fn limits(
        &self,
        queue: impl AsRef<str>,
        limit: usize,
    ) -> Result<Vec<LimitDetails>, Error> {
        let queue = &QueueName::new(queue)?;
        if limit == 0 {
            return Err(Error::invalid("the limit is 0; ask for 1 row or more"));
        }
        let declared = self.declared_limits(queue).await?;
        Ok(self.broker.limits_declared(queue, limit.min(PAGE_MAX), &declared).await?)
    }

    /// Reads the limits that the workers of a queue declare.
    pub(crate) async fn declared_limits(&self, queue: &QueueName) -> Result<Vec<TaskLimit>, Error> {
        let mut declared: Vec<TaskLimit> = Vec::new();
        for worker in self.broker.worker_loads(queue).await?.0 {
            let mut known: WorkerDescription =
                serde_json::from_str(&worker.description).unwrap_or_default();
            declared.extend(known.limits.remove(queue.as_str()).unwrap_or_default());
        }
        // A task that only names a limit does not describe it.
        declared.sort_by_key(|known| (known.gate.clone(), known.limit.is_none()));
        declared.dedup_by(|later, first| later.gate == first.gate);
        Ok(declared)
    }

    /// Reads the time of Redis, by which leases, due times and the times in these answers count.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn now(&self) -> Result<DateTime<Utc>, Error> {
        Ok(instant(self.broker.now_ms().await?))
    }

    /// Reads what the server's configuration means for tasks.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn server(&self) -> Result<ServerFacts, Error> {
        Ok(self.broker.server_facts().await?)
    }
}

/// Reads an entry of an error history, `<ms> <json>`.
pub(crate) fn read_error(line: &str) -> Option<AttemptError> {
    let (at_ms, json) = line.split_once(' ')?;
    let error: AttemptError = serde_json::from_str(json).ok()?;
    Some(AttemptError { at: instant(at_ms.parse().ok()?), ..error })
}

/// Drops the first two words of `<id> <ms> <task> <attempt> <ms> <worker>`.
fn summary(stored: &str) -> Option<String> {
    stored.splitn(3, ' ').nth(2).map(str::to_owned)
}
