//! The measurements of a peer.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::Outcome;
use super::catalog::{Peer, Settings, Setup, Way};
use super::folders::Places;
use super::processes::Processes;
use crate::agent::protocol::PAYLOAD_BYTES;
use crate::bench::Bench;
use crate::field::{Field, Sample};
use crate::options::Options;
use crate::probe::Probe;
use crate::process::{Usage, peak_rss_mb};
use crate::row::{Params, Row, params};

/// The time limit of a load. No load needs that long.
const PATIENCE: Duration = Duration::from_secs(240);

/// The time in which the report of the last execution reaches Redis.
const SETTLE: Duration = Duration::from_millis(50);

const DRAINED: u64 = 200_000;
const QUEUED: u64 = 200_000;

/// The number of tasks before the latency measurement, which prove that the worker runs.
const WARM_UP: u64 = 50;
const EVERY_MS: u64 = 10;

/// A peer under measurement.
pub(super) struct Trial<'a> {
    pub(super) peer: &'a Peer,
    pub(super) bench: &'a Bench,
    pub(super) places: &'a Places,
}

/// One run, and the version of the library.
struct Run {
    sample: Sample,
    version: String,
}

impl Trial<'_> {
    /// Runs the selected measurements of this peer. If one fails, the others still run.
    pub(super) fn outcomes(&self, options: &Options) -> Vec<Outcome> {
        let mut rows = Vec::new();
        for way in self.peer.ways.iter().filter(|way| options.wants(way.name())) {
            rows.push(self.submit(*way));
        }
        for setup in self.peer.drains.iter().filter(|_| options.wants("drain")) {
            rows.push(self.drain(setup));
        }
        if options.wants("latency") {
            rows.push(self.latency());
        }
        if options.wants("memory") {
            rows.push(self.memory());
        }
        let outcome = |row| match row {
            Ok(row) => Outcome::Rows(vec![row]),
            Err(error) => Outcome::skipped(self.peer.name, &error),
        };
        rows.into_iter().map(outcome).collect()
    }

    fn submit(&self, way: Way) -> anyhow::Result<Row> {
        let mut shown = params([]);
        let full = match way {
            Way::Seq => 40_000,
            Way::Concurrent(callers) => {
                shown.insert("in_flight", callers.into());
                200_000
            }
            Way::All(batch) => {
                shown.insert("batch", batch.into());
                400_000
            }
        };
        let tasks = self.tasks(full);
        shown.insert("tasks", tasks.into());
        self.row(way.name(), with(shown, self.peer.client), || {
            self.probe().flush()?;
            self.load(way, tasks)
        })
    }

    fn drain(&self, setup: &Setup) -> anyhow::Result<Row> {
        let tasks = self.tasks(DRAINED).min(self.peer.most);
        let shown = params([("tasks", tasks.into()), ("processes", setup.processes.into())]);
        self.row("drain", with(shown, setup.settings), || {
            self.probe().flush()?;
            let filled = self.fill(tasks)?;
            let mut workers = self.workers(setup, tasks)?;
            let pids = workers.pids();
            let (before, usage) = (self.probe().counters()?, Usage::of(&pids));
            workers.go()?;
            let took = workers.ran(tasks, PATIENCE)?;
            thread::sleep(SETTLE);
            let cpu_s = Usage::of(&pids).since(&usage);
            let spent = self.probe().since(&before)?;
            let (rss, version) = (peak_rss_mb(&pids), workers.version.clone());
            workers.release()?.ensure_exactly(tasks)?;
            let drained = spent.sample(tasks as f64);
            let redis_us = [&filled, &drained].map(|sample| sample.get(Field::RedisCpuUsPerTask));
            let sample = drained
                .with(Field::TasksPerS, tasks as f64 / took.as_secs_f64())
                .with_known(Field::RedisCpuUsWholeLife, redis_us.into_iter().sum())
                .with_known(Field::ClientCpuUsPerTask, filled.get(Field::ClientCpuUsPerTask))
                .with_known(Field::WorkerCpuUsPerTask, cpu_s.map(|s| s * 1e6 / tasks as f64))
                .with_known(Field::RssMb, rss);
            Ok(Run { sample, version })
        })
    }

    fn latency(&self) -> anyhow::Result<Row> {
        let setup = &self.peer.drains[0];
        let submits = self.bench.scale.pick(1_000, 100);
        let shown = params([("load", "idle".into()), ("tasks", submits.into())]);
        self.row("latency", with(shown, setup.settings), || {
            self.probe().flush()?;
            let mut workers = self.workers(setup, submits)?;
            workers.go()?;
            self.load(Way::Seq, WARM_UP)?;
            workers
                .ran(WARM_UP, PATIENCE)
                .context("the worker did not run tasks before the latency was measured")?;
            let mut client =
                self.client(&["latency", &submits.to_string(), &EVERY_MS.to_string()])?;
            client.go()?;
            client.done(PATIENCE)?;
            workers.ran(WARM_UP + submits, PATIENCE)?;
            let version = workers.version.clone();
            let waits = workers.release()?.latencies_us;
            let heard = waits.len() as u64;
            ensure!(heard == submits, "{heard} of {submits} stamped tasks reported their time");
            Ok(Run { sample: Sample::new().with_latencies(waits), version })
        })
    }

    fn memory(&self) -> anyhow::Result<Row> {
        let tasks = self.tasks(QUEUED);
        let shown = params([("queued", tasks.into()), ("payload", PAYLOAD_BYTES.into())]);
        self.row("memory", shown, || {
            self.probe().flush()?;
            let before = self.probe().counters()?;
            let Run { version, .. } = self.load(self.fastest(), tasks)?;
            let grown = self.probe().since(&before)?.memory_grown;
            let above = grown as f64 / tasks as f64 - PAYLOAD_BYTES as f64;
            Ok(Run { sample: Sample::new().with(Field::RedisBytesPerTask, above), version })
        })
    }

    /// Fills the queue and prepares it for the drain. Returns the cost of both.
    fn fill(&self, tasks: u64) -> anyhow::Result<Sample> {
        let before = self.probe().counters()?;
        let filled = self.load(self.fastest(), tasks)?.sample;
        if let Some(between) = self.peer.between {
            let [first, second] = between.keys;
            let call = ["EVAL", between.script, "2", first, second];
            while self.probe().command::<u64>(&call)? > 0 {}
        }
        let redis_s = self.probe().since(&before)?.cpu_s;
        Ok(filled.with(Field::RedisCpuUsPerTask, redis_s * 1e6 / tasks as f64))
    }

    fn fastest(&self) -> Way {
        *self.peer.ways.last().expect("each peer in the catalog has a way to submit")
    }

    /// Submits in a separate process.
    fn load(&self, way: Way, tasks: u64) -> anyhow::Result<Run> {
        let (count, words) = (tasks.to_string(), way.words());
        let mut args = vec!["submit", &count];
        args.extend(words.iter().map(String::as_str));
        let mut client = self.client(&args)?;
        let pids = client.pids();
        let (before, usage) = (self.probe().counters()?, Usage::of(&pids));
        client.go()?;
        let took = client.done(PATIENCE)?;
        let cpu_s = Usage::of(&pids).since(&usage);
        let spent = self.probe().since(&before)?;
        let sample = spent
            .sample(tasks as f64)
            .with(Field::TasksPerS, tasks as f64 / took.as_secs_f64())
            .with_known(Field::ClientCpuUsPerTask, cpu_s.map(|s| s * 1e6 / tasks as f64))
            .with_known(Field::RssMb, peak_rss_mb(&pids));
        Ok(Run { sample, version: client.version.clone() })
    }

    fn client(&self, args: &[&str]) -> anyhow::Result<Processes> {
        let mut command = self.peer.runner.client(self.places, self.peer.client);
        command.args(args).env("REDIS_URL", self.bench.redis.url());
        Processes::start(vec![command], &self.places.log(&format!("{}-client", self.peer.name)))
    }

    fn workers(&self, setup: &Setup, tasks: u64) -> anyhow::Result<Processes> {
        let worker = |index| {
            let runner = self.peer.runner;
            let mut command = runner.worker(self.places, setup.settings, index, tasks);
            command.env("REDIS_URL", self.bench.redis.url());
            command
        };
        let commands = (0..setup.processes).map(worker).collect();
        Processes::start(commands, &self.places.log(&format!("{}-worker", self.peer.name)))
    }

    /// Returns the number of tasks of this peer if Optimus gets `full`.
    fn tasks(&self, full: u64) -> u64 {
        self.bench.scale.tasks(full / self.peer.share)
    }

    fn row(
        &self,
        name: &'static str,
        shown: Params,
        run: impl Fn() -> anyhow::Result<Run>,
    ) -> anyhow::Result<Row> {
        let mut version = String::new();
        let mut row = self.bench.repeat(name, shown, || {
            let run = run()?;
            version = run.version;
            Ok(run.sample)
        })?;
        row.params.insert("version", version.into());
        Ok(row.of_peer(self.peer.name))
    }

    fn probe(&self) -> &Probe {
        self.bench.redis.probe()
    }
}

/// Adds settings to the parameters. Numbers are added as numbers.
fn with(mut params: Params, settings: Settings) -> Params {
    let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    params.extend(settings.iter().map(|(name, text)| (*name, value(text))));
    params
}
