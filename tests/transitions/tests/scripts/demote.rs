//! `demote`: rows that fail are set aside.

use optimus_core::broker::{BrokerError, Refusal};
use optimus_testkit::eventually;

use crate::{
    acts::ms,
    bench::{Bench, START},
    rosters::RosterMember,
    world_rosters::holder,
};

async fn a_row_that_fails_is_set_aside_for_longer_and_longer(bench: Bench) {
    let mut one = RosterMember::new("w1", 1);
    bench.hold(0, &mut one).await;
    let (roster, of) = (bench.roster(), holder(&bench, &one.id, one.granted(0)));
    let waits = (ms(1_000), ms(3_000));
    for (times, until) in [(1, 1_000), (2, 2_000), (3, 3_000), (4, 3_000)] {
        assert_eq!(bench.at(0).demote(&of, "7", waits).await.unwrap(), times);
        assert_eq!(bench.score("aside", "7").await, Some(START + until));
    }
    bench.at(0).demote(&of, "8", waits).await.unwrap();
    assert_eq!(bench.at(999).set_aside(&roster).await.unwrap(), ["7", "8"]);
    assert_eq!(bench.at(1_001).set_aside(&roster).await.unwrap(), ["7"]);
    bench.assert_sound().await;
    for _ in 0..2 {
        bench.at(0).forget_failures(&of, "7").await.unwrap();
    }
    assert_eq!(bench.at(0).demote(&of, "7", waits).await.unwrap(), 1, "it begins again");
}

async fn a_wrong_clock_of_the_machine_changes_nothing(bench: Bench) {
    let mut one = RosterMember::new("w1", 1);
    bench.hold(0, &mut one).await;
    let (broker, roster) = (bench.now(), bench.roster());
    let of = holder(&bench, &one.id, one.granted(0));
    let minute = 60_000;
    for row in ["7", "8"] {
        broker.demote(&of, row, (ms(minute), ms(minute))).await.unwrap();
    }
    broker.demote(&of, "over", (ms(0), ms(0))).await.unwrap();
    let now_ms = broker.now_ms().await.unwrap();
    let is_over = async || broker.now_ms().await.unwrap() > now_ms;
    eventually("a ms has passed", ms(10_000), is_over).await;
    for here_ms in [now_ms - 10 * minute, now_ms, now_ms + 10 * minute] {
        assert_eq!(broker.here(here_ms).set_aside(&roster).await.unwrap(), ["8", "7"]);
    }
}

async fn a_row_that_fails_no_more_is_forgotten_after_a_day(bench: Bench) {
    let mut one = RosterMember::new("w1", 1);
    bench.hold(0, &mut one).await;
    let of = holder(&bench, &one.id, one.granted(0));
    let waits = (ms(1_000), ms(1_000));
    bench.at(0).demote(&of, "old", waits).await.unwrap();
    bench.at(86_401_000).demote(&of, "new", waits).await.unwrap();
    assert_eq!(bench.field("failures", "old").await, None);
    assert_eq!(bench.field("failures", "new").await.as_deref(), Some("1"));
    bench.assert_sound().await;
}

async fn a_row_may_have_an_empty_key(bench: Bench) {
    let mut one = RosterMember::new("w1", 1);
    bench.hold(0, &mut one).await;
    let of = holder(&bench, &one.id, one.granted(0));
    let waits = (ms(1_000), ms(1_000));
    for (row, times) in [("", 1), ("7", 1), ("", 2), ("7", 2)] {
        assert_eq!(bench.at(0).demote(&of, row, waits).await.unwrap(), times, "{row:?}");
    }
    bench.at(0).forget_failures(&of, "7").await.unwrap();
    assert_eq!(bench.field("failures", "").await.as_deref(), Some("2"));
    bench.at(0).forget_failures(&of, "").await.unwrap();
    assert_eq!(bench.field("failures", "").await, None);
    bench.assert_sound().await;
}

async fn only_the_holder_counts_failures(bench: Bench) {
    let (mut one, two) = (RosterMember::new("w1", 1), RosterMember::new("w2", 1));
    bench.hold(0, &mut one).await;
    let of = holder(&bench, &two.id, one.granted(0));
    let before = bench.dump().await;
    let answer = bench.at(0).demote(&of, "7", (ms(1), ms(1))).await;
    assert!(matches!(answer, Err(BrokerError::Refused(Refusal::Stale, _))), "{answer:?}");
    bench.assert_unchanged(&before).await;
}

on_both![
    a_row_that_fails_is_set_aside_for_longer_and_longer,
    a_wrong_clock_of_the_machine_changes_nothing,
    a_row_that_fails_no_more_is_forgotten_after_a_day,
    a_row_may_have_an_empty_key,
    only_the_holder_counts_failures,
];
