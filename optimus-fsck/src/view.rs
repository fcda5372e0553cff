//! A dump with its keys as typed values, for lookups.

use std::{collections::BTreeMap, ops::Bound};

use crate::{Content, Dump};

/// The keys of a queue as text.
pub(crate) struct View<'a>(&'a Dump);

impl<'a> View<'a> {
    pub(crate) fn new(dump: &'a Dump) -> Self {
        Self(dump)
    }

    /// Returns the names of all keys.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the owners of keys of a kind, such as `working:`.
    pub(crate) fn owners(&self, kind: &'static str) -> impl Iterator<Item = &'a str> {
        let from = (Bound::Included(kind), Bound::Unbounded);
        self.0.range::<str, _>(from).map_while(move |(name, _)| name.strip_prefix(kind))
    }

    /// Returns a hash, or a zset with its scores, by field or member. Returns an empty map if the
    /// key does not exist.
    pub(crate) fn pairs(&self, name: &str) -> BTreeMap<String, String> {
        match self.0.get(name) {
            Some(Content::Hash(pairs) | Content::Zset(pairs)) => {
                pairs.iter().map(|(field, value)| (text(field), text(value))).collect()
            }
            _ => BTreeMap::new(),
        }
    }

    /// Returns whether a hash has the field.
    pub(crate) fn has_field(&self, name: &str, field: &str) -> bool {
        match self.0.get(name) {
            Some(Content::Hash(pairs)) => pairs.iter().any(|(own, _)| own == field.as_bytes()),
            _ => false,
        }
    }

    /// Returns the values of a hash, unchanged.
    pub(crate) fn bytes(&self, name: &str) -> Vec<(String, Vec<u8>)> {
        match self.0.get(name) {
            Some(Content::Hash(pairs)) => {
                pairs.iter().map(|(field, value)| (text(field), value.clone())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the items of a list.
    pub(crate) fn items(&self, name: &str) -> Vec<String> {
        match self.0.get(name) {
            Some(Content::List(items)) => items.iter().map(|item| text(item)).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns a string.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        match self.0.get(name) {
            Some(Content::Text(value)) => Some(text(value)),
            _ => None,
        }
    }

    /// Returns a number of `meta`, or 0 if it is absent.
    pub(crate) fn meta(&self, field: &str) -> u64 {
        self.pairs("meta").get(field).and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// Returns the tasks that a worker holds, without the field that is not a task.
    pub(crate) fn held(&self, worker: &str) -> BTreeMap<String, String> {
        let mut held = self.pairs(&format!("working:{worker}"));
        held.remove(LAST_CLAIM);
        held
    }
}

/// The field of `working:<worker>` with its last claim.
pub(crate) const LAST_CLAIM: &str = "#";

/// Returns the id of an entry of the ready list.
pub(crate) fn entry_id(entry: &str) -> &str {
    entry.split_once(':').map_or(entry, |(_, id)| id)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
