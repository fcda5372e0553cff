//! Logs that Redis refuses the wait of a listener: [`RefusedWait`].

use optimus_core::{broker::BrokerError, log::Log, log_event};

/// Whether Redis refuses the wait. The refusal is logged once. The connection itself logs an outage
/// of Redis.
#[derive(Debug)]
pub(crate) struct RefusedWait {
    /// What the worker can't do, and what it does instead.
    text: &'static str,
    is_refused: bool,
}

impl RefusedWait {
    pub(crate) fn new(text: &'static str) -> Self {
        Self { text, is_refused: false }
    }

    /// Takes the answer to a wait.
    pub(crate) fn note<T>(&mut self, log: &Log, answer: &Result<T, BrokerError>) {
        let refused = answer.as_ref().err().filter(|problem| !problem.is_transient());
        if let (Some(problem), false) = (refused, self.is_refused) {
            let (problem, text) = (problem.clone(), self.text);
            log_event!(log, WARN, error = %problem, "{text}");
        }
        self.is_refused = refused.is_some();
    }
}
