//! What workers cost that have nothing to do.

use std::thread::sleep;
use std::time::Duration;

use super::Measurement;
use crate::bench::{Bench, progress};
use crate::field::{Field, Sample};
use crate::overheard::commands_within;
use crate::process::{Usage, rss_mb};
use crate::row::{Row, params};
use crate::workers::{Staff, Workers};

pub(super) const IDLE: Measurement =
    Measurement { name: "idle", about: "commands and CPU of an idle worker, and of 64", run: idle };

const IN_FLIGHT: usize = 100;

fn idle(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let workers = bench.scale.pick(&[1, 64][..], &[1, 8]);
    workers.iter().map(|processes| of(bench, *processes)).collect()
}

/// The workers stay: a run is a part of their time.
fn of(bench: &Bench, processes: usize) -> anyhow::Result<Row> {
    let redis = &bench.redis;
    let (settle, window) = bench.scale.pick((12, 15), (1, 5));
    let shown = params([("workers", processes.into()), ("seconds", window.into())]);
    redis.probe().flush()?;
    let mut workers = Workers::prepare(redis, Staff { processes, ..Staff::one(IN_FLIGHT) }, 0)?;
    let pids = workers.pids();
    workers.start()?;
    progress(IDLE.name, &shown, "settling");
    sleep(Duration::from_secs(settle));
    let row = bench.repeat(IDLE.name, shown, || {
        let (used, before) = (Usage::of(&pids), redis.probe().look()?);
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
