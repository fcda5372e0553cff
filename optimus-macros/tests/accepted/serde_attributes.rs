//! serde attributes on parameters apply to the stored JSON; they allow types without serde.
#![deny(warnings)]

use optimus::TaskFn;

mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(value.as_secs())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_secs)
    }
}

/// A type without serde's traits.
struct Opaque(std::time::Duration);

mod opaque {
    use super::{Opaque, seconds};

    pub fn serialize<S: serde::Serializer>(value: &Opaque, to: S) -> Result<S::Ok, S::Error> {
        seconds::serialize(&value.0, to)
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Opaque, D::Error> {
        seconds::deserialize(from).map(Opaque)
    }
}

fn five() -> u32 {
    5
}

#[optimus::task]
async fn wait(
    #[serde(with = "seconds", rename = "secs")] pause: std::time::Duration,
    #[serde(with = "opaque")] opaque: Opaque,
    #[serde(default = "five")] times: u32,
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "who")] whom: Option<String>,
) {
    let _ = (pause, opaque.0, times, whom);
}

fn round_trip<A, F: TaskFn<A>>(_: F, json: &str) -> String {
    let task: F::Task = serde_json::from_str(json).unwrap();
    serde_json::to_string(&task).unwrap()
}

pub(super) fn main() {
    let json = r#"{"secs":90,"opaque":1,"times":5}"#;
    assert_eq!(round_trip(wait, r#"{"secs":90,"opaque":1}"#), json);
    let json = r#"{"secs":1,"opaque":2,"times":3,"whom":"Ann"}"#;
    assert_eq!(round_trip(wait, r#"{"secs":1,"opaque":2,"times":3,"who":"Ann"}"#), json);
}
