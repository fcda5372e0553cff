//! A client in a separate process, and the cost of its submits.

use crate::agent::protocol::{Load, Reply, SubmitOrder};
use crate::agent_process::AgentProcess;
use crate::bench_redis::BenchRedis;
use crate::field::{Field, Sample};
use crate::probe::Spent;
use crate::process::{Usage, rss_mb};

/// A client in a separate process.
pub(crate) struct Submitter {
    agent: AgentProcess,
}

/// The cost of the submit of a load.
pub(crate) struct Submitted {
    pub(crate) count: u64,
    pub(crate) seconds: f64,
    pub(crate) spent: Spent,
    pub(crate) client_cpu_s: Option<f64>,
    rss_mb: Option<f64>,
}

impl Submitter {
    /// Starts a client and connects it.
    ///
    /// # Errors
    ///
    /// When the client can't be started.
    pub(crate) fn start(redis: &BenchRedis) -> anyhow::Result<Self> {
        Self::start_under(&[], redis)
    }

    /// Does the same as [`start`](Self::start), with a program that runs the client.
    ///
    /// # Errors
    ///
    /// When the client can't be started.
    pub(crate) fn start_under(launcher: &[String], redis: &BenchRedis) -> anyhow::Result<Self> {
        Ok(Self { agent: AgentProcess::start(launcher, "submit", &redis.url())? })
    }

    /// Submits a load. Returns the cost.
    ///
    /// # Errors
    ///
    /// When a task is not accepted.
    pub(crate) fn submit(&mut self, redis: &BenchRedis, load: Load) -> anyhow::Result<Submitted> {
        self.carry(redis, &SubmitOrder::Load(load))
    }

    /// Executes an order. Returns the cost.
    ///
    /// # Errors
    ///
    /// When the order fails.
    pub(crate) fn carry(
        &mut self,
        redis: &BenchRedis,
        order: &SubmitOrder,
    ) -> anyhow::Result<Submitted> {
        let pids = [self.agent.pid()];
        let (before, usage) = (redis.probe().counters()?, Usage::of(&pids));
        self.agent.tell(order)?;
        let (seconds, count) = self.end()?;
        let client_cpu_s = Usage::of(&pids).since(&usage);
        let spent = redis.probe().since(&before)?;
        Ok(Submitted { count, seconds, spent, client_cpu_s, rss_mb: rss_mb(&pids) })
    }

    /// Begins to submit a load.
    ///
    /// # Errors
    ///
    /// When the process has ended.
    pub(crate) fn begin(&mut self, load: Load) -> anyhow::Result<()> {
        self.begin_order(&SubmitOrder::Load(load))
    }

    /// Begins to execute an order.
    ///
    /// # Errors
    ///
    /// When the process has ended.
    pub(crate) fn begin_order(&mut self, order: &SubmitOrder) -> anyhow::Result<()> {
        self.agent.tell(order)
    }

    /// Waits for the end of the order that was [begun](Self::begin). Returns its time and the
    /// number of tasks.
    ///
    /// # Errors
    ///
    /// When a task was not accepted.
    pub(crate) fn end(&mut self) -> anyhow::Result<(f64, u64)> {
        match self.agent.hear()? {
            Reply::Submitted { seconds, count } => Ok((seconds, count)),
            other => Err(self.agent.surprised(&other)),
        }
    }

    /// Calls `return 1` so often, once in each interval. Returns the time of each call, in µs.
    ///
    /// # Errors
    ///
    /// When a call fails.
    pub(crate) fn return_one_every(&mut self, us: u64, count: u64) -> anyhow::Result<Vec<f64>> {
        self.begin_order(&SubmitOrder::ReturnOneEvery { us, count })?;
        match self.agent.hear()? {
            Reply::Called { latencies_us } => Ok(latencies_us),
            other => Err(self.agent.surprised(&other)),
        }
    }

    /// Asks the process to end, and waits for its end.
    ///
    /// # Errors
    ///
    /// When the process does not end with success.
    pub(crate) fn leave(&mut self) -> anyhow::Result<()> {
        self.agent.leave()
    }

    /// Returns the process id.
    pub(crate) fn pid(&self) -> u32 {
        self.agent.pid()
    }
}

impl Submitted {
    /// Returns the values of this run.
    pub(crate) fn sample(&self) -> Sample {
        let tasks = self.count as f64;
        self.spent
            .sample(tasks)
            .with(Field::TasksPerS, tasks / self.seconds)
            .with_known(Field::ClientCpuUsPerTask, self.client_cpu_s.map(|s| s * 1e6 / tasks))
            .with_known(Field::RssMb, self.rss_mb)
    }
}
