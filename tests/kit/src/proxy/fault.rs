//! Counts requests, and chooses the one that a fault hits: [`Counter`].

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::frame::first_words;

/// Commands that set up a connection. They do not count, because their number is an internal detail
/// of the client.
const SET_UP: [&str; 6] = ["AUTH", "CLIENT", "COMMAND", "HELLO", "PING", "SELECT"];

/// The treatment of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    DropRequest,
    DropReply,
    Duplicate,
}

/// Counts the requests over all connections of a proxy.
#[derive(Debug, Default)]
pub(super) struct Counter(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    requests: Vec<String>,
    armed: Option<(u64, Fault)>,
    struck: bool,
}

impl Counter {
    /// Sets the fault of the `k`-th request from now. It replaces a fault that was set before.
    pub(super) fn arm(&self, k: u64, fault: Fault) {
        *self.state() = State { armed: Some((k, fault)), ..State::default() };
    }

    /// Counts a request, and returns the fault that hits it.
    pub(super) fn count(&self, command: &[u8]) -> Option<Fault> {
        let mut words = first_words(command, 2);
        let name = words.first().map(|word| word.to_ascii_uppercase()).unwrap_or_default();
        if SET_UP.contains(&name.as_str()) {
            return None;
        }
        if name != "EVALSHA" {
            words.truncate(1);
        }
        let mut state = self.state();
        let (k, fault) = state.armed?;
        state.requests.push(words.join(" "));
        if state.struck || (state.requests.len() as u64) < k {
            return None;
        }
        state.struck = true;
        Some(fault)
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    pub(super) fn struck(&self) -> bool {
        self.state().struck
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
