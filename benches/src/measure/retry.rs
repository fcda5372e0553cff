//! Counts, with valgrind, the Redis instructions for a task whose first attempt fails, compared
//! with a plain task.

use super::life::{Made, Taken};
use super::{Measurement, added, plain};
use crate::bench::Bench;
use crate::row::Row;

pub(super) const RETRY: Measurement = Measurement {
    name: "retry",
    about: "instructions of Redis for tasks that fail once and for plain ones, by valgrind",
    run: retry,
};

fn retry(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let taken = (&[1, 16, 128][..], Taken::FailedOnce);
    added::rows_of(bench, RETRY.name, "failed once", taken, |_, _| {
        Ok(Made::plain(plain::submission()?))
    })
}
