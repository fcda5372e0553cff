//! Many workers on virtual time. As in the tests of the worker, each file has its tests of minutes
//! in a module `long`, which `cargo xtask scale` runs.

mod fleet;
mod idle;
