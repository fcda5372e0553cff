//! Calls of a dispenser in the slot of the bench.

use std::time::Duration;

use optimus_core::{
    Added, Held, Item, ItemPlace,
    broker::{Broker, BrokerError, ByAssignee, DispenserCounts, HoldTimes},
};

use crate::bench::Bench;

/// The times of the tests: an assignee may be silent for 10 s, and keep an item for 60 s.
pub(crate) const TIMES: HoldTimes =
    HoldTimes { hold: Duration::from_secs(10), hold_max: Duration::from_secs(60) };

/// Times that no test reaches.
pub(crate) const LONG: HoldTimes =
    HoldTimes { hold: Duration::from_secs(86_400), hold_max: Duration::from_secs(86_400) };

/// Items with these ids.
pub(crate) fn items(ids: &[&str]) -> Vec<Item> {
    ids.iter().map(|id| Item::new(*id)).collect()
}

/// Items `<prefix>0` to `<prefix><count - 1>`.
pub(crate) fn numbered(prefix: &str, count: usize) -> Vec<Item> {
    (0..count).map(|number| Item::new(format!("{prefix}{number:04}"))).collect()
}

/// The ids as the broker takes them.
pub(crate) fn names(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

/// The ids that an assignee holds.
pub(crate) fn ids(held: &Held) -> Vec<&str> {
    held.ids().collect()
}

impl Bench {
    /// The caller of a verb, with the usual times.
    pub(crate) fn by<'a>(&'a self, assignee: &'a str) -> ByAssignee<'a> {
        ByAssignee { slot: &self.queue, assignee, times: TIMES, once: "".into() }
    }

    pub(crate) async fn add_items(&self, at: u64, items: &[Item]) -> Added {
        self.at(at).dispenser_add(&self.queue, "", items).await.unwrap()
    }

    pub(crate) async fn assign(&self, at: u64, assignee: &str, count: usize) -> Held {
        self.at(at).dispenser_assign(self.by(assignee), count).await.unwrap()
    }

    pub(crate) async fn check(&self, at: u64, assignee: &str) -> Held {
        self.at(at).dispenser_check(self.by(assignee)).await.unwrap()
    }

    pub(crate) async fn done_items(&self, at: u64, by: &str, ids: &[&str]) -> Vec<ItemPlace> {
        self.at(at).dispenser_done(self.by(by), &names(ids)).await.unwrap()
    }

    pub(crate) async fn give_items(&self, at: u64, by: &str, ids: &[&str]) -> Vec<ItemPlace> {
        self.at(at).dispenser_return(self.by(by), &names(ids)).await.unwrap()
    }

    pub(crate) async fn item_counts(&self, at: u64) -> DispenserCounts {
        self.at(at).dispenser_counts(&self.queue, TIMES).await.unwrap()
    }

    /// The ids of the pool in their order. Unlike a peek, this returns nothing to the pool.
    pub(crate) async fn pool(&self) -> Vec<String> {
        self.raw(redis::cmd("ZRANGE").arg(self.key("pool")).arg(0).arg(-1)).await
    }

    /// Ends a rebuild in as many calls as it takes. Returns how many items were removed.
    pub(crate) async fn end_rebuild(&self, at: u64, rebuild: &str) -> Result<u64, BrokerError> {
        let (broker, mut removed, mut place): (Broker, _, _) = (self.at(at), 0, String::new());
        loop {
            let page = broker.dispenser_rebuild_end(&self.queue, "", rebuild, &place).await?;
            removed += page.0;
            match page.1 {
                Some(next) => place = next,
                None => return Ok(removed),
            }
        }
    }

    pub(crate) async fn assert_sound_items(&self) {
        assert_eq!(self.fsck().await, [""; 0]);
    }
}
