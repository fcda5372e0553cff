//! Counts, with valgrind, the Redis instructions for a task with a limit that keeps no task
//! waiting, compared with a plain task.

use optimus_core::{Gate, Limit, Rate, TaskLimit};

use super::life::Made;
use super::{Measurement, added, plain};
use crate::bench::Bench;
use crate::row::Row;

pub(super) const RATE: Measurement = Measurement {
    name: "rate",
    about: "instructions of Redis for tasks with a rate and for plain ones, by valgrind",
    run: |bench| of(bench, "rate", Limit::new().rate(Rate::per_second(1_000_000)).burst(1_000)),
};

pub(super) const MAX_WORKING: Measurement = Measurement {
    name: "max_working",
    about: "instructions of Redis for tasks with max_working and for plain ones, by valgrind",
    run: |bench| of(bench, "max_working", Limit::new().max_working(1_000)),
};

fn of(bench: &Bench, name: &'static str, limit: Limit) -> anyhow::Result<Vec<Row>> {
    let limit = TaskLimit { gate: Gate::Named("payments".to_owned()), limit };
    added::rows(bench, name, "limited", |_, _| {
        Ok(Made::plain(plain::submission()?.limited_by(vec![limit.clone()])))
    })
}
