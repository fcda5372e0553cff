//! What must hold while nothing goes wrong, whatever went wrong before: a worker leaves no slot
//! idle beside a task that it could run.
//!
//! In reading order: a [`trial`] submits plain tasks once the rest of a run is over; its [`record`]
//! is what then happened, in order; [`live`] judges it.

mod live;
mod record;
#[cfg(test)]
mod tests;
mod trial;

pub use self::trial::{TRIAL, trial};
