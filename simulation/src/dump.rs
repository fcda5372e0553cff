//! The keys of the queue, as the fsck takes them.

use optimus_embedded::Store;
use optimus_embedded::simulation::Content as Held;
use optimus_fsck::{Content, Dump};

use crate::work::QUEUE;
use crate::world::NAMESPACE;

/// All keys of the queue, and the ms that each has left, in their order; -1 for one that stays.
pub fn dump(store: &Store) -> (Dump, Vec<i64>) {
    let prefix = format!("{{{NAMESPACE}:{QUEUE}:0}}:");
    let mut all: Vec<(String, Held, Option<u64>)> = Vec::new();
    for (key, held, left) in store.view() {
        let key = String::from_utf8_lossy(&key).into_owned();
        if let Some(name) = key.strip_prefix(&prefix) {
            all.push((name.to_owned(), held, left));
        }
    }
    all.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    let lifetime = |left: &Option<u64>| left.map_or(-1, |ms| i64::try_from(ms).unwrap_or(i64::MAX));
    let lifetimes = all.iter().map(|(_, _, left)| lifetime(left)).collect();
    let contents = all.into_iter().map(|(name, held, _)| {
        let content = content(&name, held);
        (name, content)
    });
    (contents.collect(), lifetimes)
}

fn content(name: &str, held: Held) -> Content {
    match held {
        Held::Text(text) => Content::Text(text),
        Held::List(items) => Content::List(items),
        Held::Pairs(mut pairs) => {
            pairs.sort();
            Content::Hash(pairs)
        }
        Held::Set(_) => unreachable!("no queue has a set, and {name} is one"),
    }
}
