//! Reads the keys of all queues in the form that fsck requires.

use std::collections::BTreeMap;

use optimus_embedded::Store;
use optimus_embedded::simulation::Content as Held;
use optimus_fsck::{Content, Dump};

use crate::world::NAMESPACE;

/// A key: its name within its queue, its content, and its remaining ms.
type Key = (String, Held, Option<u64>);

/// All keys of one queue.
pub struct QueueDump {
    /// The content of the keys.
    pub keys: Dump,
    /// The remaining ms of each key, in the order of the keys. -1 for a key without an expiry.
    pub lifetimes: Vec<i64>,
}

/// Returns the keys of each queue that has keys, by the queue's name.
pub fn dump(store: &Store) -> BTreeMap<String, QueueDump> {
    let prefix = format!("{{{NAMESPACE}:");
    let mut queues: BTreeMap<String, Vec<Key>> = BTreeMap::new();
    for (key, held, left) in store.view() {
        let key = String::from_utf8_lossy(&key).into_owned();
        let parts = key.strip_prefix(&prefix).and_then(|rest| rest.split_once(":0}:"));
        if let Some((queue, name)) = parts {
            queues.entry(queue.to_owned()).or_default().push((name.to_owned(), held, left));
        }
    }
    queues.into_iter().map(|(queue, keys)| (queue, dump_queue(keys))).collect()
}

fn dump_queue(mut all: Vec<Key>) -> QueueDump {
    all.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    let lifetime = |left: &Option<u64>| left.map_or(-1, |ms| i64::try_from(ms).unwrap_or(i64::MAX));
    let lifetimes = all.iter().map(|(_, _, left)| lifetime(left)).collect();
    let contents = all.into_iter().map(|(name, held, _)| {
        let content = content(&name, held);
        (name, content)
    });
    QueueDump { keys: contents.collect(), lifetimes }
}

fn content(name: &str, held: Held) -> Content {
    match held {
        Held::Text(text) => Content::Text(text),
        Held::List(items) => Content::List(items),
        Held::Pairs(mut pairs) => {
            pairs.sort();
            Content::Hash(pairs)
        }
        Held::Set(_) => unreachable!("{name} is a set, which no queue has"),
    }
}
