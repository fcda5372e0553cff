//! Measures submits: one call after another, many at once, and in batches.

use super::Measurement;
use crate::agent::protocol::{Load, SubmitOrder, Way};
use crate::bench::Bench;
use crate::field::{Field, Sample};
use crate::monitor::words_of_a_submit;
use crate::row::{Row, params};
use crate::submitter::{Submitted, Submitter};

pub(super) const SEQUENTIAL: Measurement = Measurement {
    name: "submit_seq",
    about: "one awaited submit after another, compared with a script that only returns 1",
    run: sequential,
};

pub(super) const CONCURRENT: Measurement = Measurement {
    name: "submit_concurrent",
    about: "256 concurrent perform_async",
    run: concurrent,
};

pub(super) const BATCHES: Measurement =
    Measurement { name: "submit_all", about: "submit_all of 1,000 and of 10,000", run: batches };

/// The name of the floor of sequential submits, which is a separate row.
pub(crate) const RETURN_ONE: &str = "evalsha_return_1";

/// The number of turns. The submits and their floor alternate within a run, so that other load of
/// the machine affects both.
const TURNS: u64 = 10;
const IN_FLIGHT: usize = 256;

fn sequential(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let redis = &bench.redis;
    let count = bench.scale.tasks(40_000) / TURNS * TURNS;
    let words = words_of_a_submit(redis)?;
    let floor = SubmitOrder::ReturnOne { words, count: count / TURNS };
    let mut floors = Vec::new();
    let row = bench.repeat(SEQUENTIAL.name, params([("tasks", count.into())]), || {
        redis.probe().flush()?;
        let mut submitter = Submitter::start(redis)?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for turn in 0..TURNS {
            let load = Load::new(Way::Sequential, count / TURNS).first(turn * count / TURNS);
            ours.push(submitter.submit(redis, load)?);
            theirs.push(submitter.carry(redis, &floor)?);
        }
        let (ours, floor) = (together(&ours), together(&theirs));
        let rates = ours.get(Field::TasksPerS).zip(floor.get(Field::TasksPerS));
        floors.push(floor);
        Ok(ours.with_known(Field::ShareOfFloor, rates.map(|(ours, floor)| ours / floor)))
    })?;
    Ok(vec![row, Row::of_runs(RETURN_ONE, params([("tasks", count.into())]), &floors)])
}

/// Returns the mean of turns with the same length.
fn together(turns: &[Submitted]) -> Sample {
    let mut sum = Sample::new();
    let mut seconds = 0.0;
    for turn in turns {
        sum = sum.plus(&turn.sample());
        seconds += turn.seconds;
    }
    let count: u64 = turns.iter().map(|turn| turn.count).sum();
    sum.divided_by(turns.len() as f64).with(Field::TasksPerS, count as f64 / seconds)
}

fn concurrent(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let count = bench.scale.tasks(200_000);
    let shown = params([("in_flight", IN_FLIGHT.into()), ("tasks", count.into())]);
    let row = bench.repeat(CONCURRENT.name, shown, || {
        once(bench, Load::new(Way::Concurrent { in_flight: IN_FLIGHT }, count))
    })?;
    Ok(vec![row])
}

fn batches(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let count = bench.scale.tasks(400_000);
    let of = |batch: usize| {
        let shown = params([("batch", batch.into()), ("tasks", count.into())]);
        bench.repeat(BATCHES.name, shown, || once(bench, Load::new(Way::Batches { batch }, count)))
    };
    Ok(vec![of(1_000)?, of(10_000)?])
}

fn once(bench: &Bench, load: Load) -> anyhow::Result<Sample> {
    bench.redis.probe().flush()?;
    let mut submitter = Submitter::start(&bench.redis)?;
    Ok(submitter.submit(&bench.redis, load)?.sample())
}
