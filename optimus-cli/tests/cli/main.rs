//! Runs the program `optimus` against a real Redis: what it prints, its exit codes, and what it
//! changes.

mod acts;
mod advice;
mod alerts;
mod deep;
mod deep_busy;
mod dev;
mod doctor;
mod exits;
mod exporter;
mod hostile;
mod json;
mod kit;
mod limits;
mod namespaces;
mod operations;
mod outputs;
mod prometheus;
mod redaction;
mod scrub;
mod shards;
mod stage;
mod statistics;
mod submits;
mod top;
mod top_panic;
