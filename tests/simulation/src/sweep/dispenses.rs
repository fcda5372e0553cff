//! A dispenser: assignees take items, end them, give them back, keep them too long and fall silent,
//! and a rebuild lists what stays.

use std::collections::BTreeSet;

use optimus_core::{Dispenser, Item, QueueName};
use optimus_fsck::Content;
use tokio::time::sleep;

use super::Actor;
use super::steps::ms;
use crate::dump::dump;
use crate::item_journal::ItemJournal;
use crate::world::World;

const NAME: &str = "review";
/// An item that no rebuild lists.
const JUNK: &str = "junk";

/// The dispenser of the scene, with a record of its answers.
struct Desk<'a> {
    review: Dispenser,
    items: &'a ItemJournal,
}

pub(super) async fn dispenses(actor: &Actor) {
    let review = actor.user.client.dispenser(NAME).hold(ms(600)).hold_max(ms(900));
    let desk = Desk { review, items: &actor.world.network.items };
    named(&desk).await;
    in_turn(&desk).await;
    give_back(&desk).await;
    fall_silent(&desk).await;
    keep_too_long(&desk).await;
    look(&desk).await;
    rebuild(&desk, actor).await;
    drop(desk.review.release("ann").await);
}

impl Desk<'_> {
    async fn add(&self, items: &[(&str, i8)]) {
        let all = items.iter().map(|(id, priority)| Item::new(*id).priority(*priority));
        if self.review.add(all).await.is_ok() {
            for (id, _) in items {
                self.items.added(id);
            }
        }
    }

    async fn assign(&self, who: &str, count: usize) -> Vec<String> {
        let held = self.review.assign(who, count).await;
        held.map(|held| held.ids().map(str::to_owned).collect()).unwrap_or_default()
    }

    async fn done(&self, who: &str, ids: &[String]) {
        for id in ids {
            self.items.ending(id);
        }
        if let Ok(settled) = self.review.done(who, ids).await {
            settled.accepted.iter().for_each(|id| self.items.done(id));
        }
    }
}

/// Requests with names, which are repeated, and used for others.
async fn named(desk: &Desk<'_>) {
    let once = |name: &str| desk.review.clone().once(name);
    let first: Vec<String> = (0..6).map(|number| format!("i{number}")).collect();
    for _ in 0..2 {
        if once("a").add(first.iter().map(|id| Item::new(id.as_str()))).await.is_ok() {
            for id in &first {
                desk.items.added(id);
            }
        }
    }
    drop(once("a").add([Item::new("other")]).await);
    for count in [2, 2, 3] {
        drop(once("b").assign("ann", count).await);
    }
    let mine = desk.assign("ann", 3).await;
    for at in [1, 1, 0] {
        let Some(id) = mine.get(at) else { continue };
        desk.items.ending(id);
        if let Ok(settled) = once("c").done("ann", [id]).await {
            settled.accepted.iter().for_each(|id| desk.items.done(id));
        }
    }
    for at in [2, 2, 0] {
        let Some(id) = mine.get(at) else { continue };
        drop(once("d").give_back("ann", [id]).await);
    }
}

/// An item of a higher priority comes before those that are held.
async fn in_turn(desk: &Desk<'_>) {
    desk.assign("ann", 2).await;
    desk.add(&[("i1", 0), ("first", 9), ("i5", 3), ("last", 0)]).await;
    desk.assign("ann", 4).await;
    let mine = desk.assign("ann", 1).await;
    drop(desk.review.check("ann").await);
    let others = ["last", "unknown", "i1"].map(str::to_owned);
    desk.done("ann", &[mine, others.to_vec()].concat()).await;
    desk.add(&[("i1", 0)]).await;
}

/// An assignee does not get again what it has given back.
async fn give_back(desk: &Desk<'_>) {
    let mine = desk.assign("bob", 2).await;
    drop(desk.review.give_back("bob", mine.iter().take(1)).await);
    let anns = desk.assign("ann", 1).await;
    let mine = desk.assign("bob", 3).await;
    drop(desk.review.give_back("bob", [anns, mine.clone()].concat()).await);
    desk.done("bob", &mine).await;
    desk.assign("eve", 1).await;
    drop(desk.review.release("eve").await);
}

/// The items of an assignee that does not call go back, to the next caller first.
async fn fall_silent(desk: &Desk<'_>) {
    desk.add(&[("i6", 0), ("i7", 0), ("i8", 0)]).await;
    desk.assign("ann", 2).await;
    desk.assign("bob", 1).await;
    sleep(ms(700)).await;
    drop(desk.review.check("ann").await);
    desk.assign("eve", 2).await;
    sleep(ms(700)).await;
    desk.assign("zoe", 3).await;
    sleep(ms(700)).await;
    drop(desk.review.give_back("zoe", ["i8", "i0", "unknown"]).await);
    desk.assign("zoe", 1).await;
    sleep(ms(700)).await;
    desk.done("eve", &["i8".to_owned()]).await;
    // Nobody calls for longer than anybody may be silent.
    sleep(ms(700)).await;
    drop(desk.review.peek().await);
}

/// An assignee that calls again and again loses its items in the end.
async fn keep_too_long(desk: &Desk<'_>) {
    for who in ["ann", "bob"] {
        desk.assign(who, 2).await;
    }
    for _ in 0..3 {
        sleep(ms(320)).await;
        drop(desk.review.check("ann").await);
    }
    let mine = desk.assign("ann", 2).await;
    desk.done("ann", &mine).await;
}

/// An operator reads all pages.
async fn look(desk: &Desk<'_>) {
    desk.add(&[("i9", 0), ("i10", 0)]).await;
    desk.assign("bob", 1).await;
    drop(desk.review.peek().await);
    drop(desk.review.open_items(0, 9).await);
    drop(desk.review.assigned_items(0, 9).await);
    drop(desk.review.assignees(0, 9).await);
}

/// Rebuilds end others, list all items but one, and are repeated.
async fn rebuild(desk: &Desk<'_>, actor: &Actor) {
    let former = desk.review.rebuild().await;
    if let Ok(former) = &former {
        drop(former.add(["i9"]).await);
    }
    // The end is in pages. One begins after an item, and one after an item that is gone.
    for is_there in [true, false] {
        drop(desk.review.add([JUNK]).await);
        let Ok(rebuild) = desk.review.rebuild().await else { return };
        if let Ok(former) = &former {
            drop(former.add(["i9"]).await);
        }
        let all: Vec<String> = (0..11).map(|number| format!("i{number}")).collect();
        let all = all.iter().map(String::as_str).chain(["first", "last"]);
        let Ok(slot) = QueueName::of_dispenser(NAME) else { return };
        // Otherwise the end would remove what it has not listed.
        if rebuild.add(all).await.is_err() {
            return;
        }
        let first = pairs(&actor.world, "pool").into_iter().next();
        let there = first.map(|(item, rank)| format!("{rank} {item}")).unwrap_or_default();
        let place = if is_there { there } else { "1 gone".to_owned() };
        let broker = actor.user.client.broker();
        drop(broker.dispenser_rebuild_end(&slot, "", rebuild.id(), &place).await);
        drop(rebuild.finish().await);
        drop(rebuild.finish().await);
        if is_there {
            // A begin that arrives late opens the rebuild again, and lists nothing.
            drop(broker.dispenser_rebuild_begin(&slot, "", rebuild.id()).await);
        }
    }
}

/// Returns the fields of a key of the dispenser, as the store has them.
fn pairs(world: &World, key: &str) -> Vec<(String, String)> {
    let slot = format!("@d.{NAME}");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    match dump(&world.network.store).remove(&slot).and_then(|mut all| all.keys.remove(key)) {
        Some(Content::Hash(pairs)) => {
            pairs.into_iter().map(|(field, value)| (text(field), text(value))).collect()
        }
        _ => Vec::new(),
    }
}

/// Complains about items that are lost, and about items that were done and are back.
pub(super) fn check(world: &World) {
    let network = &world.network;
    if network.journal.was_rolled_back() {
        return;
    }
    let all = ["pool", "holders"].into_iter().flat_map(|key| pairs(world, key));
    let present: BTreeSet<String> = all.map(|(item, _)| item).collect();
    for wrong in network.items.compare(&present) {
        network.complain(wrong);
    }
}
