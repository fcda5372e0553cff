//! Counts the commands of idle workers while tasks become due one by one.

use std::thread::sleep;
use std::time::Duration;

use super::Measurement;
use crate::agent::protocol::{Kind, Load};
use crate::bench::Bench;
use crate::field::{Field, Sample};
use crate::monitor::commands_within;
use crate::row::{Row, params};
use crate::submitter::Submitter;
use crate::workers::{Staff, Workers};

pub(super) const DUE: Measurement = Measurement {
    name: "due",
    about: "100 tasks due in a second, at random, with many idle workers",
    run: due,
};

const IN_FLIGHT: usize = 10;
const PER_S: u64 = 100;
/// The time in which the workers register and become idle.
const SETTLE: Duration = Duration::from_secs(3);
/// The time for the submit and the last report.
const BESIDE: Duration = Duration::from_millis(500);

fn due(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let (processes, seconds) = bench.scale.pick((100, 10), (10, 3));
    let count = PER_S * seconds;
    let shown = params([("workers", processes.into()), ("per_s", PER_S.into())]);
    let row = bench.repeat(DUE.name, shown, || {
        let redis = &bench.redis;
        redis.probe().flush()?;
        let mut submitter = Submitter::start(redis)?;
        let staff = Staff { processes, ..Staff::one(IN_FLIGHT) };
        let mut workers = Workers::prepare(redis, staff, count)?;
        workers.start()?;
        sleep(SETTLE);
        let window = Duration::from_secs(seconds) + BESIDE;
        submitter.begin(Load::bulk(count).kind(Kind::StampedWithin { ms: 1_000 * seconds }))?;
        let commands = commands_within(redis, window)?;
        submitter.end()?;
        workers.finish(redis, 0)?;
        let executions = workers.stop()?;
        executions.ensure_exactly(count)?;
        Ok(Sample::new()
            .with(Field::CommandsPerS, commands as f64 / window.as_secs_f64())
            .with_latencies(executions.latencies_us))
    })?;
    Ok(vec![row])
}
