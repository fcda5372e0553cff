//! Measures the cost of workers that have nothing to do.

use std::thread::sleep;
use std::time::Duration;

use super::Measurement;
use crate::bench::{Bench, progress};
use crate::field::{Field, Sample};
use crate::monitor::commands_within;
use crate::process::{Usage, rss_mb};
use crate::row::{Row, params};
use crate::workers::{Staff, Workers};

pub(super) const IDLE: Measurement = Measurement {
    name: "idle",
    about: "commands and CPU of an idle worker, of 64, and of 20 that serve 20 queues",
    run: idle,
};

const IN_FLIGHT: usize = 100;

fn idle(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let staffs = bench.scale.pick([(1, 1), (64, 1), (20, 20)], [(1, 1), (8, 1), (4, 20)]);
    let staff = |(processes, queues)| Staff { processes, queues, ..Staff::one(IN_FLIGHT) };
    staffs.into_iter().map(|numbers| of(bench, staff(numbers))).collect()
}

/// Measures workers that run all the time. Each run of the measurement is a part of this time.
fn of(bench: &Bench, staff: Staff) -> anyhow::Result<Row> {
    let redis = &bench.redis;
    // After this time, each worker has had a second heartbeat, and knows the number of workers.
    let (settle, window) = bench.scale.pick((12, 15), (6, 5));
    let (processes, queues) = (staff.processes.into(), staff.queues.into());
    let shown = params([("workers", processes), ("queues", queues), ("seconds", window.into())]);
    redis.probe().flush()?;
    let mut workers = Workers::prepare(redis, staff, 0)?;
    let pids = workers.pids();
    workers.start()?;
    progress(IDLE.name, &shown, "settling");
    sleep(Duration::from_secs(settle));
    let row = bench.repeat(IDLE.name, shown, || {
        let (used, before) = (Usage::of(&pids), redis.probe().counters()?);
        let commands = commands_within(redis, Duration::from_secs(window))?;
        let (spent, seconds) = (redis.probe().since(&before)?, window as f64);
        let cpu_s = Usage::of(&pids).since(&used);
        Ok(Sample::new()
            .with(Field::CommandsPerS, commands as f64 / seconds)
            .with(Field::RedisCpuPercent, 100.0 * spent.cpu_s / seconds)
            .with_known(Field::WorkerCpuPercent, cpu_s.map(|s| 100.0 * s / seconds))
            .with_known(Field::RssMb, rss_mb(&pids)))
    })?;
    workers.stop()?.ensure_exactly(0)?;
    Ok(row)
}
