//! `audit`: what operators have done. It is a sorted set of lines, by the ms of the act.
//!
//! An act has one line for its intent, `<id> i<json>`, and later one for its outcome,
//! `<id> o<json>` with the same ms. So both are next to each other, and the outcome comes first
//! where the latest come first.

use super::{
    Broker, BrokerError, ScriptCall,
    inspect::{get, texts},
    scripts,
};
use crate::id::QueueName;

/// How many acts are kept.
pub const AUDIT_MAX: usize = 10_000;
/// How long they are kept, in ms: 180 days.
const KEPT_MS: u64 = 180 * 86_400_000;

impl Broker {
    /// Returns the place of the key of all acts. No queue can have this name.
    pub fn audit_slot() -> QueueName {
        QueueName::of_slot("@audit")
    }

    /// Adds a line of an act that was at that time, and removes lines that are too many or too old.
    /// A repeat changes nothing. A full store takes the line, too.
    pub async fn audit(&self, slot: &QueueName, at_ms: u64, line: &str) -> Result<(), BrokerError> {
        let call = ScriptCall::new(&scripts::AUDIT, &self.keys(slot), "").number(at_ms).text(line);
        let call = call.number(2 * AUDIT_MAX).number(at_ms.saturating_sub(KEPT_MS));
        self.run_surely(call).await.map(drop)
    }

    /// Reads up to `count` lines with their ms, the latest first, from a time on, without the first
    /// `skip` of them.
    pub async fn audit_read(
        &self,
        from_ms: Option<u64>,
        skip: usize,
        count: usize,
    ) -> Result<Vec<(u64, String)>, BrokerError> {
        let from = from_ms.map_or_else(|| "+inf".to_owned(), |ms| ms.to_string());
        let (skip, count) = (skip.to_string(), count.to_string());
        let range = [
            "ZRANGE",
            &self.keys(&Self::audit_slot()).of("audit"),
            &from,
            "-inf",
            "BYSCORE",
            "REV",
            "LIMIT",
            &skip,
            &count,
            "WITHSCORES",
        ];
        let found = texts("ZRANGE", self.read_one(get(&range)).await?)?;
        let pairs = found.chunks_exact(2);
        Ok(pairs
            .filter_map(|pair| Some((pair[1].parse::<f64>().ok()?, pair[0].clone())))
            .map(|(ms, line)| (super::inspect::whole(ms), line))
            .collect())
    }
}
