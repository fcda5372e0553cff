//! The code that the test targets of this package share: a store under test, and calls on it.
#![allow(dead_code, unused_macros, reason = "each test target uses only a part")]

#[macro_use]
pub(crate) mod bench;
pub(crate) mod acts;
pub(crate) mod after;
pub(crate) mod dispensers;
pub(crate) mod dump;
pub(crate) mod gathers;
pub(crate) mod jobs;
pub(crate) mod lanes;
pub(crate) mod limits;
pub(crate) mod rosters;
