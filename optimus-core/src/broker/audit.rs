//! What operators have done: a sorted set of lines, by the ms of the act.
//!
//! An act has one line for its intent, `<id> i<json>`, and later one for its outcome,
//! `<id> o<json>` with the same ms. So both are next to each other, and the outcome comes first
//! where the latest come first.

use super::{
    Broker, BrokerError,
    inspect::{get, texts},
};
use crate::id::QueueName;

/// How many acts are kept.
pub const AUDIT_MAX: usize = 10_000;
/// How long they are kept, in ms: 180 days.
const KEPT_MS: u64 = 180 * 86_400_000;

impl Broker {
    fn audit_key(&self) -> String {
        self.keys(&QueueName::of_slot("@audit")).of("audit")
    }

    /// Adds a line of an act that was at that time, and removes lines that are too many or too old.
    /// A repeat changes nothing.
    pub async fn audit_add(&self, at_ms: u64, line: &str) -> Result<(), BrokerError> {
        let (key, at) = (self.audit_key(), at_ms.to_string());
        let beyond = format!("-{}", 2 * AUDIT_MAX + 1);
        let old = format!("({}", at_ms.saturating_sub(KEPT_MS));
        let commands = vec![
            get(&["ZADD", &key, &at, line]),
            get(&["ZREMRANGEBYRANK", &key, "0", &beyond]),
            get(&["ZREMRANGEBYSCORE", &key, "-inf", &old]),
        ];
        self.read(commands).await.into_iter().try_for_each(|answer| answer.map(drop))
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
            &self.audit_key(),
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
