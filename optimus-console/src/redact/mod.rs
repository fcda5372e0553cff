//! Replaces what looks like a secret in what operators see. Texts are never read into numbers and
//! written again, because that changes large ones.

mod json;
mod names;
mod text;

pub(crate) use self::{
    json::redact_json,
    names::is_secret,
    text::{redact_beginning, redact_text},
};

/// What stands for a secret.
pub(crate) const REDACTED: &str = "[redacted]";
