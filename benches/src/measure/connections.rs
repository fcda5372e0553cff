//! Measures the number of connections of a worker, for any number of queues.

use std::thread::sleep;
use std::time::Duration;

use super::Measurement;
use crate::agent::protocol::Load;
use crate::bench::{Bench, progress};
use crate::field::{Field, Sample};
use crate::row::{Row, params};
use crate::submitter::Submitter;
use crate::workers::{Staff, Workers};

pub(super) const CONNECTIONS: Measurement = Measurement {
    name: "connections",
    about: "connections of one worker with 1 and with 200 queues, with work and idle",
    run: connections,
};

const IN_FLIGHT: usize = 100;
const LOOKS: usize = 20;
const EVERY: Duration = Duration::from_millis(50);

fn connections(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    [1, 200].into_iter().map(|queues| of(bench, queues)).collect()
}

/// Returns the maximum of many reads: from the worker's start, during work, and when the worker is
/// idle.
fn of(bench: &Bench, queues: usize) -> anyhow::Result<Row> {
    let redis = &bench.redis;
    let tasks = bench.scale.tasks(100_000);
    let shown = params([("queues", queues.into()), ("tasks", tasks.into())]);
    progress(CONNECTIONS.name, &shown, "one run");
    redis.probe().flush()?;
    Submitter::start(redis)?.submit(redis, Load::bulk(tasks).queues(queues))?;
    // The submitter has ended, but Redis may notice that later.
    sleep(EVERY);
    let others = redis.probe().connections()?;
    let staff = Staff { queues, ..Staff::one(IN_FLIGHT) };
    let mut workers = Workers::prepare(redis, staff, tasks)?;
    workers.start()?;
    let mut most = 0;
    for _ in 0..LOOKS {
        sleep(EVERY);
        most = most.max(redis.probe().connections()?.saturating_sub(others));
    }
    workers.finish(redis, 0)?;
    for _ in 0..LOOKS {
        sleep(EVERY);
        most = most.max(redis.probe().connections()?.saturating_sub(others));
    }
    workers.stop()?.ensure_exactly(tasks)?;
    let sample = Sample::new().with(Field::Connections, most as f64);
    Ok(Row::of_runs(CONNECTIONS.name, shown, &[sample]))
}
