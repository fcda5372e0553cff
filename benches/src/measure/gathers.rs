//! Counts the Redis instructions for a call that runs together with others, and for a plain task,
//! counted by valgrind.

use std::time::Duration;

use optimus_core::Gather;

use super::life::{Made, Taken};
use super::{Measurement, added, plain};
use crate::bench::Bench;
use crate::row::Row;

pub(super) const GATHERS: Measurement = Measurement {
    name: "gathers",
    about: "instructions of Redis for gathered calls and for plain tasks, by valgrind",
    run: gathers,
};

/// The calls of a run. With so many, it starts at once.
const RUNS: [usize; 2] = [16, 128];
const WAIT: Duration = Duration::from_secs(3_600);

fn gathers(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for run in RUNS {
        let taken = (&[run][..], Taken::Gathered);
        rows.extend(added::rows_of(bench, GATHERS.name, "gathered", taken, |number, _| {
            // Each run has a key of its own, as if each user had one.
            let by = format!("user-{}", number / run);
            let gather = Gather { by, wait: WAIT, max: u32::try_from(run)? };
            Ok(Made::plain(plain::submission()?.gathered(gather)))
        })?);
    }
    Ok(rows)
}
