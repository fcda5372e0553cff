//! Texts of tasks, as somebody may see them: [`Shown`].

use std::collections::BTreeMap;

use optimus_core::{AttemptError, Shut};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    access::{Payloads, Reader},
    redact::{REDACTED, is_secret, redact_beginning, redact_json, redact_text},
};

/// How many bytes or characters of a text are kept before the console gets it.
pub(crate) mod kept {
    /// Of an error, by its worker.
    pub(crate) const ERROR: usize = 8 * 1024;
    /// Of the error of a task in a list.
    pub(crate) const ROW: usize = 200;
    /// Of a line of a log.
    pub(crate) const LOG: usize = 500;
    /// Of what a task says about its progress.
    pub(crate) const PROGRESS: usize = 100;
    /// Of an error of a source.
    pub(crate) const SOURCE: usize = 1_000;
    /// Of the error of a task that has paused something.
    pub(crate) const PAUSE: usize = 200;
}

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

/// Returns a text of a task. Those who see no arguments see it redacted.
pub(crate) fn line(text: &str, payloads: Payloads) -> String {
    match payloads {
        Payloads::Full => text.to_owned(),
        Payloads::Redacted | Payloads::Hidden => redact_text(text).0,
    }
}

/// Returns the beginning of a text of a task, of which as much as this was [`kept`].
pub(crate) fn beginning(text: &str, kept: usize, payloads: Payloads) -> String {
    match payloads {
        Payloads::Full => text.to_owned(),
        Payloads::Redacted | Payloads::Hidden => redact_beginning(text, kept).0,
    }
}

/// What is said of a prerequisite in a queue that the reader does not see.
const UNSEEN: &str = "a prerequisite in a queue that you do not see has not succeeded";

/// Returns an error of a task, of which as much as this was [`kept`].
pub(crate) fn error(error: &AttemptError, kept: usize, reader: Reader<'_>) -> String {
    match error.prerequisite_queue() {
        Some(queue) if !reader.queues.take(queue) => UNSEEN.to_owned(),
        _ => beginning(&error.message, kept, reader.payloads),
    }
}

/// Returns a pause. A task that has paused something gives its error as the reason.
pub(crate) fn pause(shut: &Shut, payloads: Payloads) -> Shut {
    let mut shown = shut.clone();
    shown.why = beginning(&shut.why, kept::PAUSE, payloads);
    shown
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
