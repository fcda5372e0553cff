//! What is measured: [`Field`], the values of one run, and what several runs make of them.

use std::collections::BTreeMap;

use serde::Serialize;

/// One measured value. Its name in JSON is its own in snake case, with the unit at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Field {
    /// Tasks (or records, or calls) in a second of wall time.
    TasksPerS,
    /// Tasks that were submitted meanwhile, in a second.
    SubmittedPerS,
    /// `used_cpu_user` + `used_cpu_sys` of Redis.
    RedisCpuUsPerTask,
    /// The same from the submit on to the report.
    RedisCpuUsWholeLife,
    /// User + system time of the processes that submit.
    ClientCpuUsPerTask,
    /// User + system time of the processes that run the tasks.
    WorkerCpuUsPerTask,
    /// Calls in `commandstats`, those that scripts make included.
    RedisCallsPerTask,
    /// `total_reads_processed`: how often Redis read from a socket.
    ReadsPerTask,
    /// The rate as a share of what the floor reaches.
    ShareOfFloor,
    /// The rate as a share of what one queue reaches.
    ShareOfOneQueue,
    /// What one worker keeps open to Redis.
    Connections,
    /// The time as a multiple of what the drain of the same tasks takes.
    OfDrain,
    /// Of the processor, in all threads of a process.
    InstructionsPerTask,
    /// Of Redis, for one call of a script.
    InstructionsPerCall,
    /// Resident memory of the processes that are measured, together; of workers at its highest,
    /// unless the parameters say that they are idle.
    RssMb,
    /// Redis' memory for one queued task above the bytes of its arguments.
    RedisBytesPerTask,
    /// Redis' memory, above what it needs when empty.
    RedisMb,
    /// Tasks that wait at the end of the time.
    Backlog,
    /// What a feature adds to [`RedisCpuUsWholeLife`](Self::RedisCpuUsWholeLife).
    RedisUsOverPlain,
    /// What a feature adds to [`ClientCpuUsPerTask`](Self::ClientCpuUsPerTask).
    ClientUsOverPlain,
    /// What a feature adds to [`WorkerCpuUsPerTask`](Self::WorkerCpuUsPerTask).
    WorkerUsOverPlain,
    /// Commands that Redis got in a second, without those that scripts make.
    CommandsPerS,
    /// The worker's share of a core.
    WorkerCpuPercent,
    /// Redis' share of a core.
    RedisCpuPercent,
    /// The median of a latency.
    P50Us,
    /// The latency that one in a hundred is above.
    P99Us,
    /// The latency that one in a thousand is above.
    P999Us,
    /// The highest latency.
    MaxUs,
}

impl Field {
    /// What stands above its column.
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
    /// A run of which nothing is known yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a value.
    pub(crate) fn with(mut self, field: Field, value: f64) -> Self {
        self.0.insert(field, value);
        self
    }

    /// Adds a value, where the system could tell it.
    pub(crate) fn with_known(self, field: Field, value: Option<f64>) -> Self {
        match value {
            Some(value) => self.with(field, value),
            None => self,
        }
    }

    /// Adds p50, p99, p99.9 and the highest of these, in microseconds. Of none it adds nothing.
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

    /// Value by value the sum of two.
    pub(crate) fn plus(mut self, other: &Self) -> Self {
        for (field, value) in &other.0 {
            *self.0.entry(*field).or_default() += value;
        }
        self
    }

    /// Each value divided.
    pub(crate) fn divided_by(mut self, divisor: f64) -> Self {
        self.0.values_mut().for_each(|value| *value /= divisor);
        self
    }

    /// A value of this run.
    pub(crate) fn get(&self, field: Field) -> Option<f64> {
        self.0.get(&field).copied()
    }
}

/// The lowest, the middle and the highest of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Of these values; none of none.
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

/// The spread of each field over the runs that know it.
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
    fn runs_become_the_lowest_the_middle_and_the_highest() {
        let runs = [30.0, 10.0, 20.0].map(|rate| Sample::new().with(Field::TasksPerS, rate));
        let expected = Spread { min: 10.0, median: 20.0, max: 30.0 };
        assert_eq!(spreads(&runs)[&Field::TasksPerS], expected);
        let of_two = Spread { min: 1.0, median: 2.5, max: 4.0 };
        assert_eq!(Spread::of(vec![4.0, 1.0]), Some(of_two));
        assert!(Spread::of(Vec::new()).is_none());
    }

    #[test]
    fn latencies_become_their_quantiles_and_none_of_them_nothing() {
        let sample = Sample::new().with_latencies((0..1000).rev().map(f64::from).collect());
        let found =
            [Field::P50Us, Field::P99Us, Field::P999Us, Field::MaxUs].map(|f| sample.get(f));
        assert_eq!(found, [500.0, 990.0, 999.0, 999.0].map(Some));
        assert!(Sample::new().with_latencies(Vec::new()).get(Field::P50Us).is_none());
    }
}
