//! Replaces what looks like a secret in what operators see, for the console and the command line.
//! Texts are never read into numbers and written again, because that changes large ones.
//!
//! This module is for the other Optimus crates and is not public API.

mod json;
mod names;
mod text;

pub use self::{
    json::{redact_json, redact_json_of_beginnings},
    names::is_secret,
    text::{redact_beginning, redact_text},
};

/// What stands for a secret.
pub const REDACTED: &str = "[redacted]";
