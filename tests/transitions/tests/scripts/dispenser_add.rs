//! `dispenser_add`, `dispenser_rebuild` and `dispenser_peek`: what is in the pool.

use optimus_core::{
    Added, Item, ItemPlace,
    broker::{DispenserCounts, HoldTimes, Refusal},
    platform::instant,
};
use redis::cmd;

use crate::{
    acts::{ms, refusal},
    bench::{Bench, START},
    dispensers::{TIMES, ids, items, numbered},
};

async fn items_are_in_the_order_in_which_they_are_added(bench: Bench) {
    let all = numbered("i", 500);
    let backwards: Vec<Item> = all.iter().rev().cloned().collect();
    bench.add_items(5, &backwards[..250]).await;
    bench.add_items(5, &backwards[250..]).await;
    let expected: Vec<String> = backwards.iter().map(|item| item.id().to_owned()).collect();
    assert_eq!(bench.pool().await, expected, "also in one ms");
    let held = bench.assign(6, "ann", 500).await;
    assert_eq!(ids(&held), expected);
    bench.assign(7, "ann", 0).await;
    assert_eq!(bench.pool().await, expected, "also after a return");
}

async fn a_known_item_keeps_its_place_and_is_counted_where_it_is(bench: Bench) {
    bench.add_items(0, &items(&["a", "b", "c"])).await;
    bench.assign(1, "ann", 2).await;
    bench.done_items(2, "ann", &["a"]).await;
    let before = bench.dump().await;
    let again = items(&["a", "b", "c", "d", "d"]);
    let added = bench.add_items(3, &again).await;
    assert_eq!(added, Added { added: 1, open: 2, assigned: 1, done: 1 });
    assert_eq!(bench.changes(&before).await, ["dispenser", "pool"]);
    assert_eq!(bench.pool().await, ["c", "d"]);
    bench.assert_sound_items().await;
}

async fn a_priority_counts_as_minutes_of_waiting(bench: Bench) {
    bench.add_items(0, &items(&["old"])).await;
    bench
        .add_items(59_999, &[Item::new("urgent").priority(1), Item::new("low").priority(-1)])
        .await;
    assert_eq!(bench.pool().await, ["urgent", "old", "low"]);
    bench.add_items(60_001, &[Item::new("later").priority(1)]).await;
    assert_eq!(bench.pool().await, ["urgent", "old", "later", "low"]);
}

async fn an_item_that_is_added_again_moves_forward_and_never_back(bench: Bench) {
    bench.add_items(0, &items(&["a", "b"])).await;
    bench.add_items(1, &[Item::new("b").priority(1), Item::new("a").priority(-1)]).await;
    assert_eq!(bench.pool().await, ["b", "a"]);
    bench.add_items(2, &items(&["b"])).await;
    assert_eq!(bench.pool().await, ["b", "a"]);
}

async fn an_item_can_wait_since_an_earlier_time(bench: Bench) {
    bench.add_items(1_000, &items(&["now"])).await;
    let since = |id: &str, ms| Item::new(id).waiting_since(instant(START + ms));
    bench.add_items(2_000, &[since("early", 500), since("later", 1_500)]).await;
    assert_eq!(bench.pool().await, ["early", "now", "later"]);
}

async fn a_rebuild_lists_what_stays_and_adds_what_is_new(bench: Bench) {
    bench.add_items(0, &items(&["gone", "stays", "held", "finished"])).await;
    let by = bench.by("ann");
    bench.assign(1, "ann", 4).await;
    bench.give_items(2, "ann", &["gone", "stays"]).await;
    let (slot, broker) = (&bench.queue, bench.at(3));
    broker.dispenser_rebuild_begin(slot, "", "r1").await.unwrap();
    broker.dispenser_rebuild_begin(slot, "", "r1").await.unwrap();
    assert_eq!(bench.done_items(4, "ann", &["finished"]).await, [ItemPlace::Done]);
    bench.add_items(5, &items(&["meanwhile"])).await;
    let listed = items(&["stays", "held", "finished", "new"]);
    for expected in [1, 0] {
        let added = broker.dispenser_rebuild_page(slot, "", "r1", &listed).await.unwrap();
        assert_eq!((added.added, added.assigned, added.done), (expected, 1, 1));
    }
    assert!(bench.item_counts(6).await.is_rebuilding);
    bench.assert_sound_items().await;
    assert_eq!(bench.end_rebuild(7, "r1").await.unwrap(), 1);
    assert_eq!(bench.end_rebuild(8, "r1").await.unwrap(), 0, "a repeat");
    assert_eq!(bench.pool().await, ["stays", "meanwhile", "new"]);
    assert_eq!(ids(&bench.at(9).dispenser_check(by).await.unwrap()), ["held"]);
    let after = bench.names().await;
    assert!(!after.iter().any(|name| name.starts_with("seen:")), "{after:?}");
    bench.assert_sound_items().await;
}

async fn a_rebuild_that_another_replaced_or_that_took_too_long_is_refused(bench: Bench) {
    let (slot, broker) = (&bench.queue, bench.at(0));
    broker.dispenser_rebuild_begin(slot, "", "r1").await.unwrap();
    broker.dispenser_rebuild_page(slot, "", "r1", &items(&["a"])).await.unwrap();
    bench.at(1).dispenser_rebuild_begin(slot, "", "r2").await.unwrap();
    let before = bench.dump().await;
    let page = bench.at(2).dispenser_rebuild_page(slot, "", "r1", &items(&["b"])).await;
    assert_eq!(refusal(page), Refusal::Stale);
    assert_eq!(refusal(bench.end_rebuild(2, "r1").await), Refusal::Stale);
    let late = bench.at(3_600_001).dispenser_rebuild_page(slot, "", "r2", &items(&["b"])).await;
    assert_eq!(refusal(late), Refusal::Stale);
    assert_eq!(refusal(bench.end_rebuild(3_600_001, "r2").await), Refusal::Stale);
    let unknown = bench.at(2).dispenser_rebuild_page(slot, "", "no", &items(&["b"])).await;
    assert_eq!(refusal(unknown), Refusal::Stale);
    for (at, ended) in [(2, "r1"), (2, "no"), (3_600_001, "r2")] {
        let empty = bench.at(at).dispenser_rebuild_page(slot, "", ended, &[]).await;
        assert_eq!(refusal(empty), Refusal::Stale, "{ended}");
    }
    let empty = bench.at(2).dispenser_rebuild_page(slot, "", "r2", &[]).await;
    assert_eq!(empty.unwrap(), Added::default());
    bench.assert_unchanged(&before).await;
    assert_eq!(bench.pool().await, ["a"], "what was added stays");
}

/// What was finished after the begin is remembered as long as the rebuild may go on, also if an
/// hour of the clock begins meanwhile.
async fn a_long_rebuild_brings_nothing_back(bench: Bench) {
    for start in (0..3_600_000).step_by(600_000) {
        let id = format!("i{start}");
        bench.add_items(start, &items(&[&id])).await;
        bench.assign(start, "ann", 1).await;
        let rebuild = format!("r{start}");
        bench.at(start).dispenser_rebuild_begin(&bench.queue, "", &rebuild).await.unwrap();
        bench.done_items(start, "ann", &[&id]).await;
        let last = bench.at(start + 3_599_999);
        let page = last.dispenser_rebuild_page(&bench.queue, "", &rebuild, &items(&[&id])).await;
        assert_eq!(page.unwrap().done, 1, "{start}");
        assert_eq!(bench.pool().await, [""; 0]);
    }
}

/// A request that arrives twice must not begin another rebuild, which would end the first one.
async fn each_step_of_a_rebuild_can_be_named(bench: Bench) {
    bench.add_items(0, &items(&["a", "gone"])).await;
    let (slot, broker) = (&bench.queue, bench.at(1));
    let begin = async |once, name| broker.dispenser_rebuild_begin(slot, once, name).await.unwrap();
    assert_eq!(begin("k1", "r1").await, "r1");
    let listed = items(&["a", "new"]);
    let page =
        async |once, of, items: &[Item]| broker.dispenser_rebuild_page(slot, once, of, items).await;
    let added = page("k2", "r1", &listed).await.unwrap();
    assert_eq!((added.added, added.open), (1, 1));
    let before = bench.dump().await;
    assert_eq!(begin("k1", "r2").await, "r1", "a repeat");
    assert_eq!(page("k2", "r1", &listed).await.unwrap(), added, "a repeat");
    assert_eq!(refusal(page("k2", "r1", &items(&["b"])).await), Refusal::Reused);
    assert_eq!(refusal(page("k2", "r2", &listed).await), Refusal::Reused);
    assert_eq!(refusal(page("k1", "r1", &listed).await), Refusal::Reused);
    bench.assert_unchanged(&before).await;
    for _ in 0..2 {
        let (removed, place) = broker.dispenser_rebuild_end(slot, "k3", "r1", "").await.unwrap();
        assert_eq!((removed, place), (1, None));
    }
    let after = bench.dump().await;
    assert_eq!(begin("k1", "r2").await, "r1", "a late repeat opens nothing");
    bench.assert_unchanged(&after).await;
    assert_eq!(begin("k4", "r2").await, "r2", "another request");
    bench.assert_sound_items().await;
}

async fn the_end_of_a_rebuild_works_in_pages(bench: Bench) {
    let all = numbered("i", 1_300);
    for page in all.chunks(500) {
        bench.add_items(0, page).await;
    }
    let tied = numbered("tied", 1_200);
    let mut of_one_rank = cmd("ZADD");
    of_one_rank.arg(bench.key("pool"));
    for item in &tied {
        of_one_rank.arg(5).arg(item.id());
    }
    let _: usize = bench.raw(&of_one_rank).await;
    let slot = &bench.queue;
    bench.at(1).dispenser_rebuild_begin(slot, "", "r").await.unwrap();
    let even = |items: &[Item]| items.iter().step_by(2).cloned().collect::<Vec<_>>();
    let listed = [even(&all), even(&tied)].concat();
    for page in listed.chunks(500) {
        bench.at(2).dispenser_rebuild_page(slot, "", "r", page).await.unwrap();
    }
    let (removed, place) = bench.at(3).dispenser_rebuild_end(slot, "", "r", "").await.unwrap();
    assert!(removed <= 500 && place.is_some());
    assert_eq!(bench.assign(3, "ann", 100).await.items.len(), 100, "the pool is in use");
    let mut removed = removed;
    let mut place = place;
    while let Some(from) = place {
        let page = bench.at(4).dispenser_rebuild_end(slot, "", "r", &from).await.unwrap();
        removed += page.0;
        place = page.1;
    }
    assert_eq!(bench.pool().await.len() + 100, 2_500 - usize::try_from(removed).unwrap());
    let listed: Vec<&str> = listed.iter().map(Item::id).collect();
    assert!(bench.pool().await.iter().all(|id| listed.contains(&id.as_str())));
    bench.assert_sound_items().await;
}

async fn a_peek_counts_and_lists(bench: Bench) {
    assert_eq!(
        bench.item_counts(0).await,
        DispenserCounts { open: 0, assigned: 0, assignees: 0, first: None, is_rebuilding: false }
    );
    bench.add_items(0, &items(&["a", "b", "c"])).await;
    bench.assign(1_000, "ann", 1).await;
    let counts = bench.item_counts(5_000).await;
    assert_eq!((counts.open, counts.assigned, counts.assignees), (2, 1, 1));
    let (rank, now) = counts.first.unwrap();
    assert_eq!(now - rank, 5_000);
    let (slot, broker) = (&bench.queue, bench.at(5_000));
    let open = broker.dispenser_open(slot, TIMES, (1, 1)).await.unwrap();
    assert_eq!((open.len(), open[0].id.as_str(), open[0].returns), (1, "c", 0));
    let assigned = broker.dispenser_assigned(slot, TIMES, (0, 9)).await.unwrap();
    assert_eq!((assigned[0].id.as_str(), assigned[0].assignee.as_str()), ("a", "ann"));
    assert_eq!(assigned[0].until, instant(START + 61_000));
    let assignees = broker.dispenser_assignees(slot, TIMES, (0, 9)).await.unwrap();
    assert_eq!((assignees[0].name.as_str(), assignees[0].items), ("ann", 1));
    assert_eq!(assignees[0].until, instant(START + 11_000));
    let before = bench.dump().await;
    bench.item_counts(5_000).await;
    bench.assert_unchanged(&before).await;
}

async fn a_peek_bars_an_item_by_the_time_of_the_assignees_and_not_by_its_own(bench: Bench) {
    bench.add_items(0, &items(&["a"])).await;
    for at in (0..60_000).step_by(9_000) {
        assert_eq!(ids(&bench.assign(at, "ann", 1).await), ["a"]);
    }
    let own = HoldTimes { hold: ms(600_000), ..TIMES };
    let open = bench.at(60_000).dispenser_open(&bench.queue, own, (0, 9)).await.unwrap();
    assert_eq!(open[0].last_assignee.as_deref(), Some("ann"));
    for at in [61_000, 69_999] {
        assert_eq!(ids(&bench.assign(at, "ann", 1).await), [""; 0]);
    }
    assert_eq!(ids(&bench.assign(70_000, "ann", 1).await), ["a"]);
}

async fn a_newer_layout_is_left_alone(bench: Bench) {
    bench.add_items(0, &items(&["a", "b"])).await;
    bench.assign(1, "ann", 1).await;
    let _: u8 = bench.raw(cmd("HSET").arg(bench.key("dispenser")).arg("needs").arg(2)).await;
    let before = bench.dump().await;
    let (slot, by, broker) = (&bench.queue, bench.by("ann"), bench.at(99_000));
    let named = ["a".to_owned()];
    let newer = |refusal| assert_eq!(refusal, Refusal::Newer);
    newer(refusal(broker.dispenser_add(slot, "", &items(&["c"])).await));
    newer(refusal(broker.dispenser_assign(by, 1).await));
    newer(refusal(broker.dispenser_check(by).await));
    newer(refusal(broker.dispenser_done(by, &named).await));
    newer(refusal(broker.dispenser_return(by, &named).await));
    newer(refusal(broker.dispenser_rebuild_begin(slot, "", "r").await));
    newer(refusal(broker.dispenser_counts(slot, TIMES).await));
    bench.assert_unchanged(&before).await;
}

on_both![
    items_are_in_the_order_in_which_they_are_added,
    a_known_item_keeps_its_place_and_is_counted_where_it_is,
    a_priority_counts_as_minutes_of_waiting,
    an_item_that_is_added_again_moves_forward_and_never_back,
    an_item_can_wait_since_an_earlier_time,
    a_rebuild_lists_what_stays_and_adds_what_is_new,
    a_rebuild_that_another_replaced_or_that_took_too_long_is_refused,
    a_long_rebuild_brings_nothing_back,
    each_step_of_a_rebuild_can_be_named,
    the_end_of_a_rebuild_works_in_pages,
    a_peek_counts_and_lists,
    a_peek_bars_an_item_by_the_time_of_the_assignees_and_not_by_its_own,
    a_newer_layout_is_left_alone,
];
