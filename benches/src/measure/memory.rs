//! Measures the memory of a queued task in Redis and the memory of a worker, and shows whether
//! memory leaks.

use std::thread::sleep;
use std::time::Duration;

use super::Measurement;
use crate::agent::protocol::{Load, PAYLOAD_BYTES};
use crate::bench::{Bench, progress};
use crate::field::{Field, Sample};
use crate::process::{peak_rss_mb, rss_mb};
use crate::row::{Row, params};
use crate::submitter::Submitter;
use crate::workers::{Staff, Workers};

pub(super) const MEMORY: Measurement = Measurement {
    name: "memory",
    about: "Redis' bytes for a queued task, the worker's, and both after 5,000,000 tasks",
    run: memory,
};

const IN_FLIGHT: usize = 100;
/// The number of memory readings during the run.
const PARTS: usize = 5;
const MB: f64 = 1024.0 * 1024.0;
/// The time until a worker that has started is idle.
const SETTLE: Duration = Duration::from_secs(2);

fn memory(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mut rows = vec![queued(bench)?];
    rows.extend(worker(bench)?);
    rows.extend(through(bench)?);
    Ok(rows)
}

/// Measures Redis' bytes for a queued task, without those of its arguments.
fn queued(bench: &Bench) -> anyhow::Result<Row> {
    let redis = &bench.redis;
    let tasks = bench.scale.tasks(1_000_000);
    let shown = params([("queued", tasks.into()), ("payload", PAYLOAD_BYTES.into())]);
    bench.repeat(MEMORY.name, shown, || {
        redis.probe().flush()?;
        // The client connects before the first reading, because a connection's buffers do not
        // belong to a task.
        let mut submitter = Submitter::start(redis)?;
        let filled = submitter.submit(redis, Load::bulk(tasks))?;
        let bytes = filled.spent.memory_grown as f64 / tasks as f64 - PAYLOAD_BYTES as f64;
        Ok(Sample::new().with(Field::RedisBytesPerTask, bytes))
    })
}

/// Measures a worker's resident memory, when it is idle and at its maximum under load.
fn worker(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let redis = &bench.redis;
    let tasks = bench.scale.tasks(200_000);
    let (mut idle, mut loaded) = (Vec::new(), Vec::new());
    let shown = |state: &str| params([("worker", state.into()), ("in_flight", IN_FLIGHT.into())]);
    for run in 1..=bench.scale.runs {
        progress(MEMORY.name, &shown("idle"), &format!("run {run} of {}", bench.scale.runs));
        redis.probe().flush()?;
        let mut workers = Workers::prepare(redis, Staff::one(IN_FLIGHT), tasks)?;
        workers.start()?;
        sleep(SETTLE);
        idle.push(Sample::new().with_known(Field::RssMb, rss_mb(&workers.pids())));
        Submitter::start(redis)?.submit(redis, Load::bulk(tasks))?;
        workers.finish(redis, 0)?;
        loaded.push(Sample::new().with_known(Field::RssMb, peak_rss_mb(&workers.pids())));
        workers.stop()?.ensure_exactly(tasks)?;
    }
    Ok([("idle", idle), ("loaded", loaded)]
        .map(|(state, runs)| Row::of_runs(MEMORY.name, shown(state), &runs))
        .into())
}

/// Measures the memory of Redis, without that of an empty Redis, and of the worker, after more and
/// more tasks.
fn through(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let redis = &bench.redis;
    let parts = PARTS as u64;
    let part = bench.scale.tasks(5_000_000) / parts;
    let mut samples: [Vec<Sample>; PARTS] = Default::default();
    let shown = |so_far: u64| params([("through", (so_far * part).into())]);
    for run in 1..=bench.scale.runs {
        progress(MEMORY.name, &shown(parts), &format!("run {run} of {}", bench.scale.runs));
        redis.probe().flush()?;
        let empty = redis.probe().counters()?;
        let mut submitter = Submitter::start(redis)?;
        let mut workers = Workers::prepare(redis, Staff::one(IN_FLIGHT), part * parts)?;
        workers.start()?;
        for (number, of_part) in (0..).zip(&mut samples) {
            submitter.submit(redis, Load::bulk(part).first(number * part))?;
            workers.finish(redis, 0)?;
            // Redis frees memory in the background.
            sleep(SETTLE);
            let grown = redis.probe().since(&empty)?.memory_grown;
            let sample = Sample::new().with(Field::RedisMb, grown as f64 / MB);
            of_part.push(sample.with_known(Field::RssMb, rss_mb(&workers.pids())));
        }
        workers.stop()?.ensure_exactly(part * parts)?;
    }
    let rows = (1..).zip(&samples);
    Ok(rows.map(|(so_far, runs)| Row::of_runs(MEMORY.name, shown(so_far), runs)).collect())
}
