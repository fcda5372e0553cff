//! What the test targets of this package share: a store under test, and what one does with it.
#![allow(dead_code, unused_macros, reason = "each test target uses its part")]

#[macro_use]
pub(crate) mod bench;
pub(crate) mod acts;
pub(crate) mod dump;
pub(crate) mod jobs;
