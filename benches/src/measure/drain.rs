//! Measures the drain of ready tasks, by one process and by two, with increasing concurrency.

use super::Measurement;
use super::one_drain::Drain;
use crate::bench::Bench;
use crate::row::{Row, params};
use crate::workers::Staff;

pub(super) const DRAIN: Measurement = Measurement {
    name: "drain",
    about: "200,000 ready tasks, from the worker's start until all are reported",
    run: drain,
};

/// The numbers in flight, with the tasks of each. One task at a time is slow, and a quarter of the
/// tasks gives the same result.
const TASKS: [(usize, u64); 5] =
    [(1, 50_000), (10, 200_000), (16, 200_000), (100, 200_000), (1_000, 200_000)];

fn drain(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for processes in [1, 2] {
        for (in_flight, full) in TASKS {
            let tasks = bench.scale.tasks(full);
            let shown = params([
                ("in_flight", in_flight.into()),
                ("processes", processes.into()),
                ("tasks", tasks.into()),
            ]);
            let staff = Staff { processes, ..Staff::one(in_flight) };
            rows.push(bench.repeat(DRAIN.name, shown, || Drain::plain(tasks, staff).run(bench))?);
        }
    }
    Ok(rows)
}
