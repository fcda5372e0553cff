//! Checks the queues of a live store: [`examine`].

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use optimus_core::{Error, QueueName, broker::Broker};

use crate::{
    Violation,
    look::{Coverage, Names, look},
};

/// How often a queue is read until a violation counts.
const READS: usize = 3;
/// How long to wait before another read.
const PAUSE: Duration = Duration::from_millis(300);
/// The most names of one slot that are kept.
const NAMES_MAX: usize = 200_000;

/// What was found in the keys of one slot.
#[derive(Debug)]
pub struct Examined {
    /// The queue, or another set of keys with one tag, such as `@fleet`.
    pub slot: String,
    /// How many keys it has, or more if not all were counted.
    pub keys: u64,
    /// How many records of tasks were read.
    pub tasks: u64,
    /// About how many bytes of Redis' memory the keys take whose content is checked.
    pub bytes: u64,
    /// What was read of it.
    pub coverage: Coverage,
    /// What is wrong, without what ended within a second.
    pub violations: Vec<Violation>,
}

/// Checks the keys of these queues, or, if there are none, all keys of the broker's namespace.
/// Changes nothing.
///
/// Tasks move while the keys are read. A small queue is read at one moment, a larger one in short
/// steps, and of one that is too large only the names and types of its keys ([`Coverage`]). A
/// violation counts if three reads, with 300 ms between them, find the same text for the same key.
///
/// Redis' longest step takes a few ms. All steps together pass all keys of its database once for
/// each of up to three reads.
///
/// # Errors
/// [`Error::is_unavailable`] if Redis does not answer. An error that names the permissions if the
/// Redis user lacks some.
pub async fn examine(broker: &Broker, queues: &[QueueName]) -> Result<Vec<Examined>, Error> {
    let found = scan(broker, queues).await?;
    let mut all = Vec::with_capacity(found.len());
    for (slot, names) in found {
        all.push(look(broker, &slot, &names).await?);
    }
    for _ in 1..READS {
        let doubtful: Vec<&mut Examined> =
            all.iter_mut().filter(|seen| !seen.violations.is_empty()).collect();
        if doubtful.is_empty() {
            break;
        }
        tokio::time::sleep(PAUSE).await;
        let found = scan(broker, queues).await?;
        for seen in doubtful {
            let none = Names::default();
            let names = found.get(&seen.slot).unwrap_or(&none);
            seen.confirm(&look(broker, &seen.slot, names).await?);
        }
    }
    Ok(all)
}

impl Examined {
    /// Keeps the violations that the second look has found, too.
    fn confirm(&mut self, again: &Self) {
        let lasting: BTreeSet<(&str, &str)> =
            again.violations.iter().map(|wrong| (&*wrong.key, &*wrong.text)).collect();
        self.violations.retain(|wrong| lasting.contains(&(&*wrong.key, &*wrong.text)));
        self.coverage = self.coverage.min(again.coverage);
    }
}

/// Returns the names of all keys, by their slots.
async fn scan(broker: &Broker, queues: &[QueueName]) -> Result<BTreeMap<String, Names>, Error> {
    let mut found: BTreeMap<String, Names> =
        queues.iter().map(|queue| (queue.to_string(), Names::default())).collect();
    let only = if let [queue] = queues { Some(queue.as_str()) } else { None };
    let mut cursor = None;
    loop {
        let (keys, next) = broker.scan_keys(only, cursor.as_deref()).await?;
        for (slot, name) in keys {
            if !queues.is_empty() && !found.contains_key(&slot) {
                continue;
            }
            let names = found.entry(slot).or_default();
            if names.all.len() < NAMES_MAX {
                names.all.insert(name);
            } else {
                names.is_cut = true;
            }
        }
        cursor = next;
        if cursor.is_none() {
            return Ok(found);
        }
    }
}
