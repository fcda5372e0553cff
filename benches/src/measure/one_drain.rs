//! Runs one drain. The tasks are ready, workers start, and the drain ends when all tasks are
//! reported. Several measurements use this module.

use std::time::Instant;

use anyhow::ensure;

use super::used_queue::Before;
use crate::agent::protocol::{Kind, Load};
use crate::bench::Bench;
use crate::field::{Field, Sample};
use crate::probe::Spent;
use crate::process::{Usage, peak_rss_mb};
use crate::submitter::{Submitted, Submitter};
use crate::workers::{Staff, Workers};

/// A queue to drain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    pub(super) kind: Kind,
    pub(super) tasks: u64,
    pub(super) payload: usize,
    pub(super) staff: Staff,
    /// The history of the queue. None means a new queue.
    pub(super) before: Option<Before>,
}

/// The cost of the drain.
pub(super) struct Drained {
    tasks: u64,
    seconds: f64,
    spent: Spent,
    worker_cpu_s: Option<f64>,
    rss_mb: Option<f64>,
}

impl Drain {
    /// Returns plain tasks of the usual size.
    pub(super) fn plain(tasks: u64, staff: Staff) -> Self {
        let payload = crate::agent::protocol::PAYLOAD_BYTES;
        Self { kind: Kind::Plain, tasks, payload, staff, before: None }
    }

    /// Fills the empty Redis, drains it, and checks that each task was executed once. The sample
    /// includes the client's cost, and the cost of Redis over the whole life of a task.
    pub(super) fn run(self, bench: &Bench) -> anyhow::Result<Sample> {
        let redis = &bench.redis;
        redis.probe().flush()?;
        if let Some(before) = self.before {
            (before.put)(&redis.url())?;
        }
        let left = self.before.map_or(0, |before| before.tasks);
        let filled = self.fill(&mut Submitter::start(redis)?, bench)?;
        let mut workers = Workers::prepare(redis, self.staff, self.tasks)?;
        let drained = Drained::of(bench, &mut workers, self.tasks, left)?;
        workers.stop()?.ensure_exactly(self.tasks)?;

        let (filled, drained) = (filled.sample(), drained.sample());
        let redis_us = [&filled, &drained].map(|sample| sample.get(Field::RedisCpuUsPerTask));
        Ok(drained
            .with_known(Field::ClientCpuUsPerTask, filled.get(Field::ClientCpuUsPerTask))
            .with_known(Field::RedisCpuUsWholeLife, redis_us.into_iter().sum()))
    }

    fn fill(&self, submitter: &mut Submitter, bench: &Bench) -> anyhow::Result<Submitted> {
        let load =
            Load::bulk(self.tasks).kind(self.kind).payload(self.payload).queues(self.staff.queues);
        submitter.submit(&bench.redis, load)
    }
}

impl Drained {
    /// Starts prepared workers, and waits until `tasks` of the ready tasks are reported, so that
    /// only `left` remain.
    pub(super) fn of(
        bench: &Bench,
        workers: &mut Workers,
        tasks: u64,
        left: u64,
    ) -> anyhow::Result<Self> {
        let redis = &bench.redis;
        let pids = workers.pids();
        let found = workers.count(redis)?;
        ensure!(found == tasks + left, "{found} tasks are ready, not {}", tasks + left);
        let (before, usage) = (redis.probe().counters()?, Usage::of(&pids));
        let begun = Instant::now();
        workers.start()?;
        let (ended, still) = workers.finish(redis, left)?;
        let worker_cpu_s = Usage::of(&pids).since(&usage);
        let spent = redis.probe().since(&before)?;
        let seconds = (ended - begun).as_secs_f64();
        Ok(Self { tasks: found - still, seconds, spent, worker_cpu_s, rss_mb: peak_rss_mb(&pids) })
    }

    /// Returns the time from the workers' start until the last report.
    pub(super) fn seconds(&self) -> f64 {
        self.seconds
    }

    pub(super) fn sample(&self) -> Sample {
        let tasks = self.tasks as f64;
        self.spent
            .sample(tasks)
            .with(Field::TasksPerS, tasks / self.seconds)
            .with_known(Field::WorkerCpuUsPerTask, self.worker_cpu_s.map(|s| s * 1e6 / tasks))
            .with_known(Field::RssMb, self.rss_mb)
    }
}
