//! Texts of tasks, as somebody may see them: [`Shown`].

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    access::Payloads,
    redact::{REDACTED, is_secret, redact_json, redact_text},
};

/// How many bytes of arguments and of a result are shown.
const BYTES_MAX: usize = 256 * 1024;

/// Arguments or a result.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Shown {
    /// The JSON as a text; empty if it is hidden.
    text: String,
    /// Whether you may not see it.
    hidden: bool,
    /// Whether a part of it was replaced.
    redacted: bool,
    /// Whether there is more than is shown.
    truncated: bool,
}

impl Shown {
    pub(crate) fn of(bytes: &[u8], payloads: Payloads) -> Self {
        let stored = String::from_utf8_lossy(bytes);
        let (mut text, redacted) = match payloads {
            Payloads::Hidden => (String::new(), false),
            Payloads::Redacted => redact_json(&stored),
            Payloads::Full => (stored.into_owned(), false),
        };
        let truncated = text.len() > BYTES_MAX;
        if truncated {
            let mut end = BYTES_MAX;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
        }
        Self { text, hidden: payloads == Payloads::Hidden, redacted, truncated }
    }
}

/// Returns an error or a line of a log. Those who see no arguments see it redacted.
pub(crate) fn line(text: &str, payloads: Payloads) -> String {
    match payloads {
        Payloads::Full => text.to_owned(),
        Payloads::Redacted | Payloads::Hidden => redact_text(text).0,
    }
}

/// Returns headers with the values of secret ones replaced.
pub(crate) fn headers(
    headers: &BTreeMap<String, String>,
    payloads: Payloads,
) -> BTreeMap<String, String> {
    let shown = |name: &str, value: &str| match payloads {
        Payloads::Full => value.to_owned(),
        _ if is_secret(name) => REDACTED.to_owned(),
        _ => redact_text(value).0,
    };
    headers.iter().map(|(name, value)| (name.clone(), shown(name, value))).collect()
}
