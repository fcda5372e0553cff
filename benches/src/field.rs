//! The measured values: [`Field`], the values of one run, and their summary over several runs.

use std::collections::BTreeMap;

use serde::Serialize;

/// One measured value. Its name in JSON is the name of the variant in snake case, with the unit at
/// the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Field {
    /// Tasks (or records, or calls) per second of wall time.
    TasksPerS,
    /// Tasks per second that were submitted at the same time.
    SubmittedPerS,
    /// `used_cpu_user` + `used_cpu_sys` of Redis.
    RedisCpuUsPerTask,
    /// The same time, from the submit to the report.
    RedisCpuUsWholeLife,
    /// User + system time of the processes that submit.
    ClientCpuUsPerTask,
    /// User + system time of the processes that run the tasks.
    WorkerCpuUsPerTask,
    /// Calls in `commandstats`, including those of scripts.
    RedisCallsPerTask,
    /// `total_reads_processed`: the number of reads from sockets in Redis.
    ReadsPerTask,
    /// The rate as a share of the floor's rate.
    ShareOfFloor,
    /// The rate as a share of the rate with one queue.
    ShareOfOneQueue,
    /// The connections of one worker to Redis.
    Connections,
    /// The time as a multiple of the drain time of the same tasks.
    OfDrain,
    /// `used_cpu_user` + `used_cpu_sys` of Redis, for one call of a script.
    RedisCpuUsPerCall,
    /// Instructions of the processor, in all threads of a process.
    InstructionsPerTask,
    /// Instructions of Redis for one call of a script.
    InstructionsPerCall,
    /// Total resident memory of the measured processes. For workers it is the maximum, unless the
    /// parameters state that they are idle.
    RssMb,
    /// Redis' memory for one queued task, without the bytes of its arguments.
    RedisBytesPerTask,
    /// Redis' memory, without the memory of an empty Redis.
    RedisMb,
    /// Tasks that wait at the end of the run.
    Backlog,
    /// The additional [`RedisCpuUsWholeLife`](Self::RedisCpuUsWholeLife) of a feature.
    RedisUsOverPlain,
    /// The additional [`ClientCpuUsPerTask`](Self::ClientCpuUsPerTask) of a feature.
    ClientUsOverPlain,
    /// The additional [`WorkerCpuUsPerTask`](Self::WorkerCpuUsPerTask) of a feature.
    WorkerUsOverPlain,
    /// Commands per second that Redis received, without those of scripts.
    CommandsPerS,
    /// The worker's share of a core.
    WorkerCpuPercent,
    /// Redis' share of a core.
    RedisCpuPercent,
    /// The median of a latency.
    P50Us,
    /// The latency that one percent of the tasks exceed.
    P99Us,
    /// The latency that one in a thousand tasks exceeds.
    P999Us,
    /// The highest latency.
    MaxUs,
}

impl Field {
    /// Returns the title of the column.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::TasksPerS => "tasks/s",
            Self::SubmittedPerS => "submitted/s",
            Self::RedisCpuUsPerTask => "redis us/task",
            Self::RedisCpuUsWholeLife => "redis us/life",
            Self::ClientCpuUsPerTask => "client us/task",
            Self::WorkerCpuUsPerTask => "worker us/task",
            Self::RedisCallsPerTask => "redis calls/task",
            Self::ReadsPerTask => "reads/task",
            Self::ShareOfFloor => "of floor",
            Self::ShareOfOneQueue => "of one queue",
            Self::Connections => "connections",
            Self::OfDrain => "of drain",
            Self::RedisCpuUsPerCall => "redis us/call",
            Self::InstructionsPerTask => "instructions/task",
            Self::InstructionsPerCall => "instructions/call",
            Self::RssMb => "rss MB",
            Self::RedisBytesPerTask => "redis bytes/task",
            Self::RedisMb => "redis MB",
            Self::Backlog => "backlog",
            Self::RedisUsOverPlain => "redis us over plain",
            Self::ClientUsOverPlain => "client us over plain",
            Self::WorkerUsOverPlain => "worker us over plain",
            Self::CommandsPerS => "commands/s",
            Self::WorkerCpuPercent => "worker CPU %",
            Self::RedisCpuPercent => "redis CPU %",
            Self::P50Us => "p50 us",
            Self::P99Us => "p99 us",
            Self::P999Us => "p99.9 us",
            Self::MaxUs => "max us",
        }
    }
}

/// The values of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample(BTreeMap<Field, f64>);

impl Sample {
    /// Returns a run without values.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a value.
    pub(crate) fn with(mut self, field: Field, value: f64) -> Self {
        self.0.insert(field, value);
        self
    }

    /// Adds a value, if the system provides it.
    pub(crate) fn with_known(self, field: Field, value: Option<f64>) -> Self {
        match value {
            Some(value) => self.with(field, value),
            None => self,
        }
    }

    /// Adds p50, p99, p99.9 and the maximum of these latencies, in microseconds. Adds nothing for
    /// an empty list.
    pub(crate) fn with_latencies(self, mut us: Vec<f64>) -> Self {
        us.sort_by(f64::total_cmp);
        let at =
            |per_mille: usize| us.get((us.len() * per_mille / 1000).min(us.len() - 1)).copied();
        if us.is_empty() {
            return self;
        }
        self.with_known(Field::P50Us, at(500))
            .with_known(Field::P99Us, at(990))
            .with_known(Field::P999Us, at(999))
            .with_known(Field::MaxUs, us.last().copied())
    }

    /// Returns the sum of two runs, for each value.
    pub(crate) fn plus(mut self, other: &Self) -> Self {
        for (field, value) in &other.0 {
            *self.0.entry(*field).or_default() += value;
        }
        self
    }

    /// Returns each value divided by a number.
    pub(crate) fn divided_by(mut self, divisor: f64) -> Self {
        self.0.values_mut().for_each(|value| *value /= divisor);
        self
    }

    /// Returns a value of this run.
    pub(crate) fn get(&self, field: Field) -> Option<f64> {
        self.0.get(&field).copied()
    }
}

/// The minimum, the median and the maximum of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Returns the spread of these values, or none if there are no values.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Self { min, median, max })
    }
}

/// Returns the spread of each field over the runs that have it.
pub(crate) fn spreads(runs: &[Sample]) -> BTreeMap<Field, Spread> {
    let mut values: BTreeMap<Field, Vec<f64>> = BTreeMap::new();
    for (field, value) in runs.iter().flat_map(|run| &run.0) {
        values.entry(*field).or_default().push(*value);
    }
    values.into_iter().filter_map(|(field, values)| Some((field, Spread::of(values)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_become_the_minimum_the_median_and_the_maximum() {
        let runs = [30.0, 10.0, 20.0].map(|rate| Sample::new().with(Field::TasksPerS, rate));
        let expected = Spread { min: 10.0, median: 20.0, max: 30.0 };
        assert_eq!(spreads(&runs)[&Field::TasksPerS], expected);
        let of_two = Spread { min: 1.0, median: 2.5, max: 4.0 };
        assert_eq!(Spread::of(vec![4.0, 1.0]), Some(of_two));
        assert!(Spread::of(Vec::new()).is_none());
    }

    #[test]
    fn latencies_become_quantiles_and_an_empty_list_becomes_nothing() {
        let sample = Sample::new().with_latencies((0..1000).rev().map(f64::from).collect());
        let found =
            [Field::P50Us, Field::P99Us, Field::P999Us, Field::MaxUs].map(|f| sample.get(f));
        assert_eq!(found, [500.0, 990.0, 999.0, 999.0].map(Some));
        assert!(Sample::new().with_latencies(Vec::new()).get(Field::P50Us).is_none());
    }
}
