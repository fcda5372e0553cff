//! The examples stand beside this file; each is a program of its own.

/// Every block of Rust in these pages is compiled, and run unless it says `no_run`.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../docs/PRODUCTION.md")]
struct Production;
