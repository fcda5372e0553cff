//! How many instructions a submit and an execution take, as callgrind counts them: almost the same
//! on a busy machine.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::Context as _;

use super::Measurement;
use crate::agent::protocol::{Load, Way};
use crate::bench::Bench;
use crate::field::{Field, Sample};
use crate::row::{Row, params};
use crate::submitter::Submitter;
use crate::workers::{Staff, Workers};

pub(super) const INSTRUCTIONS: Measurement = Measurement {
    name: "instructions",
    about: "instructions of a submit and of an execution, by valgrind",
    run: instructions,
};

/// What the first tasks take has the program's start in it; the difference to more tasks has not.
const FEW: u64 = 200;
const MORE: u64 = 1_200;

fn instructions(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mut probe = Command::new("valgrind");
    probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        eprintln!("  skipped: valgrind, which counts them, is not installed");
        return Ok(Vec::new());
    }
    let ways = [("submit", Way::Sequential), ("submit_all", Way::Batches { batch: 1_000 })];
    let mut rows = Vec::new();
    for (what, way) in ways {
        let shown = params([("of", what.into())]);
        rows.push(bench.repeat(INSTRUCTIONS.name, shown, || {
            difference(|tasks| submitted(bench, Load::new(way, tasks)))
        })?);
    }
    for in_flight in [1, 100] {
        let shown = params([("of", "execute".into()), ("in_flight", in_flight.into())]);
        rows.push(bench.repeat(INSTRUCTIONS.name, shown, || {
            difference(|tasks| executed(bench, Staff::one(in_flight), tasks))
        })?);
    }
    Ok(rows)
}

fn difference(mut count: impl FnMut(u64) -> anyhow::Result<u64>) -> anyhow::Result<Sample> {
    let (few, more) = (count(FEW)?, count(MORE)?);
    let each = more.saturating_sub(few) as f64 / (MORE - FEW) as f64;
    Ok(Sample::new().with(Field::InstructionsPerTask, each))
}

fn submitted(bench: &Bench, load: Load) -> anyhow::Result<u64> {
    let redis = &bench.redis;
    redis.probe().flush()?;
    let log = Log::new(bench);
    let mut submitter = Submitter::start_under(&log.valgrind(), redis)?;
    submitter.submit(redis, load)?;
    submitter.leave()?;
    log.instructions()
}

fn executed(bench: &Bench, staff: Staff, tasks: u64) -> anyhow::Result<u64> {
    let redis = &bench.redis;
    redis.probe().flush()?;
    Submitter::start(redis)?.submit(redis, Load::bulk(tasks))?;
    let log = Log::new(bench);
    let mut workers = Workers::prepare_under(&log.valgrind(), redis, staff, tasks)?;
    workers.start()?;
    workers.finish(redis, 0)?;
    workers.stop()?.ensure_exactly(tasks)?;
    workers.leave()?;
    log.instructions()
}

/// Where valgrind writes what it has counted.
struct Log(String);

impl Log {
    /// In Redis' folder, which is removed at the end.
    fn new(bench: &Bench) -> Self {
        Self(bench.redis.folder().join("callgrind.log").display().to_string())
    }

    /// What to put before a program's command line.
    fn valgrind(&self) -> Vec<String> {
        let log = format!("--log-file={}", self.0);
        let words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", &log];
        words.map(str::to_owned).into()
    }

    fn instructions(&self) -> anyhow::Result<u64> {
        let text = fs::read_to_string(&self.0).context("valgrind left no log")?;
        let collected = text.lines().find_map(|line| line.split_once("Collected :"));
        let (_, number) =
            collected.with_context(|| format!("valgrind counted nothing:\n{text}"))?;
        Ok(number.trim().parse()?)
    }
}
