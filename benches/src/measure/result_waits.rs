//! Measures the cost of a wait for many results, one after the other.

use super::Measurement;
use super::one_drain::Drained;
use crate::agent::protocol::SubmitOrder;
use crate::bench::{Bench, progress};
use crate::field::{Field, Sample};
use crate::row::{Params, Row, params};
use crate::submitter::Submitter;
use crate::workers::{Staff, Workers};

pub(super) const WAITING: Measurement = Measurement {
    name: "waiting",
    about: "50,000 results awaited one after the other, compared with the drain of their tasks",
    run: waiting,
};

const IN_FLIGHT: usize = 100;

fn waiting(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let tasks = bench.scale.tasks(50_000);
    let shown = |when: &str| -> Params { params([("when", when.into()), ("tasks", tasks.into())]) };
    let (mut after, mut meanwhile): (Vec<Sample>, Vec<Sample>) = Default::default();
    for run in 1..=bench.scale.runs {
        progress(WAITING.name, &shown("both"), &format!("run {run} of {}", bench.scale.runs));
        let (sample, drain_s) = after_the_drain(bench, tasks)?;
        after.push(sample);
        meanwhile.push(while_they_run(bench, tasks, drain_s)?);
    }
    Ok([("after", &after), ("meanwhile", &meanwhile)]
        .map(|(when, samples)| Row::of_runs(WAITING.name, shown(when), samples))
        .into())
}

/// Measures the wait for results that exist before it begins. Also returns the time of the drain.
fn after_the_drain(bench: &Bench, tasks: u64) -> anyhow::Result<(Sample, f64)> {
    let (mut client, mut workers) = prepare(bench, tasks)?;
    let drained = Drained::of(bench, &mut workers, tasks, 0)?;
    workers.stop()?.ensure_exactly(tasks)?;
    let heard = client.carry(&bench.redis, &SubmitOrder::Hear)?;
    let drain_s = drained.seconds();
    Ok((heard.sample().with(Field::OfDrain, heard.seconds / drain_s), drain_s))
}

/// Measures a wait that begins before the workers start.
fn while_they_run(bench: &Bench, tasks: u64, drain_s: f64) -> anyhow::Result<Sample> {
    let (mut client, mut workers) = prepare(bench, tasks)?;
    client.begin_order(&SubmitOrder::Hear)?;
    workers.start()?;
    let (seconds, _) = client.end()?;
    workers.stop()?.ensure_exactly(tasks)?;
    let rate = tasks as f64 / seconds;
    Ok(Sample::new().with(Field::TasksPerS, rate).with(Field::OfDrain, seconds / drain_s))
}

/// Returns a client that holds the handles of this many tasks, and workers that have not started.
fn prepare(bench: &Bench, tasks: u64) -> anyhow::Result<(Submitter, Workers)> {
    let redis = &bench.redis;
    redis.probe().flush()?;
    let mut client = Submitter::start(redis)?;
    client.carry(redis, &SubmitOrder::Hold { count: tasks })?;
    Ok((client, Workers::prepare(redis, Staff::one(IN_FLIGHT), tasks)?))
}
