//! Plain reads of the dispensers of a namespace that are of use.

use redis::Value;

use super::{
    Broker, BrokerError,
    explain::text,
    inspect::{get, size, texts, whole},
};
use crate::id::QueueName;

/// An emptied dispenser is named for so long after its last use.
const NAMED_FOR_MS: u64 = 24 * 3_600_000;
/// How many dispensers one exchange looks at.
const LOOKED_AT: usize = 64;
/// A place is in these parts of a ms, as in `lua/include/dispenser_add.lua`.
const PLACES_A_MS: f64 = 1_024.0;
/// The spans in which items are finished, as in `lua/include/dispenser_keys.lua`.
const DONE_SPAN_MS: u64 = 3_600_000;

/// The commands that show whether a dispenser is of use.
const READS: usize = 6;

impl Broker {
    /// Reads the names of the dispensers that have items or that somebody has used within a day:
    /// has added or finished items, or was an assignee.
    pub async fn dispenser_names(&self) -> Result<Vec<String>, BrokerError> {
        let (all, mut used) = (self.rosters_of("@d.").await?, Vec::new());
        let since = self.now_ms().await?.saturating_sub(NAMED_FOR_MS);
        for names in all.chunks(LOOKED_AT) {
            let slot = |name: &String| Some((name.clone(), QueueName::of_dispenser(name).ok()?));
            let slots: Vec<(String, QueueName)> = names.iter().filter_map(slot).collect();
            let reads = slots.iter().flat_map(|(_, slot)| self.reads_of(slot)).collect();
            let mut answers = self.read(reads).await.into_iter();
            for (name, _) in slots {
                let own: Vec<_> = answers.by_ref().take(READS).collect();
                if last_use(own)? >= since {
                    used.push(name);
                }
            }
        }
        Ok(used)
    }

    fn reads_of(&self, slot: &QueueName) -> [redis::Cmd; READS] {
        let keys = self.keys(slot);
        let head = keys.of("dispenser");
        [
            get(&["ZCARD", &keys.of("pool")]),
            get(&["HLEN", &keys.of("holders")]),
            get(&["ZRANGE", &keys.of("assignees"), "-1", "-1", "WITHSCORES"]),
            get(&["HGET", &head, "place"]),
            get(&["HGET", &head, "span"]),
            get(&["HGET", &head, "rebuild"]),
        ]
    }
}

/// Returns when a dispenser was used last, in ms; the end of time while it has items. One that
/// can't be read, such as one of another type, is named: operators must see it.
fn last_use(answers: Vec<Result<Value, BrokerError>>) -> Result<u64, BrokerError> {
    let mut values = Vec::new();
    for answer in answers {
        match answer {
            Ok(value) => values.push(value),
            Err(BrokerError::Rejected(_)) => return Ok(u64::MAX),
            Err(problem) => return Err(problem),
        }
    }
    let mut values = values.into_iter();
    let mut next = || values.next().expect("an answer for each call");
    if size(&next()) + size(&next()) > 0 {
        return Ok(u64::MAX);
    }
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<f64>().ok());
    let last = texts("ZRANGE", next())?;
    let over = number(last.get(1).map(String::as_str)).map_or(0, whole);
    let (place, span, rebuild) = (text(next())?, text(next())?, text(next())?);
    let added = number(place.as_deref()).map_or(0, |place| whole(place / PLACES_A_MS));
    let span = span.as_deref().and_then(|span| span.split(' ').next());
    let finished = number(span).map_or(0, |span| (whole(span) + 1).saturating_mul(DONE_SPAN_MS));
    let begun = rebuild.as_deref().and_then(|rebuild| rebuild.rsplit(' ').next());
    let begun = number(begun).map_or(0, whole);
    Ok(over.max(added).max(finished).max(begun))
}
