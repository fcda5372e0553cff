//! The checks of `optimus doctor`: [`Finding`].

pub(crate) mod deep;
mod lost;
pub(crate) mod operations;
pub(crate) mod processes;
pub(crate) mod queues;
mod schedules;
pub(crate) mod server;
pub(crate) mod shards;
pub(crate) mod sources;
mod unused;
mod waits;
mod workers;

use optimus_core::Shut;
use serde::Serialize;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    Ok,
    Note,
    Warning,
}

/// What a check has found.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// The name of the check, for programs.
    pub(crate) check: &'static str,
    /// What was found, and what to do about it.
    pub(crate) text: String,
    /// The queue, or another set of keys, whose key is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queue: Option<String>,
    /// The key that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
}

impl Finding {
    fn new(level: Level, check: &'static str, text: impl Into<String>) -> Self {
        Self { level, check, text: text.into(), queue: None, key: None }
    }

    pub(crate) fn ok(check: &'static str, text: impl Into<String>) -> Self {
        Self::new(Level::Ok, check, text)
    }

    pub(crate) fn note(check: &'static str, text: impl Into<String>) -> Self {
        Self::new(Level::Note, check, text)
    }

    /// Tells that an operator has paused something, and which command ends that. Somebody wants the
    /// pause, so it is no warning; it is easy to forget.
    fn paused(check: &'static str, what: &str, shut: &Shut, end: &str) -> Self {
        Self::note(check, format!("{what} is {shut}: {end} ends it"))
    }

    pub(crate) fn warning(check: &'static str, text: impl Into<String>) -> Self {
        Self::new(Level::Warning, check, text)
    }
}
