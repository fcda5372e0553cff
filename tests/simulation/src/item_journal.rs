//! Records what a dispenser has answered about its items: [`ItemJournal`].

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The items that are known to be in a dispenser, and those that are known to be done.
#[derive(Debug, Default)]
pub struct ItemJournal(Mutex<Items>);

#[derive(Debug, Default)]
struct Items {
    added: BTreeSet<String>,
    /// Those that somebody has tried to end.
    ending: BTreeSet<String>,
    done: BTreeSet<String>,
}

impl ItemJournal {
    fn items(&self) -> MutexGuard<'_, Items> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the dispenser has confirmed an addition.
    pub(crate) fn added(&self, item: &str) {
        self.items().added.insert(item.to_owned());
    }

    /// Records that somebody ends an item, before the answer.
    pub(crate) fn ending(&self, item: &str) {
        self.items().ending.insert(item.to_owned());
    }

    /// Records that the dispenser has confirmed an end.
    pub(crate) fn done(&self, item: &str) {
        self.items().done.insert(item.to_owned());
    }

    /// Returns what is wrong if these items are in the dispenser, in the pool or with assignees.
    pub fn compare(&self, present: &BTreeSet<String>) -> Vec<String> {
        let items = self.items();
        let lost = items.added.iter().filter(|item| !items.ending.contains(*item));
        let lost = lost.filter(|item| !present.contains(*item));
        let lost = lost.map(|item| format!("the item {item} is lost"));
        let back = items.done.intersection(present);
        lost.chain(back.map(|item| format!("the item {item} was done, and is back"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_is_lost_or_back_is_wrong() {
        let journal = ItemJournal::default();
        for item in ["a", "b", "c"] {
            journal.added(item);
        }
        for item in ["b", "c"] {
            journal.ending(item);
        }
        journal.done("c");
        let present = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
        assert_eq!(journal.compare(&present(&["a", "b"])), [""; 0]);
        assert_eq!(journal.compare(&present(&["a"])), [""; 0], "the end may have had its effect");
        assert_eq!(journal.compare(&present(&["a", "c"])).len(), 1);
        assert_eq!(journal.compare(&present(&[])).len(), 1);
    }
}
