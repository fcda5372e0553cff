//! Runs the program `optimus` against a real Redis: what it prints, its exit codes, and what it
//! changes.

mod acts;
mod deep;
mod deep_busy;
mod dev;
mod exits;
mod exporter;
mod hostile;
mod kit;
mod operations;
mod outputs;
mod prometheus;
mod scrub;
mod stage;
mod statistics;
mod submits;
mod top;
mod top_panic;
