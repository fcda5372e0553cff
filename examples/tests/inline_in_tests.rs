//! The tests that the example shows, run as a user's would be.
#![allow(dead_code, reason = "the example's main is run by the tests beside this file")]

#[path = "../inline_in_tests.rs"]
mod inline_in_tests;
