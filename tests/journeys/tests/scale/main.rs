//! Tests workers at full size on real servers, with many slots, queues, tasks and restarts.
//!
//! There is one file for each promise. Each file has short forms, which run with all other tests,
//! and a module `long` with the same tests at full size. `cargo xtask scale` runs the long tests
//! one by one in a release build. They print their measurements.

#[path = "../common/mod.rs"]
mod common;

mod dependencies;
mod failovers;
mod held;
mod lanes;
mod limits;
mod older;
mod poison;
mod shares;
mod spinner;
