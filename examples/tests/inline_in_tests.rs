//! Runs the tests of the example, as a user would.
#![allow(dead_code, reason = "another test runs the example's main")]

#[path = "../inline_in_tests.rs"]
mod inline_in_tests;
