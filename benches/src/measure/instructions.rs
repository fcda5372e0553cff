//! Counts the instructions of a submit and of an execution with callgrind. The count is almost the
//! same on a busy machine.

use super::Measurement;
use crate::agent::protocol::{Load, Way};
use crate::bench::Bench;
use crate::callgrind::{self, Log};
use crate::field::{Field, Sample};
use crate::row::{Row, params};
use crate::submitter::Submitter;
use crate::workers::{Staff, Workers};

pub(super) const INSTRUCTIONS: Measurement = Measurement {
    name: "instructions",
    about: "instructions of a submit and of an execution, by valgrind",
    run: instructions,
};

/// The cost of the first tasks includes the program's start. The difference to a run with more
/// tasks does not.
const FEW: u64 = 200;
const MORE: u64 = 1_200;

fn instructions(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    if !callgrind::is_there() {
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
    let log = Log::in_folder(redis.folder());
    let mut submitter = Submitter::start_under(&log.command_line(), redis)?;
    submitter.submit(redis, load)?;
    submitter.leave()?;
    log.instructions()
}

fn executed(bench: &Bench, staff: Staff, tasks: u64) -> anyhow::Result<u64> {
    let redis = &bench.redis;
    redis.probe().flush()?;
    Submitter::start(redis)?.submit(redis, Load::bulk(tasks))?;
    let log = Log::in_folder(redis.folder());
    let mut workers = Workers::prepare_under(&log.command_line(), redis, staff, tasks)?;
    workers.start()?;
    workers.finish(redis, 0)?;
    workers.stop()?.ensure_exactly(tasks)?;
    workers.leave()?;
    log.instructions()
}
