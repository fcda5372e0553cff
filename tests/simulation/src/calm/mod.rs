//! What must hold while nothing goes wrong, whatever went wrong before: a worker shares its starts
//! between its queues by their weights, and leaves no slot idle beside a task that it could run.
//!
//! In reading order: a [`trial`] submits plain tasks once the rest of a run is over; its `record`
//! is what then happened, in order; `live` and `fair` judge it.

mod fair;
mod live;
mod record;
#[cfg(test)]
mod tests;
mod trial;

pub use self::trial::{TRIAL, trial};
