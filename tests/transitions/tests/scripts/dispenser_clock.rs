//! The scripts of a dispenser when the clock of Redis was set back.

use optimus_core::{
    Added,
    ItemPlace::{Done, DoneByOther, Open, Unknown},
    broker::{ByAssignee, Refusal},
    platform::instant,
};

use crate::{
    acts::refusal,
    bench::{Bench, START},
    dispensers::{LONG, TIMES, ids, items, numbered},
};

const HOUR: u64 = 3_600_000;

async fn the_items_of_a_silent_assignee_go_back_after_its_time(bench: Bench) {
    bench.add_items(HOUR, &items(&["a", "b"])).await;
    bench.assign(HOUR, "ann", 2).await;
    assert_eq!(ids(&bench.assign(10_000, "bob", 2).await), [""; 0], "ann has time left");
    bench.assert_sound_items().await;
    assert_eq!(ids(&bench.assign(19_999, "bob", 2).await), [""; 0]);
    assert_eq!(ids(&bench.assign(20_000, "bob", 2).await), ["a", "b"]);
    bench.assert_sound_items().await;
}

async fn an_item_that_is_kept_goes_back_after_its_time(bench: Bench) {
    bench.add_items(HOUR, &items(&["a", "b"])).await;
    bench.assign(HOUR, "ann", 1).await;
    let held = bench.check(0, "ann").await;
    assert_eq!(held.items[0].until, instant(START + 60_000), "the answer has the new time");
    bench.assert_sound_items().await;
    for at in (9_000..60_000).step_by(9_000) {
        assert_eq!(bench.check(at, "ann").await, held, "{at}");
    }
    assert_eq!(ids(&bench.check(60_000, "ann").await), [""; 0]);
    assert_eq!(bench.pool().await, ["a", "b"]);
    bench.assert_sound_items().await;
}

/// The change of a script counts, not that of the clock.
async fn items_leave_in_the_call_that_finds_the_clock_set_back(bench: Bench) {
    for (number, leave) in ["done", "return", "release", "fewer", "more", "peek"].iter().enumerate()
    {
        bench.restore(&std::collections::BTreeMap::new()).await;
        let at = HOUR * (1 + number as u64);
        bench.add_items(at, &items(&["a", "b", "c"])).await;
        bench.assign(at, "ann", 2).await;
        match *leave {
            "done" => assert_eq!(bench.done_items(0, "ann", &["a", "b"]).await, [Done, Done]),
            "return" => assert_eq!(bench.give_items(0, "ann", &["a", "b"]).await, [Open, Open]),
            "release" => assert_eq!(ids(&bench.assign(0, "ann", 0).await), [""; 0]),
            "fewer" => assert_eq!(ids(&bench.assign(0, "ann", 1).await), ["a"]),
            "more" => assert_eq!(ids(&bench.assign(0, "ann", 3).await), ["a", "b", "c"]),
            _ => assert_eq!(bench.item_counts(0).await.assigned, 2),
        }
        bench.assert_sound_items().await;
        assert_eq!(bench.item_counts(60_000).await.assigned, 0, "{leave}");
        bench.assert_sound_items().await;
    }
}

async fn who_gave_an_item_back_does_not_wait_longer_for_it(bench: Bench) {
    bench.add_items(HOUR, &items(&["a"])).await;
    bench.assign(HOUR, "ann", 1).await;
    bench.give_items(HOUR, "ann", &["a"]).await;
    assert_eq!(ids(&bench.assign(HOUR + 9_999, "ann", 1).await), [""; 0]);
    assert_eq!(ids(&bench.assign(0, "ann", 1).await), ["a"]);
    bench.assert_sound_items().await;
}

/// The command line and a program with shorter times must not end those of others.
async fn shorter_times_of_a_caller_move_nothing(bench: Bench) {
    bench.add_items(0, &items(&["a", "b"])).await;
    let long = ByAssignee { times: LONG, ..bench.by("ann") };
    let held = bench.at(0).dispenser_assign(long, 1).await.unwrap();
    let before = bench.dump().await;
    bench.item_counts(1).await;
    bench.assert_unchanged(&before).await;
    bench.assign(2, "bob", 1).await;
    bench.done_items(3, "bob", &["b"]).await;
    assert_eq!(bench.at(86_399_000).dispenser_check(long).await.unwrap(), held);
    bench.assert_sound_items().await;
}

async fn each_call_moves_a_bounded_number_of_items_and_those_of_its_caller(bench: Bench) {
    for (number, name) in ["w1", "w2", "w3"].into_iter().enumerate() {
        let at = HOUR + number as u64;
        bench.add_items(at, &numbered(name, 500)).await;
        bench.assign(at, name, 500).await;
    }
    let late = async || -> usize {
        let after = format!("({}", START + 60_000);
        let count = redis::cmd("ZCOUNT").arg(bench.key("deadlines")).arg(after).arg("+inf").clone();
        bench.raw(&count).await
    };
    let held = bench.check(0, "w3").await;
    assert!(held.items.iter().all(|item| item.until == instant(START + 60_000)));
    assert_eq!(late().await, 1_500 - 512 - 500, "those of w3 are the last ones");
    bench.assert_sound_items().await;
    bench.item_counts(0).await;
    assert_eq!(late().await, 0, "a peek moves all");
    bench.assert_sound_items().await;
}

async fn a_finished_item_does_not_come_back(bench: Bench) {
    let start = 10 * HOUR;
    for (at, item) in [(start, "a"), (start + HOUR, "b")] {
        bench.add_items(at, &items(&[item])).await;
        bench.assign(at, "ann", 1).await;
        bench.done_items(at, "ann", &[item]).await;
    }
    let again = Added { done: 2, ..Added::default() };
    for back in [HOUR, 2 * HOUR, 3 * HOUR, 9 * HOUR] {
        let at = start + HOUR - back;
        assert_eq!(bench.done_items(at, "ann", &["a", "b"]).await, [Done, Done], "{back}");
        assert_eq!(bench.done_items(at, "bob", &["b"]).await, [DoneByOther], "{back}");
        assert_eq!(bench.give_items(at, "ann", &["b"]).await, [Done], "{back}");
        assert_eq!(bench.add_items(at, &items(&["a", "b"])).await, again, "{back}");
    }
    bench.assert_sound_items().await;
}

/// A clock that was far ahead for a moment must not keep finished items.
async fn a_finished_item_is_forgotten_some_hours_after_the_clock_was_set_back(bench: Bench) {
    let ahead = 1_000 * HOUR;
    bench.add_items(ahead, &items(&["a"])).await;
    bench.assign(ahead, "ann", 1).await;
    bench.done_items(ahead, "ann", &["a"]).await;
    let finish_another = async |at: u64| {
        bench.add_items(at, &items(&["x"])).await;
        bench.assign(at, "ann", 1).await;
        bench.done_items(at, "ann", &["x"]).await;
    };
    finish_another(0).await;
    assert_eq!(bench.done_items(2 * HOUR - 1, "ann", &["a"]).await, [Done]);
    assert_eq!(bench.done_items(2 * HOUR, "ann", &["a"]).await, [Unknown]);
    // From now on, the clock counts again.
    finish_another(2 * HOUR).await;
    assert_eq!(bench.done_items(2 * HOUR, "bob", &["x"]).await, [DoneByOther]);
}

async fn a_rebuild_goes_on_for_an_hour_at_most(bench: Bench) {
    let (slot, start) = (&bench.queue, 5 * HOUR);
    bench.at(start).dispenser_rebuild_begin(slot, "", "r").await.unwrap();
    let page = async |at| bench.at(at).dispenser_rebuild_page(slot, "", "r", &items(&["a"])).await;
    page(start - 1_800_000).await.unwrap();
    assert_eq!(refusal(page(start - HOUR).await), Refusal::Stale);
    let counts = bench.at(0).dispenser_counts(slot, TIMES).await.unwrap();
    assert!(!counts.is_rebuilding);
}

on_both![
    the_items_of_a_silent_assignee_go_back_after_its_time,
    an_item_that_is_kept_goes_back_after_its_time,
    items_leave_in_the_call_that_finds_the_clock_set_back,
    who_gave_an_item_back_does_not_wait_longer_for_it,
    shorter_times_of_a_caller_move_nothing,
    each_call_moves_a_bounded_number_of_items_and_those_of_its_caller,
    a_finished_item_does_not_come_back,
    a_finished_item_is_forgotten_some_hours_after_the_clock_was_set_back,
    a_rebuild_goes_on_for_an_hour_at_most,
];
