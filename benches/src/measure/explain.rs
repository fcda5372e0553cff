//! Measures the time of an explanation of a task that many others precede.

use std::time::Instant;

use anyhow::Context as _;
use optimus::{Call, Client, TaskId};

use super::{Measurement, plain};
use crate::bench::{Bench, progress};
use crate::row::{Row, params};

pub(super) const EXPLAIN: Measurement = Measurement {
    name: "explain",
    about: "why a task waits that 1,000,000 others precede, in its queue or in its lane",
    run: explain,
};

const CALL_TASKS: u64 = 10_000;
const EXPLANATIONS: u32 = 1_000;

fn explain(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let in_lane = |call: Call<plain::Plain>| call.lane("tenant");
    Ok(vec![
        runtime.block_on(behind(bench, "queue", |call| call))?,
        runtime.block_on(behind(bench, "lane", in_lane))?,
    ])
}

/// Explains the last of many tasks one call after the other.
async fn behind(
    bench: &Bench,
    what: &'static str,
    place: impl Fn(Call<plain::Plain>) -> Call<plain::Plain>,
) -> anyhow::Result<Row> {
    let redis = &bench.redis;
    let tasks = bench.scale.tasks(1_000_000);
    let shown = params([("behind", what.into()), ("tasks", tasks.into())]);
    redis.probe().flush()?;
    progress(EXPLAIN.name, &shown, "filling");
    let client = Client::connect(&redis.url()).await?;
    let last = fill(&client, tasks, place).await?;
    let inspector = client.inspector();
    // The first call loads the scripts.
    inspector.explain(&last).await?;
    let before = redis.probe().counters()?;
    let mut times_us = Vec::new();
    for _ in 0..EXPLANATIONS {
        let begun = Instant::now();
        inspector.explain(&last).await?;
        times_us.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    let spent = redis.probe().since(&before)?;
    let sample = spent.sample(EXPLANATIONS.into()).with_latencies(times_us);
    Ok(Row::of_runs(EXPLAIN.name, shown, &[sample]))
}

/// Submits this many tasks. Returns the id of the last one.
async fn fill(
    client: &Client,
    tasks: u64,
    place: impl Fn(Call<plain::Plain>) -> Call<plain::Plain>,
) -> anyhow::Result<TaskId> {
    let mut last = None;
    for begun in (0..tasks).step_by(usize::try_from(CALL_TASKS)?) {
        let calls = (begun..tasks.min(begun + CALL_TASKS)).map(|_| place(plain::call()));
        last = client.submit_all(calls).await?.pop();
    }
    Ok(last.context("no task was submitted")?.id().clone())
}
