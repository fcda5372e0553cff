//! The processes that run workers, one page at a time: [`ProcessPage`].

use std::{collections::HashMap, fmt};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    broker::{Broker, ProcessSeen},
    id::{TaskId, WorkerId},
    inspect::Inspector,
    platform::instant,
    process_leases::mark_lost,
    task_page::PAGE_MAX,
    task_progress::TaskProgress,
};

/// Some of the processes of a namespace.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct ProcessPage {
    /// The processes, by their ids.
    pub rows: Vec<ProcessDetails>,
    /// The start of the next page; `None` after the last.
    pub next: Option<ProcessCursor>,
    /// How many processes there are.
    pub total: usize,
}

/// The place of a page of processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProcessCursor(String);

/// A worker of a process, with its machine and what it runs. A process usually has one worker.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ProcessDetails {
    /// The id under which the worker has started. [`Client::process`](crate::Client::process) takes
    /// it.
    #[serde(serialize_with = "as_text")]
    pub id: WorkerId,
    /// When it was last heard from, by Redis' clock: at most 5 s ago if it runs something, at most
    /// 4 min ago if it is idle. It is listed for 60 s after it, 10 min if it was idle.
    #[serde(rename = "seen_ms", with = "chrono::serde::ts_milliseconds")]
    pub seen: DateTime<Utc>,
    /// Whether its lease is over: it has ended without a word, or does not reach Redis. Its tasks
    /// run again elsewhere. If it is only idle, its lease goes on.
    #[serde(rename = "lost")]
    pub is_lost: bool,
    /// What does not change while it runs.
    #[serde(flatten)]
    pub about: ProcessAbout,
    /// What it did when it was last heard from.
    #[serde(flatten)]
    pub doing: ProcessDoing,
}

/// What does not change while a process runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ProcessAbout {
    /// The configured name of the worker, if any.
    pub name: Option<String>,
    /// The name of the machine.
    pub host: String,
    /// The id of the process.
    pub pid: u32,
    /// The version of Optimus.
    pub version: String,
    /// When the worker started, by its own clock.
    #[serde(rename = "started_ms", with = "chrono::serde::ts_milliseconds")]
    pub started: DateTime<Utc>,
    /// The queues that it serves.
    pub queues: Vec<String>,
    /// How many tasks it may run at the same time.
    pub concurrency: usize,
}

/// What a process did when it was last heard from.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ProcessDoing {
    /// How many of its slots it may use now: its concurrency, or fewer after
    /// [`slots`](crate::ProcessHandle::slots). 0 while it is [quiet](crate::ProcessHandle::quiet).
    pub slots: usize,
    /// How many slots are busy.
    pub busy: usize,
    /// The memory of the whole process, in bytes; only known on Linux.
    pub rss_bytes: Option<u64>,
    /// How many cores the whole process has kept busy since the time before; only known on Linux.
    pub cpu: Option<f64>,
    /// For how many ms at least its handlers have blocked all threads of their runtime, so that it
    /// starts no task; `None` if they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_ms: Option<u64>,
    /// The tasks that it runs: those whose handlers go on after their timeouts, then those that
    /// have run longest; at most 32.
    pub running: Vec<RunningTask>,
}

/// A task that a process runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunningTask {
    /// The id of the task, as `<queue>/<uuid>`.
    pub id: String,
    /// The name of the task.
    pub task: String,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// When the worker has claimed it, by Redis' clock.
    #[serde(rename = "since_ms", with = "chrono::serde::ts_milliseconds")]
    pub since: DateTime<Utc>,
    /// For how many ms its handler has gone on after its timeout; `None` if it has not. A `fn`
    /// handler keeps its task until it returns. An `async` one that goes on blocks a thread: its
    /// attempt has timed out, and the task may run again elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_ms: Option<u64>,
    /// What its handler said last with [`Context::progress`](crate::Context::progress).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<TaskProgress>,
}

/// The most tasks in [`ProcessDoing::running`].
#[doc(hidden)]
pub const RUNNING_SHOWN: usize = 32;

impl RunningTask {
    /// Makes the row of a task; for workers.
    #[doc(hidden)]
    pub fn new(id: &TaskId, task: &str, attempt: u32, since_ms: u64) -> Self {
        let (id, task, since) = (id.to_string(), task.to_owned(), instant(since_ms));
        Self { id, task, attempt, since, late_ms: None, progress: None }
    }

    /// Returns the id of the task, if it can be read.
    pub fn task_id(&self) -> Option<TaskId> {
        self.id.parse().ok()
    }
}

fn as_text<S: serde::Serializer>(id: &WorkerId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

impl fmt::Display for ProcessCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for ProcessCursor {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl ProcessDetails {
    /// Returns the latest attempt at each task that one of these processes runs, by the id of the
    /// task as text. The handler of an earlier attempt may still go on after its timeout.
    pub fn latest_attempts(processes: &[Self]) -> HashMap<&str, &RunningTask> {
        let mut running: Vec<_> =
            processes.iter().flat_map(|process| &process.doing.running).collect();
        running.sort_by_key(|task| (task.attempt, task.since));
        running.into_iter().map(|task| (task.id.as_str(), task)).collect()
    }

    /// Returns the latest attempt at this task.
    pub fn latest_attempt<'a>(processes: &'a [Self], id: &TaskId) -> Option<&'a RunningTask> {
        Self::latest_attempts(processes).remove(id.to_string().as_str())
    }

    fn of(seen: &ProcessSeen) -> Self {
        Self {
            id: seen.id.clone(),
            seen: instant(seen.seen_ms),
            is_lost: false,
            about: serde_json::from_str(&seen.description).unwrap_or_default(),
            doing: serde_json::from_str(&seen.doing).unwrap_or_default(),
        }
    }
}

impl Inspector {
    /// Reads the processes that run workers of this namespace, with their machines, their memory
    /// and what they run: at most `limit` (and [`PAGE_MAX`]), starting at `after`, which the page
    /// before has returned. A process that dies is [lost](ProcessDetails::is_lost) when its lease
    /// is over, and is listed for up to 60 s, or 10 min if it was idle.
    ///
    /// ```
    /// # async fn doc(client: &optimus_core::Client) -> Result<(), optimus_core::Error> {
    /// let page = client.inspector().processes(None, 50).await?;
    /// for process in &page.rows {
    ///     let (about, doing) = (&process.about, &process.doing);
    ///     println!("{} on {}: {}/{} busy", process.id, about.host, doing.busy, doing.slots);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_unavailable`]; [`Error::is_invalid`] if `limit` is 0.
    pub async fn processes(
        &self,
        after: Option<&ProcessCursor>,
        limit: usize,
    ) -> Result<ProcessPage, Error> {
        if limit == 0 {
            return Err(Error::invalid("the limit of a page is 0; ask for 1 row or more"));
        }
        let after = after.map_or("", |after| after.0.as_str());
        let (seen, has_more, total) =
            self.broker.processes(&Broker::fleet(), after, limit.min(PAGE_MAX)).await?;
        let last = seen.last().map(|process| ProcessCursor(process.id.to_string()));
        let mut rows: Vec<_> = seen.iter().map(ProcessDetails::of).collect();
        mark_lost(&self.broker, &mut rows).await?;
        Ok(ProcessPage { rows, next: last.filter(|_| has_more), total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_attempt_that_goes_on_is_not_the_latest() {
        let queue = crate::id::QueueName::new("mail").unwrap();
        let (id, other) = (TaskId::new(queue.clone()), TaskId::new(queue));
        let process = |running: Vec<RunningTask>| ProcessDetails {
            id: WorkerId::from_stored("w"),
            seen: instant(0),
            is_lost: false,
            about: ProcessAbout::default(),
            doing: ProcessDoing { running, ..ProcessDoing::default() },
        };
        let task = |id: &TaskId, attempt| RunningTask::new(id, "send", attempt, attempt.into());
        let late = RunningTask { late_ms: Some(9), ..task(&id, 1) };
        let processes =
            [process(vec![late.clone(), task(&id, 2)]), process(vec![late, task(&other, 3)])];
        let latest = ProcessDetails::latest_attempt(&processes, &id).unwrap();
        assert_eq!((latest.attempt, latest.late_ms), (2, None));
        assert!(ProcessDetails::latest_attempt(&processes[1..], &other).is_some());
        assert!(ProcessDetails::latest_attempt(&[], &id).is_none());
    }
}
