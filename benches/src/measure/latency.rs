//! Measures how soon a task starts after its submit, and after its due time.

use std::time::Duration;

use super::{Measurement, steady};
use crate::agent::protocol::{Kind, Load, Way};
use crate::bench::Bench;
use crate::field::Sample;
use crate::row::{Row, params};
use crate::submitter::Submitter;
use crate::workers::{Staff, Workers};

pub(super) const LATENCY: Measurement = Measurement {
    name: "latency",
    about: "from the submit to the handler's start, one task every 10 ms; idle and at half load, \
            and of a script that returns 1 at half load",
    run: latency,
};

pub(super) const DELAY_PRECISION: Measurement = Measurement {
    name: "delay_precision",
    about: "10,000 tasks due at random within 10 s, start minus due",
    run: delay_precision,
};

const INTERVAL: Duration = Duration::from_millis(10);
const IN_FLIGHT: usize = 100;

/// What begins once in each interval.
#[derive(Clone, Copy)]
enum Each {
    Task,
    /// A call of a script that returns 1. Its latency ends with the reply. No worker has a part in
    /// it, so it shows what the load and the machine cost any client of this Redis.
    ReturnOne,
}

fn latency(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let count = bench.scale.pick(1_000, 100);
    let shown = |load: &str| params([("load", load.into()), ("tasks", count.into())]);
    let idle = bench.repeat(LATENCY.name, shown("idle"), || each(bench, Each::Task, count, 0.0))?;
    let window = Duration::from_secs(bench.scale.pick(3, 1));
    let (full, _) = steady::once(bench, window)?;
    let half = |of| each(bench, of, count, full / 2.0);
    let tasks = bench.repeat(LATENCY.name, shown("half"), || half(Each::Task))?;
    let floor = params([("load", "half".into()), ("calls_of_return_1", count.into())]);
    let calls = bench.repeat(LATENCY.name, floor, || half(Each::ReturnOne))?;
    Ok(vec![idle, tasks, calls])
}

/// Begins one of these in each interval, together with a load of plain tasks.
fn each(bench: &Bench, of: Each, count: u64, load_per_s: f64) -> anyhow::Result<Sample> {
    let redis = &bench.redis;
    redis.probe().flush()?;
    let seconds = INTERVAL.as_secs_f64() * count as f64;
    // The load begins before the stamped tasks and ends after them.
    let beside = Duration::from_secs_f64(load_per_s * (seconds + 1.0)).as_secs();
    let (mut submitter, mut loader) = (Submitter::start(redis)?, Submitter::start(redis)?);
    let mut workers = Workers::prepare(redis, Staff::one(IN_FLIGHT), count + beside)?;
    workers.start()?;
    settle(bench);
    if beside > 0 {
        loader.begin(Load::new(Way::AtRate { per_s: load_per_s }, beside).first(count))?;
        std::thread::sleep(Duration::from_millis(500));
    }
    let us = u64::try_from(INTERVAL.as_micros())?;
    let (tasks, calls_us) = match of {
        Each::Task => {
            submitter.begin(Load::new(Way::Every { us }, count).kind(Kind::Stamped))?;
            submitter.end()?;
            (count, None)
        }
        Each::ReturnOne => (0, Some(submitter.return_one_every(us, count)?)),
    };
    if beside > 0 {
        loader.end()?;
    }
    workers.finish(redis, 0)?;
    let executions = workers.stop()?;
    executions.ensure_exactly(tasks + beside)?;
    Ok(Sample::new().with_latencies(calls_us.unwrap_or(executions.latencies_us)))
}

/// Waits until the worker is connected and idle, and warms up the client's connection.
fn settle(bench: &Bench) {
    std::thread::sleep(Duration::from_millis(bench.scale.pick(1_000, 300)));
}

fn delay_precision(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let (count, ms) = (bench.scale.tasks(10_000), bench.scale.pick(10_000, 2_000));
    let shown = params([("tasks", count.into()), ("within_ms", ms.into())]);
    let row = bench.repeat(DELAY_PRECISION.name, shown, || {
        let redis = &bench.redis;
        redis.probe().flush()?;
        let mut submitter = Submitter::start(redis)?;
        let mut workers = Workers::prepare(redis, Staff::one(IN_FLIGHT), count)?;
        workers.start()?;
        settle(bench);
        submitter.submit(redis, Load::bulk(count).kind(Kind::StampedWithin { ms }))?;
        workers.finish(redis, 0)?;
        let executions = workers.stop()?;
        executions.ensure_exactly(count)?;
        Ok(Sample::new().with_latencies(executions.latencies_us))
    })?;
    Ok(vec![row])
}
