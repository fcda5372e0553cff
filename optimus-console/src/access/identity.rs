//! Who somebody is, and what they may do: [`Identity`], [`Role`], [`Payloads`].

use std::fmt;

use super::patterns::Patterns;

/// What somebody may do. A later role may do all that an earlier one may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Looks at everything.
    Viewer,
    /// Pauses, retries, cancels, lets tasks run now, and asks processes to be quiet or to stop.
    Operator,
    /// Deletes.
    Admin,
}

/// How arguments and results are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Payloads {
    /// Not at all.
    Hidden,
    /// With what looks like a secret replaced, by the names of fields.
    Redacted,
    /// As they are. Errors and lines of logs are shown as they are, too.
    Full,
}

/// Somebody whom the console knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) queues: Patterns,
}

impl Identity {
    /// Makes somebody with this role in all queues. The name is shown, and written down with each
    /// of their acts.
    pub fn new(name: impl Into<String>, role: Role) -> Self {
        Self { name: name.into(), role, queues: Patterns::all() }
    }

    /// Limits what they see and do to queues with these names. A `*` in a name stands for any text:
    /// `tenant-*`.
    pub fn queues<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.queues = Patterns::of(patterns.into_iter().map(Into::into));
        self
    }
}

impl Role {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// Returns the role of a word: `viewer`, `operator` or `admin`.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Viewer, Self::Operator, Self::Admin].into_iter().find(|role| role.as_str() == word)
    }
}

impl Payloads {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Hidden => "hidden",
            Self::Redacted => "redacted",
            Self::Full => "full",
        }
    }

    /// Returns the mode of a word: `hidden`, `redacted` or `full`.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Hidden, Self::Redacted, Self::Full].into_iter().find(|mode| mode.as_str() == word)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Payloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
