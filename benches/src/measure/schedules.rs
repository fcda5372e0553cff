//! Measures how long after the instants of schedules their tasks start.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::Measurement;
use crate::agent::protocol::SubmitOrder;
use crate::bench::Bench;
use crate::field::Sample;
use crate::row::{Row, params};
use crate::submitter::Submitter;
use crate::workers::{Staff, Workers};

pub(super) const SCHEDULES: Measurement = Measurement {
    name: "schedules",
    about: "1,000 schedules, instants within ten seconds and all in one, start minus instant",
    run: schedules,
};

const IN_FLIGHT: usize = 100;
const PROCESSES: usize = 2;
/// How long the last task may start after the first instant was due.
const PATIENCE: Duration = Duration::from_secs(60);

fn schedules(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let (count, most_s) = (bench.scale.tasks(1_000), bench.scale.pick(10, 2));
    let row = |within_s: u64| {
        let shown = params([("schedules", count.into()), ("within_s", within_s.into())]);
        bench.repeat(SCHEDULES.name, shown, || late(bench, count, within_s))
    };
    Ok(vec![row(most_s)?, row(1)?])
}

fn late(bench: &Bench, count: u64, within_s: u64) -> anyhow::Result<Sample> {
    let redis = &bench.redis;
    redis.probe().flush()?;
    let staff = Staff { processes: PROCESSES, ..Staff::one(IN_FLIGHT) };
    let mut workers = Workers::prepare(redis, staff, count)?;
    workers.start()?;
    let (mut submitter, begun) = (Submitter::start(redis)?, Instant::now());
    // The time in which the schedules are stored, before the first instant.
    let lead_s = bench.scale.pick(8, 2);
    submitter.carry(redis, &SubmitOrder::Schedule { count, lead_s, within_s })?;
    let first = Duration::from_secs(lead_s);
    ensure!(begun.elapsed() < first, "it took too long to store the schedules");
    while workers.executed()? < count {
        ensure!(begun.elapsed() < first + PATIENCE, "{} tasks ran", workers.executed()?);
        sleep(Duration::from_millis(100));
    }
    let executions = workers.stop()?;
    executions.ensure_exactly(count)?;
    Ok(Sample::new().with_latencies(executions.latencies_us))
}
