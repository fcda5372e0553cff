//! A lane, a limit, a group, a schedule, a sharded function, a source or a dispenser.

use std::fmt;

use optimus_core::{DateTime, TaskId, Utc};
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
    kind: FactKind,
}

/// What the value of a fact is.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum FactKind {
    Text,
    /// A time in the form of RFC 3339.
    Instant,
    /// Ids of tasks, with a space between them.
    Tasks,
}

impl Fact {
    pub(crate) fn new(name: &str, value: impl fmt::Display) -> Self {
        Self { name: name.to_owned(), value: format!("{value}"), kind: FactKind::Text }
    }

    /// Returns a fact that is a time.
    pub(crate) fn at(name: &str, at: DateTime<Utc>) -> Self {
        let value = at.format("%Y-%m-%dT%H:%M:%SZ");
        Self { kind: FactKind::Instant, ..Self::new(name, value) }
    }

    /// Returns a fact that names tasks.
    pub(crate) fn tasks<'a>(name: &str, ids: impl IntoIterator<Item = &'a TaskId>) -> Self {
        let ids: Vec<String> = ids.into_iter().map(TaskId::to_string).collect();
        Self { kind: FactKind::Tasks, ..Self::new(name, ids.join(" ")) }
    }

    /// Returns a fact if there is a value.
    pub(crate) fn of(name: &str, value: Option<impl fmt::Display>) -> Option<Self> {
        value.map(|value| Self::new(name, value))
    }
}
