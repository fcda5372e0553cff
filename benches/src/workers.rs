//! Workers in separate processes.

use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::agent::protocol::{Reply, WorkOrder, WorkSettings};
use crate::agent_process::AgentProcess;
use crate::bench_redis::BenchRedis;
use crate::executions::Executions;

/// The time limit of a load. No load needs that long.
const PATIENCE: Duration = Duration::from_secs(240);

/// Some worker processes with the same settings.
pub(crate) struct Workers {
    agents: Vec<AgentProcess>,
    queues: usize,
}

/// The number of processes, slots and queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Staff {
    pub(crate) processes: usize,
    /// The tasks that run at once, in each process.
    pub(crate) in_flight: usize,
    pub(crate) queues: usize,
}

impl Staff {
    /// Returns the settings of one process that serves one queue.
    pub(crate) fn one(in_flight: usize) -> Self {
        Self { processes: 1, in_flight, queues: 1 }
    }
}

impl Workers {
    /// Starts the processes, but not the workers in them. Tasks have numbers below `numbers`.
    ///
    /// # Errors
    ///
    /// When a process can't be started.
    pub(crate) fn prepare(redis: &BenchRedis, staff: Staff, numbers: u64) -> anyhow::Result<Self> {
        Self::prepare_under(&[], redis, staff, numbers)
    }

    /// Does the same as [`prepare`](Self::prepare), with a program that runs the workers.
    ///
    /// # Errors
    ///
    /// When a process can't be started.
    pub(crate) fn prepare_under(
        launcher: &[String],
        redis: &BenchRedis,
        staff: Staff,
        numbers: u64,
    ) -> anyhow::Result<Self> {
        let Staff { processes, in_flight, queues } = staff;
        let settings = WorkSettings { url: redis.url(), in_flight, queues, numbers };
        let settings = serde_json::to_string(&settings)?;
        let agents = (0..processes).map(|_| AgentProcess::start(launcher, "work", &settings));
        Ok(Self { agents: agents.collect::<anyhow::Result<_>>()?, queues })
    }

    /// Starts the workers.
    ///
    /// # Errors
    ///
    /// When a worker can't be set up. If a worker can't connect, its stop reports that.
    pub(crate) fn start(&mut self) -> anyhow::Result<()> {
        for reply in self.ask(WorkOrder::Start)? {
            ensure!(matches!(reply, Reply::Started), "a worker sent a wrong reply: {reply:?}");
        }
        Ok(())
    }

    /// Returns the number of tasks that the workers have executed.
    ///
    /// # Errors
    ///
    /// When a process has ended.
    pub(crate) fn executed(&mut self) -> anyhow::Result<u64> {
        let replies = self.ask(WorkOrder::Executed)?;
        Ok(replies
            .into_iter()
            .map(|reply| if let Reply::Executed(count) = reply { count } else { 0 })
            .sum())
    }

    /// Stops the workers, which report the tasks they still hold, and adds up their executions.
    ///
    /// # Errors
    ///
    /// When a worker failed.
    pub(crate) fn stop(&mut self) -> anyhow::Result<Executions> {
        let mut executions = Executions::default();
        for reply in self.ask(WorkOrder::Stop)? {
            if let Reply::Stopped(tallied) = reply {
                executions.add(tallied);
            }
        }
        Ok(executions)
    }

    /// Asks the processes to end, and waits for their ends.
    ///
    /// # Errors
    ///
    /// When a process does not end with success.
    pub(crate) fn leave(&mut self) -> anyhow::Result<()> {
        self.agents.iter_mut().try_for_each(AgentProcess::leave)
    }

    /// Returns the processes.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.agents.iter().map(AgentProcess::pid).collect()
    }

    /// Returns the number of tasks in the workers' queues, in all states except success.
    ///
    /// # Errors
    ///
    /// When Redis does not reply.
    pub(crate) fn count(&self, redis: &BenchRedis) -> anyhow::Result<u64> {
        redis.tasks_in(self.queues)
    }

    /// Waits until no more than this many tasks are left in the workers' queues, in all states.
    /// Returns the time of that, and the number of tasks left.
    ///
    /// # Errors
    ///
    /// When this takes minutes.
    pub(crate) fn finish(&self, redis: &BenchRedis, left: u64) -> anyhow::Result<(Instant, u64)> {
        let begun = Instant::now();
        let mut first = None;
        loop {
            let found = self.count(redis)?;
            let elapsed = begun.elapsed();
            if found <= left {
                return Ok((Instant::now(), found));
            }
            ensure!(elapsed < PATIENCE, "{} tasks are still left after {elapsed:?}", found - left);
            // The check costs Redis time. So the checks are rare while many tasks are left, and one
            // per ms at the end.
            let done = *first.get_or_insert(found) - found.min(first.unwrap_or(found));
            let rest_s = elapsed.as_secs_f64() * (found - left) as f64 / done.max(1) as f64;
            let pause_s = if done == 0 { PAUSE_MIN_S } else { rest_s / 8.0 };
            std::thread::sleep(Duration::from_secs_f64(pause_s.clamp(PAUSE_MIN_S, PAUSE_MAX_S)));
        }
    }

    fn ask(&mut self, order: WorkOrder) -> anyhow::Result<Vec<Reply>> {
        for agent in &mut self.agents {
            agent.tell(&order)?;
        }
        self.agents.iter().map(AgentProcess::hear).collect()
    }
}

const PAUSE_MIN_S: f64 = 0.001;
const PAUSE_MAX_S: f64 = 0.02;
