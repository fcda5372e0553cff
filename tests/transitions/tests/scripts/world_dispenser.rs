//! The part of the world that a dispenser needs, and the calls of a dispenser.

use optimus_core::{
    Item,
    broker::{BrokerError, ByAssignee, HoldTimes},
};

use crate::{
    bench::Bench,
    dispensers::{LONG, TIMES, items, names},
    world::{NOW, World},
};

/// Keys that scripts build themselves, in addition to those of the world.
pub(crate) const OTHER_KEYS: [&str; 8] = [
    "bucket:late",
    "bucket:slow",
    "done:472221",
    "done:472222",
    "seen:open",
    "seen:former",
    "answer:3:ann:kept",
    "answer:0::kept",
];

/// Returns the assignee of a situation.
pub(crate) fn assignee_of(situation: &str) -> &'static str {
    if situation == "dispensed, late" { "late" } else { "ann" }
}

impl World {
    /// Adds items: of an assignee that was silent for too long, of one that has kept them too long,
    /// and of another; finished ones, and some in the pool; and a rebuild that is open.
    pub(crate) async fn dispense_some(&self, bench: &Bench) {
        let slot = &bench.queue;
        let all: Vec<Item> = (0..20).map(|number| Item::new(format!("i{number}"))).collect();
        bench.add_items(1_000, &all).await;
        bench.assign(2_000, "late", 2).await;
        let impatient = HoldTimes { hold_max: TIMES.hold, ..LONG };
        let by = ByAssignee { times: impatient, ..bench.by("slow") };
        bench.at(3_000).dispenser_assign(by, 2).await.expect("a call without mistakes");
        let by = ByAssignee { times: LONG, ..bench.by("ann") };
        let held = bench.at(4_000).dispenser_assign(by, 6).await.expect("a call without mistakes");
        assert_eq!(held.items.len(), 6);
        bench.done_items(5_000, "ann", &["i4"]).await;
        bench.give_items(5_001, "ann", &["i5"]).await;
        bench.at(5_002).dispenser_check(by).await.expect("a call without mistakes");
        let broker = bench.at(6_000);
        broker.dispenser_rebuild_begin(slot, "", "open").await.expect("a call without mistakes");
        let listed = items(&["i10", "i11", "i12", "new"]);
        broker.dispenser_rebuild_page(slot, "", "open", &listed).await.expect("it is open");
    }

    /// Calls a script of a dispenser.
    pub(crate) async fn dispense_in(
        &self,
        bench: &Bench,
        script: &str,
        situation: &str,
    ) -> Result<(), BrokerError> {
        let (broker, slot) = (bench.at(NOW), &bench.queue);
        let once = if situation == "dispensed, named" { "kept" } else { "" };
        let by = ByAssignee { once: once.into(), ..bench.by(assignee_of(situation)) };
        let times = by.times;
        match (script, situation) {
            ("dispenser_add", "dispensed, known") => {
                broker.dispenser_add(slot, once, &items(&["i4", "i6", "i12"])).await.map(drop)
            }
            ("dispenser_add", _) => {
                broker.dispenser_add(slot, once, &items(&["x", "y"])).await.map(drop)
            }
            ("dispenser_assign", _) => {
                let count = match situation {
                    "dispensed, fewer" => 2,
                    "dispensed, none" => 0,
                    _ => 9,
                };
                broker.dispenser_assign(by, count).await.map(drop)
            }
            ("dispenser_check", _) => broker.dispenser_check(by).await.map(drop),
            ("dispenser_done", "dispensed, lost") => {
                broker.dispenser_done(by, &names(&["i0", "i2", "i12", "x"])).await.map(drop)
            }
            ("dispenser_done", _) => {
                let all = names(&["i6", "i7", "i8", "i9", "i4"]);
                broker.dispenser_done(by, &all).await.map(drop)
            }
            ("dispenser_return", _) => {
                let all = names(&["i6", "i7", "i8", "i9", "i4", "x"]);
                broker.dispenser_return(by, &all).await.map(drop)
            }
            ("dispenser_rebuild", "dispensed, begin") => {
                broker.dispenser_rebuild_begin(slot, "", "next").await.map(drop)
            }
            ("dispenser_rebuild", "dispensed, page") => {
                let page = items(&["i4", "i6", "i13", "newer"]);
                broker.dispenser_rebuild_page(slot, "", "open", &page).await.map(drop)
            }
            ("dispenser_rebuild", _) => {
                broker.dispenser_rebuild_end(slot, "", "open", "").await.map(drop)
            }
            _ => {
                let what = situation.trim_start_matches("dispensed, ");
                // Some pages are read before anything is over. Otherwise items go back first.
                let at = if what.starts_with("ass") { 6_500 } else { NOW };
                bench.at(at).dispenser_peek(slot, times, (what, 0, 9)).await.map(drop)
            }
        }
    }
}
