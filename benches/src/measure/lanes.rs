//! Counts, with valgrind, the Redis instructions for a task of a lane, compared with a plain task.

use optimus_core::Lane;

use super::life::Made;
use super::{Measurement, added, plain};
use crate::bench::Bench;
use crate::row::Row;

pub(super) const LANES: Measurement = Measurement {
    name: "lanes",
    about: "instructions of Redis for tasks of lanes and for plain ones, by valgrind",
    run: lanes,
};

/// The tasks of each lane: most of them wait before they run.
const TASKS_A_LANE: usize = 4;

fn lanes(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    added::rows(bench, LANES.name, "of lanes", |number, tasks| {
        let lane = Lane::new(format!("user-{}", number % (tasks / TASKS_A_LANE)));
        Ok(Made::of_lane(plain::submission()?, lane))
    })
}
