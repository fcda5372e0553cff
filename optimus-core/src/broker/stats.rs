//! `tally` and `stats`: the statistics of a queue.

use super::{BATCH_MAX, Broker, BrokerError, Reply, ScriptCall, scripts};
use crate::{
    id::{QueueName, WorkerId},
    stats::{Stats, StatsUnit, TaskStats},
};

impl Broker {
    /// Returns the call that adds what a worker has counted. A repeat under the same number changes
    /// nothing.
    pub fn tally_call<'a>(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        number: u64,
        counted: impl IntoIterator<Item = (&'a str, &'a TaskStats)>,
    ) -> ScriptCall {
        let mut call = self.call(&scripts::TALLY, queue, worker.as_str()).arg(number);
        for (task, stats) in counted {
            call.push(stats.line(task));
        }
        call
    }

    /// Adds what a worker has counted.
    pub async fn tally<'a>(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        number: u64,
        counted: impl IntoIterator<Item = (&'a str, &'a TaskStats)>,
    ) -> Result<(), BrokerError> {
        self.run(self.tally_call(queue, worker, number, counted)).await.map(drop)
    }

    /// Reads the statistics of the last `last` minutes, hours or days.
    pub async fn stats(
        &self,
        queue: &QueueName,
        unit: StatsUnit,
        last: u32,
    ) -> Result<Stats, BrokerError> {
        let last = last.min(unit.kept());
        let mut skip = 0;
        let (now_ms, open, mut finished) = self.stats_page(queue, unit, 0, last).await?;
        while finished.len() == skip + BATCH_MAX && finished.len() < last as usize {
            skip = finished.len();
            // A row that was finished meanwhile moves the others, so one may be read twice.
            let (_, _, mut earlier) = self.stats_page(queue, unit, skip, last).await?;
            earlier.retain(|row| !finished.contains(row));
            finished.extend(earlier);
        }
        Ok(Stats::of(unit, last, now_ms, open, &finished))
    }

    async fn stats_page(
        &self,
        queue: &QueueName,
        unit: StatsUnit,
        skip: usize,
        last: u32,
    ) -> Result<(u64, [String; 3], Vec<String>), BrokerError> {
        Self::read_stats_page(self.run_read(self.stats_call(queue, unit, skip, last)).await?)
    }

    /// Returns the call that reads a page of finished rows, and the open ones.
    pub(super) fn stats_call(
        &self,
        queue: &QueueName,
        unit: StatsUnit,
        skip: usize,
        last: u32,
    ) -> ScriptCall {
        let limit = (last as usize).saturating_sub(skip).min(BATCH_MAX);
        self.call(&scripts::STATS, queue, "").arg(unit.key()).arg(skip).arg(limit.max(1))
    }

    pub(super) fn read_stats_page(
        mut reply: Reply,
    ) -> Result<(u64, [String; 3], Vec<String>), BrokerError> {
        let now_ms = reply.number()?;
        let open = [reply.text()?, reply.text()?, reply.text()?];
        Ok((now_ms, open, reply.rest()?))
    }
}
