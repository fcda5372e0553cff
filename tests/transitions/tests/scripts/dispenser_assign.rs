//! `dispenser_assign` and `dispenser_check`: who holds which items, and for how long.

use optimus_core::{
    HELD_MAX, Item,
    ItemPlace::{Assigned, Done, Open},
    broker::ByAssignee,
};

use crate::{
    acts::ms,
    bench::Bench,
    dispensers::{LONG, ids, items, numbered},
};

async fn an_assignee_gets_the_first_items_and_a_repeat_assigns_nothing_more(bench: Bench) {
    bench.add_items(0, &items(&["a", "b", "c"])).await;
    let first = bench.assign(1, "ann", 2).await;
    assert_eq!(ids(&first), ["a", "b"]);
    assert_eq!(bench.assign(1, "ann", 2).await, first);
    assert_eq!(bench.pool().await, ["c"]);
    bench.assert_sound_items().await;
}

async fn an_assignee_is_topped_up_and_what_is_too_much_goes_back_to_its_place(bench: Bench) {
    bench.add_items(0, &items(&["a", "b", "c", "d"])).await;
    assert_eq!(ids(&bench.assign(1, "ann", 1).await), ["a"]);
    assert_eq!(ids(&bench.assign(2, "ann", 3).await), ["a", "b", "c"]);
    assert_eq!(ids(&bench.assign(3, "ann", 1).await), ["a"]);
    assert_eq!(bench.pool().await, ["b", "c", "d"]);
    assert_eq!(ids(&bench.assign(4, "ann", 2).await), ["a", "b"], "they were not given back");
    bench.assert_sound_items().await;
}

async fn two_assignees_never_hold_the_same_item(bench: Bench) {
    bench.add_items(0, &items(&["a", "b", "c"])).await;
    assert_eq!(ids(&bench.assign(1, "ann", 2).await), ["a", "b"]);
    assert_eq!(ids(&bench.assign(1, "bob", 2).await), ["c"]);
    assert_eq!(ids(&bench.assign(1, "eve", 2).await), [""; 0]);
    bench.assert_sound_items().await;
}

async fn none_gives_all_back_and_the_assignee_leaves(bench: Bench) {
    bench.add_items(0, &items(&["a", "b"])).await;
    bench.assign(1, "ann", 2).await;
    assert_eq!(bench.item_counts(2).await.assignees, 1);
    assert_eq!(ids(&bench.assign(2, "ann", 0).await), [""; 0]);
    let counts = bench.item_counts(3).await;
    assert_eq!((counts.open, counts.assigned, counts.assignees), (2, 0, 0));
    assert_eq!(ids(&bench.assign(4, "ann", 2).await), ["a", "b"], "it may have them again");
    bench.assert_sound_items().await;
}

async fn the_items_of_a_silent_assignee_go_back_to_their_places(bench: Bench) {
    bench.add_items(0, &items(&["a", "b"])).await;
    bench.assign(0, "ann", 2).await;
    bench.add_items(1, &items(&["c"])).await;
    assert_eq!(ids(&bench.assign(9_999, "bob", 1).await), ["c"]);
    assert_eq!(ids(&bench.assign(10_000, "bob", 2).await), ["a", "c"], "in the order of the pool");
    assert_eq!(bench.pool().await, ["b"]);
    assert_eq!(ids(&bench.check(10_001, "ann").await), [""; 0]);
    assert_eq!(ids(&bench.assign(10_002, "ann", 9).await), ["b"], "it may have them again");
    bench.assert_sound_items().await;
}

async fn each_call_of_an_assignee_renews_it(bench: Bench) {
    bench.add_items(0, &items(&["a", "b", "c"])).await;
    bench.assign(0, "ann", 3).await;
    bench.check(9_000, "ann").await;
    bench.done_items(18_000, "ann", &["a"]).await;
    bench.give_items(27_000, "ann", &["b"]).await;
    bench.assign(36_000, "ann", 1).await;
    assert_eq!(ids(&bench.check(45_999, "ann").await), ["c"]);
    bench.assert_sound_items().await;
}

async fn no_call_renews_the_time_of_an_item(bench: Bench) {
    bench.add_items(0, &items(&["a", "b"])).await;
    let until = bench.assign(0, "ann", 1).await.items[0].until;
    for at in (9_000..60_000).step_by(9_000) {
        assert_eq!(bench.check(at, "ann").await.items[0].until, until);
        assert_eq!(bench.assign(at, "ann", 1).await.items[0].until, until);
    }
    assert_eq!(ids(&bench.check(60_000, "ann").await), [""; 0]);
    assert_eq!(bench.done_items(60_000, "ann", &["a"]).await, [Open]);
    assert_eq!(bench.pool().await, ["a", "b"]);
    bench.assert_sound_items().await;
}

async fn who_kept_an_item_too_long_leaves_it_to_others_for_a_while(bench: Bench) {
    bench.add_items(0, &items(&["a", "b"])).await;
    bench.assign(0, "ann", 1).await;
    for at in [9_000, 18_000, 27_000, 36_000, 45_000, 54_000] {
        bench.check(at, "ann").await;
    }
    assert_eq!(ids(&bench.assign(60_000, "ann", 1).await), ["b"], "in the call that finds it");
    assert_eq!(ids(&bench.assign(69_999, "ann", 2).await), ["b"]);
    assert_eq!(ids(&bench.assign(70_000, "ann", 2).await), ["a", "b"], "nobody else took it");
    bench.assert_sound_items().await;
}

async fn an_item_of_another_that_was_kept_too_long_is_free_at_once(bench: Bench) {
    bench.add_items(0, &items(&["a"])).await;
    let mut by = bench.by("ann");
    by.times.hold = LONG.hold;
    bench.at(0).dispenser_assign(by, 1).await.unwrap();
    assert_eq!(ids(&bench.assign(59_999, "bob", 1).await), [""; 0]);
    assert_eq!(ids(&bench.assign(60_000, "bob", 1).await), ["a"]);
    assert_eq!(bench.done_items(60_001, "ann", &["a"]).await, [Assigned]);
    bench.assert_sound_items().await;
}

async fn an_item_that_an_assignee_may_not_have_hides_no_other(bench: Bench) {
    bench.add_items(0, &numbered("i", 300)).await;
    let held = bench.assign(0, "ann", 290).await;
    let first: Vec<&str> = ids(&held);
    assert_eq!(bench.give_items(1, "ann", &first).await, vec![Open; 290]);
    let rest = bench.assign(2, "ann", 20).await;
    assert_eq!(ids(&rest)[0], "i0290");
    assert_eq!(rest.items.len(), 10);
    assert_eq!(ids(&bench.assign(2, "bob", 1).await), ["i0000"]);
    bench.assert_sound_items().await;
}

async fn one_call_takes_back_a_bounded_number_of_buckets(bench: Bench) {
    let names: Vec<String> = (0..40).map(|number| format!("w{number:02}")).collect();
    bench.add_items(0, &numbered("i", 40)).await;
    for name in &names {
        bench.assign(0, name, 1).await;
    }
    bench.check(20_000, "other").await;
    assert_eq!(bench.pool().await.len(), 16);
    bench.check(20_000, "other").await;
    assert_eq!(bench.pool().await.len(), 32);
    // The bucket of the caller is taken back in any case.
    assert_eq!(ids(&bench.check(20_000, "w39").await), [""; 0]);
    assert_eq!(bench.pool().await.len(), 40);
    let counts = bench.item_counts(20_000).await;
    assert_eq!((counts.open, counts.assigned, counts.assignees), (40, 0, 2));
    bench.assert_sound_items().await;
}

async fn one_call_takes_back_a_bounded_number_of_items(bench: Bench) {
    for (name, at) in [("w1", 0), ("w2", 1), ("w3", 2)] {
        bench.add_items(at, &numbered(name, HELD_MAX)).await;
        bench.assign(at, name, HELD_MAX).await;
    }
    bench.check(20_000, "other").await;
    assert_eq!(bench.pool().await.len(), 512, "one bucket and a part of the next");
    bench.assert_sound_items().await;
    bench.check(20_000, "other").await;
    assert_eq!(bench.pool().await.len(), 1_024);
    assert_eq!(bench.item_counts(20_000).await.open, 1_500, "a peek is right");
    bench.assert_sound_items().await;
}

async fn an_item_whose_time_is_over_is_not_its_holders_even_beyond_the_bound(bench: Bench) {
    let mut by = bench.by("");
    by.times.hold = LONG.hold;
    for (name, at) in [("w1", 0), ("w2", 1), ("w3", 2)] {
        bench.add_items(at, &numbered(name, HELD_MAX)).await;
        let by = ByAssignee { assignee: name, ..by };
        bench.at(at).dispenser_assign(by, HELD_MAX).await.unwrap();
    }
    assert_eq!(bench.done_items(70_000, "w3", &["w30499"]).await, [Open]);
    assert_eq!(ids(&bench.check(70_000, "w3").await), [""; 0]);
    assert_eq!(bench.item_counts(70_000).await.open, 1_500);
    bench.assert_sound_items().await;
}

async fn items_of_one_rank_are_handed_out_by_their_names(bench: Bench) {
    let pool = bench.key("pool");
    let _: usize = bench.raw(redis::cmd("ZADD").arg(&pool).arg(&[("5", "c"), ("5", "d")])).await;
    assert_eq!(ids(&bench.assign(0, "ann", 1).await), ["c"]);
    assert_eq!(bench.pool().await, ["d"]);
    let _: usize = bench.raw(redis::cmd("ZADD").arg(&pool).arg(&[("5", "a"), ("5", "b")])).await;
    assert_eq!(ids(&bench.assign(1, "ann", 3).await), ["a", "b", "c"]);
    assert_eq!(ids(&bench.check(2, "ann").await), ["a", "b", "c"]);
    assert_eq!(bench.pool().await, ["d"]);
    bench.assert_sound_items().await;
}

async fn a_check_answers_what_is_held_in_the_order_of_the_pool(bench: Bench) {
    let ranked =
        [Item::new("late"), Item::new("soon").priority(9), Item::new("first").priority(10)];
    bench.add_items(0, &ranked).await;
    let held = bench.assign(1, "ann", 3).await;
    assert_eq!(ids(&held), ["first", "soon", "late"]);
    assert_eq!(held.hold, ms(10_000));
    assert_eq!(bench.check(2, "ann").await, held);
    assert!(held.are_exactly(["late", "first", "soon"]) && !held.are_exactly(["late", "first"]));
    assert_eq!(bench.done_items(3, "ann", &["soon"]).await, [Done]);
    assert_eq!(ids(&bench.check(4, "ann").await), ["first", "late"]);
}

on_both![
    an_assignee_gets_the_first_items_and_a_repeat_assigns_nothing_more,
    an_assignee_is_topped_up_and_what_is_too_much_goes_back_to_its_place,
    two_assignees_never_hold_the_same_item,
    none_gives_all_back_and_the_assignee_leaves,
    the_items_of_a_silent_assignee_go_back_to_their_places,
    each_call_of_an_assignee_renews_it,
    no_call_renews_the_time_of_an_item,
    who_kept_an_item_too_long_leaves_it_to_others_for_a_while,
    an_item_of_another_that_was_kept_too_long_is_free_at_once,
    an_item_that_an_assignee_may_not_have_hides_no_other,
    one_call_takes_back_a_bounded_number_of_buckets,
    one_call_takes_back_a_bounded_number_of_items,
    an_item_whose_time_is_over_is_not_its_holders_even_beyond_the_bound,
    items_of_one_rank_are_handed_out_by_their_names,
    a_check_answers_what_is_held_in_the_order_of_the_pool,
];
