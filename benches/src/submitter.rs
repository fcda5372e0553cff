//! A client in a process of its own, and what it costs to submit through it.

use crate::agent::protocol::{Load, Reply, SubmitOrder};
use crate::agent_process::AgentProcess;
use crate::bench_redis::BenchRedis;
use crate::field::{Field, Sample};
use crate::probe::Spent;
use crate::process::{Usage, rss_mb};

/// A client in a process of its own.
pub(crate) struct Submitter {
    agent: AgentProcess,
}

/// What it took to submit a load.
pub(crate) struct Submitted {
    pub(crate) count: u64,
    pub(crate) seconds: f64,
    pub(crate) spent: Spent,
    pub(crate) client_cpu_s: Option<f64>,
    rss_mb: Option<f64>,
}

impl Submitter {
    /// Starts one, connected.
    ///
    /// # Errors
    /// When it can't be started.
    pub(crate) fn start(redis: &BenchRedis) -> anyhow::Result<Self> {
        Self::start_under(&[], redis)
    }

    /// As [`start`](Self::start), by a program that runs programs.
    ///
    /// # Errors
    /// When it can't be started.
    pub(crate) fn start_under(launcher: &[String], redis: &BenchRedis) -> anyhow::Result<Self> {
        Ok(Self { agent: AgentProcess::start(launcher, "submit", &redis.url())? })
    }

    /// Submits a load, and tells what that cost.
    ///
    /// # Errors
    /// When a task is not accepted.
    pub(crate) fn submit(&mut self, redis: &BenchRedis, load: Load) -> anyhow::Result<Submitted> {
        self.carry(redis, &SubmitOrder::Load(load))
    }

    /// Carries out an order, and tells what that cost.
    ///
    /// # Errors
    /// When it fails.
    pub(crate) fn carry(
        &mut self,
        redis: &BenchRedis,
        order: &SubmitOrder,
    ) -> anyhow::Result<Submitted> {
        let pids = [self.agent.pid()];
        let (before, usage) = (redis.probe().look()?, Usage::of(&pids));
        self.agent.tell(order)?;
        let (seconds, count) = self.end()?;
        let client_cpu_s = Usage::of(&pids).since(&usage);
        let spent = redis.probe().since(&before)?;
        Ok(Submitted { count, seconds, spent, client_cpu_s, rss_mb: rss_mb(&pids) })
    }

    /// Begins to submit a load.
    ///
    /// # Errors
    /// When the process has ended.
    pub(crate) fn begin(&mut self, load: Load) -> anyhow::Result<()> {
        self.begin_order(&SubmitOrder::Load(load))
    }

    /// Begins to carry out an order.
    ///
    /// # Errors
    /// When the process has ended.
    pub(crate) fn begin_order(&mut self, order: &SubmitOrder) -> anyhow::Result<()> {
        self.agent.tell(order)
    }

    /// Waits until what was [begun](Self::begin) is done: how long it took, and how many tasks
    /// there were.
    ///
    /// # Errors
    /// When a task was not accepted.
    pub(crate) fn end(&mut self) -> anyhow::Result<(f64, u64)> {
        match self.agent.hear()? {
            Reply::Submitted { seconds, count } => Ok((seconds, count)),
            other => Err(self.agent.surprised(&other)),
        }
    }

    /// Lets the process end.
    ///
    /// # Errors
    /// When it ends otherwise than well.
    pub(crate) fn leave(&mut self) -> anyhow::Result<()> {
        self.agent.leave()
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.agent.pid()
    }
}

impl Submitted {
    /// The values of this run.
    pub(crate) fn sample(&self) -> Sample {
        let tasks = self.count as f64;
        self.spent
            .sample(tasks)
            .with(Field::TasksPerS, tasks / self.seconds)
            .with_known(Field::ClientCpuUsPerTask, self.client_cpu_s.map(|s| s * 1e6 / tasks))
            .with_known(Field::RssMb, self.rss_mb)
    }
}
