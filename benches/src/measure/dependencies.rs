//! Counts, with valgrind, the Redis instructions for a task of a pair in which one waits for the
//! other, compared with a plain task.

use optimus_core::{After, Prerequisite};

use super::life::Made;
use super::{Measurement, added, plain};
use crate::bench::Bench;
use crate::row::Row;

pub(super) const DEPENDENCIES: Measurement = Measurement {
    name: "dependencies",
    about: "instructions of Redis for tasks that wait for others and for plain ones, by valgrind",
    run: dependencies,
};

fn dependencies(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mut first = None;
    added::rows(bench, DEPENDENCIES.name, "in pairs", |number, _| {
        let mut task = plain::submission()?;
        if number % 2 == 0 {
            first = Some(task.id().clone());
        } else if let Some(id) = first.take() {
            task = task.waiting_for(After::new([Prerequisite::Task(id)]));
        }
        Ok(Made::plain(task))
    })
}
