//! Tests of each family of commands, as transcripts of a conversation with an empty store.

mod hashes;
mod keys;
mod lists;
mod refusals;
mod server;
mod sets;
mod strings;
#[path = "../support/mod.rs"]
mod support;
mod zsets;
