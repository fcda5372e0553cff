//! What the commands print of shards that a worker holds, and what they change.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use optimus::WorkerId;
use optimus_core::{
    HeldPosts, RosterName,
    broker::{Hold, Holding},
};
use optimus_testkit::eventually;
use serde_json::json;

use crate::{
    outputs::compare,
    stage::{SOON, Stage},
};

/// A worker that holds the two shards of `orders`.
pub(crate) struct Holder<'a> {
    stage: &'a Stage,
    roster: RosterName,
    holding: Holding,
}

impl<'a> Holder<'a> {
    pub(crate) async fn of_orders(stage: &'a Stage) -> Self {
        Self::of(stage, RosterName::shards("orders").unwrap()).await
    }

    /// Holds the two posts of a roster.
    pub(crate) async fn of(stage: &'a Stage, roster: RosterName) -> Self {
        Self::with_lease(stage, roster, Duration::from_secs(60)).await
    }

    /// Holds the two posts of a roster, and dies.
    pub(crate) async fn that_dies(stage: &'a Stage, roster: RosterName) {
        let lease = Duration::from_millis(1);
        let held = Self::with_lease(stage, roster, lease).await;
        let over = held.holding.now_ms + 1;
        let is_over = async || stage.client.broker().now_ms().await.unwrap() > over;
        eventually("its lease is over", SOON, is_over).await;
    }

    async fn with_lease(stage: &'a Stage, roster: RosterName, lease: Duration) -> Self {
        let (broker, worker) = (stage.client.broker(), worker());
        broker.announce_roster(&roster).await.unwrap();
        let hold = Hold { lease, ..first_hold(&worker) };
        let holding = broker.hold(&roster, &hold).await.unwrap();
        Self { stage, roster, holding }
    }

    /// Lets one of them fail.
    pub(crate) async fn fails_a_shard(self) {
        let shown: Vec<_> =
            self.holding.posts.iter().map(|(post, fence, _)| (*post, *fence)).collect();
        let post = shown.last().unwrap().0.to_string();
        let failure =
            json!({ "failures": 3, "at_ms": 1_795_000_000_000_i64, "error": "no database" });
        let failing = json!({ "failing": { post: failure } }).to_string();
        let (worker, heard) = (worker(), self.holding.heard);
        let first = first_hold(&worker);
        let again = Hold { heard, shown: &shown, description: &failing, number: 2, ..first };
        self.stage.client.broker().hold(&self.roster, &again).await.unwrap();
    }
}

fn worker() -> WorkerId {
    WorkerId::from_stored("vm-1-0a0b0c0d")
}

fn first_hold(worker: &WorkerId) -> Hold<'_> {
    Hold {
        worker,
        lease: Duration::from_secs(60),
        asked: 2,
        heard: HeldPosts::default().heard(),
        shown: &[],
        quiet: Duration::ZERO,
        is_leaving: false,
        description: "{}",
        number: 1,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_are_shown_paused_and_counted() {
    let stage = Stage::new().await;
    let holder = Holder::of_orders(&stage).await;
    compare(
        &stage,
        &[("shard_list", &["shard", "list"]), ("shard_show", &["shard", "show", "orders"])],
    );
    holder.fails_a_shard().await;
    let shown = stage.optimus(&["shard", "show", "orders"]).ended(0).out;
    assert!(shown.contains("failed 3 times, last ") && shown.contains(": no database"), "{shown}");
    let found = stage.optimus(&["doctor", "--quiet"]).ended(8).out;
    assert!(found.contains("1 shard of orders have failed, with: no database"), "{found}");
    let paused = stage.optimus(&["shard", "pause", "orders", "1", "--reason", "repair"]).ended(0);
    assert_eq!(paused.out, "shard 1 of orders is paused\n");
    let rows = stage.optimus(&["shard", "show", "orders", "--json"]).ended(0).json();
    let pause = &rows[1]["pause"];
    assert_eq!((pause["by"].as_str(), pause["why"].as_str()), (Some("ann"), Some("repair")));
    assert!(pause["since_ms"].is_number() && rows[1]["paused"] == true, "{rows:?}");
    let shown = stage.optimus(&["shard", "show", "orders"]).ended(0).out;
    assert!(shown.contains("paused by ann (repair)"), "{shown}");
    for line in [&["pause", "order"][..], &["resume", "order"], &["count", "order", "4"]] {
        let refused = stage.optimus(&[&["shard"], line].concat()).ended(3).err;
        assert!(refused.contains("shards of order;") && refused.contains(": orders"), "{refused}");
    }
    assert!(rows[0]["worker"] == "vm-1-0a0b0c0d" && rows[0]["pause"].is_null(), "{rows:?}");
    stage.optimus(&["shard", "resume", "orders"]).ended(0);
    stage.optimus(&["shard", "pause", "orders", "7"]).ended(2);
    stage.optimus(&["shard", "count", "orders", "0"]).ended(2);
    stage.optimus(&["shard", "count", "orders", "4"]).ended(9);
    let counted = stage.optimus(&["shard", "count", "orders", "4", "--yes"]).ended(0);
    assert_eq!(counted.out, "orders has 4 shards; it had 2\n");
    stage.optimus(&["shard", "restart", "orders", "--yes"]).ended(0);
    for index in ["0", "3"] {
        stage.optimus(&["shard", "pause", "orders", index]).ended(0);
    }
    let same = stage.optimus(&["shard", "count", "orders", "4", "--yes"]).ended(0).out;
    assert_eq!(same, "orders has 4 shards; it had 4\n");
    let asked = stage.optimus(&["shard", "count", "orders", "5"]).ended(9).err;
    assert!(asked.contains(" This ends the pauses of 2 shards (0, 3): a number "), "{asked}");
    let counted = stage.optimus(&["shard", "count", "orders", "5", "--yes"]).ended(0).out;
    let ended = "orders has 5 shards; it had 4; this has ended the pauses of 2 shards (0, 3)\n";
    assert_eq!(counted, ended);
    let rows = stage.optimus(&["shard", "show", "orders", "--json"]).ended(0).json();
    assert!(rows.iter().all(|row| row["paused"] == false), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_whose_workers_are_all_dead_are_lost_and_a_warning() {
    let stage = Stage::new().await;
    Holder::that_dies(&stage, RosterName::shards("orders").unwrap()).await;
    let row = stage.optimus(&["shard", "list", "--json"]).ended(0).json().remove(0);
    assert_eq!((&row["shards"], &row["held"], &row["workers"]), (&json!(2), &json!(0), &json!(0)));
    let shown = stage.optimus(&["shard", "show", "orders"]).ended(0).out;
    assert!(shown.contains(" lost ") && !shown.contains(" held "), "{shown}");
    let rows = stage.optimus(&["shard", "show", "orders", "--json"]).ended(0).json();
    assert!(rows[0]["worker"] == "vm-1-0a0b0c0d" && rows[0]["lost"] == true, "{rows:?}");
    let found = stage.optimus(&["doctor", "--quiet"]).ended(8).out;
    let what = "function orders: nobody works on its shards: the lease of its last worker ended ";
    assert!(found.contains(what), "{found}");
    let (roster, other) = (RosterName::shards("orders").unwrap(), "vm-2-0a0b0c0d");
    let other = WorkerId::from_stored(other);
    let (broker, beats) = (stage.client.broker(), AtomicU64::new(1));
    let takes = async || {
        let number = beats.fetch_add(1, Ordering::Relaxed);
        let held = broker.hold(&roster, &Hold { number, ..first_hold(&other) }).await.unwrap();
        held.posts.len() == 2
    };
    eventually("another takes them", SOON, takes).await;
    let row = stage.optimus(&["shard", "list", "--json"]).ended(0).json().remove(0);
    assert_eq!((&row["held"], &row["workers"]), (&json!(2), &json!(1)));
    let found = stage.optimus(&["doctor", "--quiet"]).out;
    assert!(!found.contains("nobody works"), "{found}");
}
