//! Whether what looks like a secret is printed: [`Secrets`].

use std::{borrow::Cow, env};

use optimus_core::{
    environment::REDACT,
    redact::{REDACTED, is_secret, redact_beginning, redact_json, redact_json_of_beginnings},
};

use crate::arguments::Global;

/// How many characters of an error and of a cell are kept, at least. A text that is as long may
/// have been cut within a secret.
const KEPT: usize = 100;

/// Whether what looks like a secret is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrets {
    Shown,
    Redacted,
}

impl Secrets {
    /// Returns what the option asks for, else the environment.
    pub(crate) fn of(global: &Global) -> Self {
        let is_set = || {
            let value = env::var_os(REDACT).unwrap_or_default();
            !["", "0", "false"].iter().any(|no| value == *no)
        };
        if global.redact || is_set() { Self::Redacted } else { Self::Shown }
    }

    /// Returns a text as it is printed.
    pub(crate) fn text(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Shown => text.into(),
            Self::Redacted => redact_beginning(text, KEPT).0.into(),
        }
    }

    /// Returns arguments or a result, before a part of them is cut off.
    pub(crate) fn payload(self, bytes: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::Shown => bytes.into(),
            Self::Redacted => redact_json(&String::from_utf8_lossy(bytes)).0.into_bytes().into(),
        }
    }

    /// Returns the value of a header.
    pub(crate) fn header<'a>(self, name: &str, value: &'a str) -> Cow<'a, str> {
        match self {
            Self::Redacted if is_secret(name) => REDACTED.into(),
            _ => self.text(value),
        }
    }

    /// Returns an object as it is printed.
    pub(crate) fn json(self, json: String) -> String {
        match self {
            Self::Shown => json,
            Self::Redacted => redact_json_of_beginnings(&json, KEPT).0,
        }
    }
}
