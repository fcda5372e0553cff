//! The Lua side of a store. One VM compiles each script once and runs it against the keyspace.

#![expect(clippy::needless_pass_by_value, reason = "Lua passes arguments by value")]

mod convert;
mod failure;
mod json_decode;
mod json_encode;
mod json_token;
mod library;
mod session;
mod vm;

pub(crate) use vm::Vm;
