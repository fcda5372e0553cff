//! `dispenser_done` and `dispenser_return`: items that leave their assignees.

use optimus_core::{
    Added,
    ItemPlace::{Assigned, Done, DoneByOther, Open, Unknown},
    broker::{ByAssignee, Refusal, RequestName},
};

use crate::{
    acts::refusal,
    bench::Bench,
    dispensers::{TIMES, ids, items, names},
};

async fn only_what_the_assignee_holds_is_done_and_a_repeat_answers_the_same(bench: Bench) {
    bench.add_items(0, &items(&["a", "b", "c", "d"])).await;
    bench.assign(1, "ann", 1).await;
    bench.assign(1, "bob", 2).await;
    bench.done_items(2, "bob", &["b"]).await;
    let named = ["a", "b", "c", "d", "e", "a"];
    for at in [3, 4] {
        let places = bench.done_items(at, "ann", &named).await;
        assert_eq!(places, [Done, DoneByOther, Assigned, Open, Unknown, Done]);
        bench.assert_sound_items().await;
    }
    assert_eq!(ids(&bench.check(5, "ann").await), [""; 0]);
    let counts = bench.item_counts(5).await;
    assert_eq!((counts.open, counts.assigned), (1, 1));
}

async fn an_item_that_was_lost_to_another_is_not_done_again(bench: Bench) {
    bench.add_items(0, &items(&["a"])).await;
    bench.assign(0, "ann", 1).await;
    assert_eq!(bench.done_items(10_000, "ann", &["a"]).await, [Open], "nobody has it yet");
    bench.assign(10_001, "bob", 1).await;
    assert_eq!(bench.done_items(10_002, "ann", &["a"]).await, [Assigned]);
    assert_eq!(bench.done_items(10_003, "bob", &["a"]).await, [Done]);
    assert_eq!(bench.done_items(10_004, "ann", &["a"]).await, [DoneByOther]);
    bench.assert_sound_items().await;
}

async fn a_finished_item_does_not_come_back_for_an_hour(bench: Bench) {
    bench.add_items(0, &items(&["a"])).await;
    bench.assign(0, "ann", 1).await;
    bench.done_items(0, "ann", &["a"]).await;
    let again = async |at| bench.add_items(at, &items(&["a"])).await;
    assert_eq!(again(1).await, Added { done: 1, ..Added::default() });
    assert_eq!(again(3_599_999).await, Added { done: 1, ..Added::default() });
    assert_eq!(again(7_200_000).await, Added { added: 1, ..Added::default() });
    assert_eq!(bench.pool().await, ["a"]);
}

async fn an_item_that_is_given_back_keeps_its_place_and_goes_to_another(bench: Bench) {
    bench.add_items(0, &items(&["a", "b", "c"])).await;
    bench.assign(1, "ann", 2).await;
    for at in [2, 3] {
        assert_eq!(bench.give_items(at, "ann", &["a", "x"]).await, [Open, Unknown]);
        assert_eq!(bench.pool().await, ["a", "c"]);
        bench.assert_sound_items().await;
    }
    assert_eq!(ids(&bench.assign(4, "ann", 3).await), ["b", "c"], "it is left to others");
    assert_eq!(ids(&bench.assign(5, "bob", 3).await), ["a"]);
    assert_eq!(bench.give_items(6, "ann", &["a", "b"]).await, [Assigned, Open]);
    bench.assert_sound_items().await;
}

async fn an_item_that_nobody_takes_is_assigned_again_after_the_hold_time(bench: Bench) {
    bench.add_items(0, &items(&["a"])).await;
    bench.assign(0, "ann", 1).await;
    bench.give_items(1_000, "ann", &["a"]).await;
    assert_eq!(ids(&bench.assign(10_999, "ann", 1).await), [""; 0]);
    assert_eq!(ids(&bench.assign(11_000, "ann", 1).await), ["a"]);
    let open = bench.at(30_000).dispenser_open(&bench.queue, TIMES, (0, 10)).await.unwrap();
    assert_eq!((open[0].returns, open[0].last_assignee.as_deref()), (2, Some("ann")));
}

async fn a_named_request_gets_the_same_answer_and_changes_nothing(bench: Bench) {
    bench.add_items(0, &items(&["a", "b"])).await;
    let by = ByAssignee { once: "0:one".into(), ..bench.by("ann") };
    let first = bench.at(1).dispenser_assign(by, 1).await.unwrap();
    bench.done_items(2, "ann", &["a"]).await;
    let before = bench.dump().await;
    assert_eq!(bench.at(3).dispenser_assign(by, 1).await.unwrap(), first, "not b");
    bench.assert_unchanged(&before).await;
    let other = bench.at(4).dispenser_assign(by, 2).await;
    assert_eq!(refusal(other), Refusal::Reused);
    let other = bench.at(4).dispenser_done(by, &names(&["a"])).await;
    assert_eq!(refusal(other), Refusal::Reused);
    bench.assert_unchanged(&before).await;
    let bob = ByAssignee { assignee: "bob", ..by };
    assert_eq!(ids(&bench.at(5).dispenser_assign(bob, 1).await.unwrap()), ["b"]);
    bench.assert_sound_items().await;
}

async fn every_verb_can_be_named(bench: Bench) {
    let (ann, bob) = (bench.by("ann"), bench.by("bob"));
    let add = async |at| bench.at(at).dispenser_add(&bench.queue, "n", &items(&["a", "b"])).await;
    assert_eq!(add(0).await.unwrap(), Added { added: 2, ..Added::default() });
    assert_eq!(add(1).await.unwrap(), Added { added: 2, ..Added::default() });
    bench.assign(2, "ann", 2).await;
    let done = ByAssignee { once: "d".into(), ..ann };
    let given = ByAssignee { once: "g".into(), ..ann };
    for at in [3, 20_000] {
        let places = bench.at(at).dispenser_done(done, &names(&["a"])).await.unwrap();
        assert_eq!(places, [Done]);
        let places = bench.at(at).dispenser_return(given, &names(&["b"])).await.unwrap();
        assert_eq!(places, [Open]);
        assert_eq!(ids(&bench.at(at).dispenser_assign(bob, 1).await.unwrap()), ["b"]);
    }
    bench.assert_sound_items().await;
}

/// An operator who releases an assignee has names of its own.
async fn a_name_of_another_caller_is_not_the_assignees(bench: Bench) {
    bench.add_items(0, &items(&["a", "b"])).await;
    let once = |caller| RequestName::of(caller, "0:1");
    let release = async |who: &str, caller| {
        let by = ByAssignee { once: once(caller), ..bench.by(who) };
        bench.at(1).dispenser_assign(by, 0).await
    };
    release("ann", None).await.unwrap();
    bench.assign(1, "ann", 1).await;
    release("ann", Some("desk")).await.unwrap();
    assert_eq!(bench.pool().await, ["a", "b"], "the operator has not used the name");
    bench.assign(1, "ann", 1).await;
    let before = bench.dump().await;
    release("ann", Some("desk")).await.unwrap();
    release("ann", None).await.unwrap();
    assert_eq!(refusal(release("bob", Some("desk")).await), Refusal::Reused, "another request");
    bench.assert_unchanged(&before).await;
    // No name of a caller or of a request makes one that belongs to another.
    bench.done_items(1, "ann", &["a"]).await;
    for (who, caller) in [("desk", None), ("ann", Some("ann")), ("eve", Some("4:desk"))] {
        bench.assign(2, who, 1).await;
        release(who, caller).await.unwrap();
        assert_eq!(bench.pool().await, ["b"], "{who}");
    }
    bench.assert_sound_items().await;
}

async fn names_and_items_may_have_any_characters(bench: Bench) {
    let strange = ["", " ", "\0", "a\nb", "{x}:1", "*", "é☃", "'\"\\", "1e400", "-inf", "OK"];
    let strange: Vec<&str> = strange.into_iter().filter(|text| !text.is_empty()).collect();
    bench.add_items(0, &items(&strange)).await;
    for (number, who) in strange.iter().enumerate() {
        let by = ByAssignee { once: (*who).into(), ..bench.by(who) };
        let held = bench.at(1).dispenser_assign(by, 1).await.unwrap();
        assert_eq!(bench.at(1).dispenser_assign(by, 1).await.unwrap(), held, "{who:?}");
        assert_eq!(ids(&held), [strange[number]], "{who:?}");
        assert_eq!(bench.done_items(2, who, &[strange[number]]).await, [Done]);
        let another = format!("{who}:");
        assert_eq!(bench.done_items(2, &another, &[strange[number]]).await, [DoneByOther]);
    }
    bench.assert_sound_items().await;
}

on_both![
    only_what_the_assignee_holds_is_done_and_a_repeat_answers_the_same,
    an_item_that_was_lost_to_another_is_not_done_again,
    a_finished_item_does_not_come_back_for_an_hour,
    an_item_that_is_given_back_keeps_its_place_and_goes_to_another,
    an_item_that_nobody_takes_is_assigned_again_after_the_hold_time,
    a_named_request_gets_the_same_answer_and_changes_nothing,
    every_verb_can_be_named,
    a_name_of_another_caller_is_not_the_assignees,
    names_and_items_may_have_any_characters,
];
