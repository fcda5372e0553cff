//! Workers at full size, on real servers: many slots, many queues, many tasks, many restarts.
//!
//! There is one file for each promise. Each has short forms, which run with all other tests, and a
//! module `long` with the same tests at full size. `cargo xtask scale` runs those one by one in a
//! release build. They print what they measure.

#[path = "../common/mod.rs"]
mod common;

mod failovers;
mod held;
mod poison;
mod shares;
mod spinner;
