//! What was read last: [`Seen`].

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use optimus_core::{
    Counts, Fingerprint, FingerprintRow, ProcessDetails, QueueName, QueueSample, RunningTask,
};

use crate::{
    command::{percent, process_mode},
    output::secrets::Secrets,
};

/// What was read last. Its texts are those of other programs, and are cleaned when they are drawn.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) namespace: String,
    /// The time of Redis.
    pub(super) now: DateTime<Utc>,
    /// When it was read.
    pub(super) at: Instant,
    pub(super) queues: Vec<QueueLine>,
    /// How many queues were not read, because there are too many.
    pub(super) left_out: u64,
    pub(super) processes: Vec<ProcessLine>,
    pub(super) process_count: u64,
    pub(super) slots_busy: u64,
    pub(super) slots_allowed: u64,
    /// `None` if they were not read yet.
    pub(super) failures: Option<Vec<FailureLine>>,
    /// Why the last read has failed. Then the rest is of a read before.
    pub(super) problem: Option<String>,
}

/// A queue.
#[derive(Debug, Clone, Default)]
pub(super) struct QueueLine {
    pub(super) queue: String,
    pub(super) counts: Counts,
    /// Tasks that are due, and that no worker has claimed.
    pub(super) due: u64,
    pub(super) oldest: Option<Duration>,
    /// How many succeed in a second.
    pub(super) rate: Option<f64>,
    /// How long half of the attempts ran at most, and 99 % of them, in this hour and the last.
    pub(super) run: [Option<Duration>; 2],
    /// The slots of the processes that serve it.
    pub(super) slots: u64,
    /// Why it can't be read.
    pub(super) problem: Option<String>,
}

impl QueueLine {
    pub(super) fn of(sample: &QueueSample, rate: Option<f64>) -> Self {
        let QueueSample { seen, slots, .. } = sample;
        let run = [50.0, 99.0].map(|percent| seen.recent.run.percentile(percent));
        Self {
            queue: seen.queue.to_string(),
            counts: seen.counts.clone(),
            due: seen.due,
            oldest: seen.oldest,
            rate,
            run,
            slots: *slots,
            problem: None,
        }
    }
}

/// A process.
#[derive(Debug, Clone, Default)]
pub(super) struct ProcessLine {
    pub(super) id: String,
    pub(super) host: String,
    pub(super) pid: u32,
    pub(super) version: String,
    pub(super) started: DateTime<Utc>,
    pub(super) busy: usize,
    pub(super) slots: usize,
    pub(super) rss_bytes: Option<u64>,
    pub(super) cpu: Option<f64>,
    pub(super) queues: Vec<String>,
    /// That its lease is over, or what an operator has asked of it; else empty.
    pub(super) mode: &'static str,
    /// Those that have run longest come first.
    pub(super) running: Vec<RunLine>,
}

impl From<&ProcessDetails> for ProcessLine {
    fn from(process: &ProcessDetails) -> Self {
        let ProcessDetails { id, about, doing, .. } = process;
        Self {
            id: id.to_string(),
            host: about.host.clone(),
            pid: about.pid,
            version: about.version.clone(),
            started: about.started,
            busy: doing.busy,
            slots: doing.slots,
            rss_bytes: doing.rss_bytes,
            cpu: doing.cpu,
            queues: about.queues.clone(),
            mode: process_mode(process),
            running: doing.running.iter().map(RunLine::from).collect(),
        }
    }
}

/// A task that runs.
#[derive(Debug, Clone, Default)]
pub(super) struct RunLine {
    pub(super) id: String,
    pub(super) task: String,
    pub(super) attempt: u32,
    pub(super) since: DateTime<Utc>,
    /// What it said of itself.
    pub(super) progress: String,
}

impl From<&RunningTask> for RunLine {
    fn from(task: &RunningTask) -> Self {
        let progress = task.progress.as_ref();
        Self {
            id: task.id.clone(),
            task: task.task.clone(),
            attempt: task.attempt,
            since: task.since,
            progress: progress.map_or_else(String::new, |progress| {
                format!("{} {}", percent(progress.part), progress.text)
            }),
        }
    }
}

impl Seen {
    /// Replaces what looks like a secret in the texts of tasks.
    pub(super) fn redact(&mut self, secrets: Secrets) {
        let said = self.processes.iter_mut().flat_map(|process| &mut process.running);
        let said = said.map(|run| &mut run.progress);
        let causes = self.failures.iter_mut().flatten().map(|failure| &mut failure.cause);
        for text in said.chain(causes) {
            *text = secrets.text(text).into_owned();
        }
    }
}

/// Dead tasks with the same cause.
#[derive(Debug, Clone, Default)]
pub(super) struct FailureLine {
    /// Tells it from other causes of the queue, also if only the first ones have a text.
    pub(super) key: String,
    pub(super) queue: String,
    pub(super) task: String,
    pub(super) dead: u64,
    pub(super) last: DateTime<Utc>,
    pub(super) cause: String,
}

impl FailureLine {
    /// The outline is made of what may be shown: without its numbers, a secret may no longer look
    /// like one.
    pub(super) fn of(queue: &QueueName, row: &FingerprintRow, secrets: Secrets) -> Self {
        let reason = row.reason.map(|reason| reason.to_string());
        let cause = row.error.as_ref().map(|error| secrets.text(&error.message));
        let cause = cause.map(|message| Fingerprint::outline(&message));
        let print = row.fingerprint.map(|print| print.to_string()).unwrap_or_default();
        Self {
            key: key_of(queue.as_str(), &print, reason.as_deref()),
            queue: queue.to_string(),
            task: row.task.clone().unwrap_or_default(),
            dead: row.dead,
            last: row.last,
            cause: cause.filter(|cause| !cause.is_empty()).or(reason).unwrap_or_default(),
        }
    }
}

/// Causes without a fingerprint differ by their reasons.
fn key_of(queue: &str, print: &str, reason: Option<&str>) -> String {
    format!("{queue} {print} {}", reason.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_causes_of_a_page_have_the_same_key() {
        let causes = [
            ("mail", "8TQEcGfdFLm", Some("failed")),
            ("mail", "k3Jx9w-QpL4", Some("failed")),
            ("mail", "", Some("lost")),
            ("mail", "", Some("unmet")),
            ("mail", "", None),
            ("bills", "", Some("lost")),
        ];
        let keys = causes.map(|(queue, print, reason)| key_of(queue, print, reason));
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key), "{key:?}");
        }
    }
}
