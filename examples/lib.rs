//! The examples stand beside this file; each is a program of its own.

/// Every block of Rust in the README is compiled, and run unless it says `no_run`.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
