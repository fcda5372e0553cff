//! Workers at full size, on real servers: many slots, many queues, many tasks, many restarts.
//!
//! A file a promise. Each has short forms, which run with all other tests, and a module `long`
//! with the same at full size, which `cargo xtask scale` runs one by one in a release build. They
//! print what was seen.

#[path = "../common/mod.rs"]
mod common;

mod failovers;
mod held;
mod poison;
mod shares;
mod spinner;
