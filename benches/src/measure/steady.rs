//! Measures a producer and a worker at the same time, both at full speed.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Measurement;
use crate::agent::protocol::{Load, Way};
use crate::bench::Bench;
use crate::field::{Field, Sample};
use crate::process::{Usage, peak_rss_mb};
use crate::row::{Row, params};
use crate::submitter::Submitter;
use crate::workers::{Staff, Workers};

pub(super) const STEADY: Measurement = Measurement {
    name: "steady",
    about: "a producer and a worker together at full speed for 20 s",
    run: steady,
};

/// The concurrent calls of the producer.
const SUBMITTING: usize = 256;
const IN_FLIGHT: usize = 100;
/// The time until both are at full speed, and the time until both have stopped.
const MARGIN: Duration = Duration::from_millis(500);
/// More tasks than can be submitted in this time.
const NUMBERS: u64 = 16_000_000;

fn steady(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let seconds = bench.scale.pick(20, 2);
    let shown = params([
        ("submitting", SUBMITTING.into()),
        ("in_flight", IN_FLIGHT.into()),
        ("seconds", seconds.into()),
    ]);
    let window = Duration::from_secs(seconds);
    Ok(vec![bench.repeat(STEADY.name, shown, || once(bench, window).map(|(_, sample)| sample))?])
}

/// Runs the measurement once. Returns the rate and all other values.
pub(super) fn once(bench: &Bench, window: Duration) -> anyhow::Result<(f64, Sample)> {
    let redis = &bench.redis;
    redis.probe().flush()?;
    let mut submitter = Submitter::start(redis)?;
    let mut workers = Workers::prepare(redis, Staff::one(IN_FLIGHT), NUMBERS)?;
    let (client, worker) = ([submitter.pid()], workers.pids());
    workers.start()?;
    let ms = u64::try_from((window + 2 * MARGIN).as_millis())?;
    submitter.begin(Load::new(Way::For { in_flight: SUBMITTING, ms }, 0))?;
    sleep(MARGIN);

    let (client_before, worker_before) = (Usage::of(&client), Usage::of(&worker));
    let waiting_before = workers.count(redis)?;
    let (executed_before, before) = (workers.executed()?, redis.probe().counters()?);
    let begun = Instant::now();
    sleep(window);
    let (executed, spent) = (workers.executed()? - executed_before, redis.probe().since(&before)?);
    let seconds = begun.elapsed().as_secs_f64();
    let cpu_s_of_client = Usage::of(&client).since(&client_before);
    let cpu_s_of_worker = Usage::of(&worker).since(&worker_before);
    let waiting = workers.count(redis)?;

    let (_, all) = submitter.end()?;
    workers.finish(redis, 0)?;
    let rss_mb = peak_rss_mb(&worker);
    workers.stop()?.ensure_exactly(all)?;

    let tasks = executed as f64;
    let rate = tasks / seconds;
    let came = tasks + waiting as f64 - waiting_before as f64;
    let sample = spent
        .sample(tasks)
        .with(Field::TasksPerS, rate)
        .with(Field::SubmittedPerS, came / seconds)
        .with(Field::Backlog, waiting as f64)
        .with_known(Field::ClientCpuUsPerTask, cpu_s_of_client.map(|s| s * 1e6 / tasks))
        .with_known(Field::WorkerCpuUsPerTask, cpu_s_of_worker.map(|s| s * 1e6 / tasks))
        .with_known(Field::RssMb, rss_mb);
    Ok((rate, sample))
}
