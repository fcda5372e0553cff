//! Tests many workers on virtual time. As in the worker's tests, each file has the tests that take
//! minutes in a module `long`, which `cargo xtask scale` runs.

mod days;
mod fleet;
mod idle;
