//! Whether what a queue keeps is sound in itself: each task in one state, each index beside its
//! records, nothing without its bound. It knows the keys alone, not what was done to them.

mod bounds;
mod indexes;
mod line;
mod owners;
mod shelf;
mod states;

use self::shelf::Shelf;
use crate::{bench::Bench, dump::Dump};

/// What is wrong, a sentence each; empty for a sound store.
pub(crate) fn fsck(dump: &Dump) -> Vec<String> {
    let shelf = Shelf::new(dump);
    let mut wrong = Vec::new();
    for check in [states::check, line::check, indexes::check, owners::check, bounds::check] {
        check(&shelf, &mut wrong);
    }
    wrong
}

impl Bench {
    /// What is wrong with the queue, with the lifetimes of its keys, which no dump has.
    pub(crate) async fn fsck(&self) -> Vec<String> {
        let dump = self.dump().await;
        let mut wrong = fsck(&dump);
        wrong.extend(bounds::check_lifetimes(&dump, &self.lifetimes(&dump).await));
        wrong
    }

    /// The ms that each key has left; -1 for one that stays.
    async fn lifetimes(&self, dump: &Dump) -> Vec<i64> {
        let mut reads = redis::pipe();
        for name in dump.keys() {
            reads.cmd("PTTL").arg(self.key(name));
        }
        self.raw_all(&reads).await
    }
}
