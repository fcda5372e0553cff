//! Runs the tests of the example, as a user would.
#![allow(dead_code, reason = "the example's main is run by the tests beside this file")]

#[path = "../inline_in_tests.rs"]
mod inline_in_tests;
