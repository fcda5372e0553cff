//! The bodies and queries of requests.

use optimus_core::{DateTime, HELD_MAX, Item, Utc};
use serde::{Deserialize, de::DeserializeOwned};

use crate::problem::Problem;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Assign {
    pub(crate) count: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    pub(crate) items: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ids {
    pub(crate) items: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Release {
    pub(crate) assignee: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Add {
    pub(crate) items: Vec<NewItem>,
}

/// An id, or an id with more.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum NewItem {
    Id(String),
    Whole(WholeItem),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WholeItem {
    id: String,
    #[serde(default)]
    priority: i8,
    since: Option<DateTime<Utc>>,
}

impl From<NewItem> for Item {
    fn from(item: NewItem) -> Self {
        match item {
            NewItem::Id(id) => Self::new(id),
            NewItem::Whole(WholeItem { id, priority, since }) => {
                let item = Self::new(id).priority(priority);
                since.into_iter().fold(item, Self::waiting_since)
            }
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(tag = "step", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum RebuildStep {
    Begin,
    Page { rebuild: String, items: Vec<NewItem> },
    Finish { rebuild: String },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Peek {
    pub(crate) list: Option<List>,
    #[serde(default)]
    pub(crate) skip: usize,
    #[serde(default = "rows")]
    pub(crate) limit: usize,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum List {
    Open,
    Assigned,
    Assignees,
}

fn rows() -> usize {
    HELD_MAX
}

/// Reads a body.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|problem| Problem::invalid(format!("the body can't be read: {problem}")))
}

/// Reads a body that may be missing.
pub(crate) fn read_or_default<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, Problem> {
    if body.trim_ascii().is_empty() { Ok(T::default()) } else { read(body) }
}
