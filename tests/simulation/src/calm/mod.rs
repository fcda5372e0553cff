//! Checks promises that hold while there is no fault, even if there were faults before. A worker
//! shares its starts between its queues by their weights, and leaves no slot idle while there is a
//! task that it could run.
//!
//! In reading order: a [`trial`] submits plain tasks after the other parts of a run are over. Its
//! `record` has the events in order. `live` and `fair` check it.

mod fair;
mod live;
#[cfg(test)]
mod tests;
mod trial;
mod trial_record;

pub use self::trial::{TRIAL, trial};
