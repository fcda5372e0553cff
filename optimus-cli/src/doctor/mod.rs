//! The checks of `optimus doctor`: [`Finding`].

pub(crate) mod queues;
pub(crate) mod server;
pub(crate) mod shards;

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
}

impl Finding {
    pub(crate) fn ok(check: &'static str, text: impl Into<String>) -> Self {
        Self { level: Level::Ok, check, text: text.into() }
    }

    pub(crate) fn note(check: &'static str, text: impl Into<String>) -> Self {
        Self { level: Level::Note, check, text: text.into() }
    }

    pub(crate) fn warning(check: &'static str, text: impl Into<String>) -> Self {
        Self { level: Level::Warning, check, text: text.into() }
    }
}
