//! The rounds of a shard that have failed, as its holder tells with its heartbeat:
//! [`ShardFailure`].

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{platform::instant, roster::Post};

/// The longest text of an error.
const ERROR_CHARS: usize = 200;
/// Of how many shards a worker tells that they fail.
const TOLD_MAX: usize = 32;
/// The field of a member's description.
const FIELD: &str = "failing";

/// The last rounds of a shard have failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShardFailure {
    /// How many rounds have failed, one after the other.
    pub failures: u32,
    /// When the last one has failed, by the clock of its worker.
    #[serde(rename = "at_ms", with = "chrono::serde::ts_milliseconds")]
    pub at: DateTime<Utc>,
    /// The beginning of its error.
    pub error: String,
}

impl ShardFailure {
    /// Makes it for a worker.
    #[doc(hidden)]
    pub fn new(failures: u32, at_ms: u64, error: &str) -> Self {
        Self { failures, at: instant(at_ms), error: error.chars().take(ERROR_CHARS).collect() }
    }

    /// Returns the description of a worker, as JSON, with the shards that fail.
    #[doc(hidden)]
    pub fn describe(description: &str, failing: impl Iterator<Item = (Post, Self)>) -> String {
        let told: BTreeMap<String, Self> =
            failing.take(TOLD_MAX).map(|(post, failure)| (post.to_string(), failure)).collect();
        let read = serde_json::from_str::<Value>(description);
        let (Ok(Value::Object(mut fields)), Ok(failing)) = (read, serde_json::to_value(&told))
        else {
            return description.to_owned();
        };
        if !told.is_empty() {
            fields.insert(FIELD.to_owned(), failing);
        }
        Value::Object(fields).to_string()
    }

    /// Reads the shards that fail from the description of a member.
    pub(crate) fn read(description: &str) -> BTreeMap<Post, Self> {
        let fields = serde_json::from_str::<Value>(description).unwrap_or_default();
        let told: BTreeMap<String, Self> = fields
            .get(FIELD)
            .and_then(|told| serde_json::from_value(told.clone()).ok())
            .unwrap_or_default();
        told.into_iter().filter_map(|(post, failure)| Some((post.parse().ok()?, failure))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_names_the_shards_that_fail_and_stays_readable() {
        let failing = |count| {
            (0..count).map(|index| {
                let error = "x".repeat(1_000);
                (Post { generation: 2, index }, ShardFailure::new(3, 1_000, &error))
            })
        };
        let told = ShardFailure::describe(r#"{"host":"vm-1"}"#, failing(100));
        let read = ShardFailure::read(&told);
        assert_eq!(read.len(), TOLD_MAX);
        let first = &read[&Post { generation: 2, index: 0 }];
        assert_eq!((first.failures, first.error.len()), (3, ERROR_CHARS));
        let known: crate::inspect::WorkerDescription = serde_json::from_str(&told).unwrap();
        assert_eq!(known.host, "vm-1");
        assert!(ShardFailure::read(r#"{"failing":7}"#).is_empty());
        assert!(ShardFailure::read("no JSON").is_empty());
        assert_eq!(ShardFailure::describe("no JSON", failing(1)), "no JSON");
    }
}
