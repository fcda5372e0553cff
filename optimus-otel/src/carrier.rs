//! The headers of a task as a carrier of contexts: [`Stored`] is read, [`Sent`] is written.

use std::collections::BTreeMap;

use opentelemetry::propagation::{Extractor, Injector};
use optimus_core::Submission;

/// The headers of a task that a worker has.
pub(crate) struct Stored<'a>(pub(crate) &'a BTreeMap<String, String>);

impl Extractor for Stored<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

/// A call that a client is about to send. A header that does not fit is left out: the task is worth
/// more than its trace.
pub(crate) struct Sent<'a>(pub(crate) &'a mut Submission);

impl Injector for Sent<'_> {
    fn set(&mut self, key: &str, value: String) {
        // An empty `tracestate` says nothing.
        if !value.is_empty() && self.0.can_set_header(key, &value) {
            self.0.set_header(key, value);
        }
    }
}
