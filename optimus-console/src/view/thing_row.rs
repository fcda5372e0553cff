//! A lane, a limit, a group, a schedule, a sharded function, a source or a dispenser.

use std::fmt;

use serde::Serialize;
use utoipa::ToSchema;

/// One thing, in a form that is the same for all kinds.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ThingRow {
    /// What people read.
    pub(crate) title: String,
    /// What an act names.
    pub(crate) name: String,
    /// The queue that it belongs to, if it does to one.
    pub(crate) queue: Option<String>,
    pub(crate) state: String,
    pub(crate) facts: Vec<Fact>,
    /// What can be done with it.
    pub(crate) acts: Vec<&'static str>,
}

/// A name and its value.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Fact {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl Fact {
    pub(crate) fn new(name: &str, value: impl fmt::Display) -> Self {
        Self { name: name.to_owned(), value: format!("{value}") }
    }

    /// Returns a fact if there is a value.
    pub(crate) fn of(name: &str, value: Option<impl fmt::Display>) -> Option<Self> {
        value.map(|value| Self::new(name, value))
    }
}
