//! `recount`: the next generation of posts.

use optimus_core::broker::{BrokerError, Refusal};

use crate::{bench::Bench, rosters::RosterMember, world_rosters::holder};

async fn a_roster_that_nobody_knows_has_no_count_to_change(bench: Bench) {
    for answer in
        [bench.at(0).recount(&bench.roster(), 3).await, bench.at(0).restart(&bench.roster()).await]
    {
        assert!(matches!(answer, Err(BrokerError::Refused(Refusal::Absent, _))), "{answer:?}");
    }
    assert_eq!(bench.names().await, [""; 0]);
}

async fn a_repeat_changes_nothing(bench: Bench) {
    let mut one = RosterMember::new("w1", 2);
    bench.hold(0, &mut one).await;
    let (broker, roster) = (bench.at(0), bench.roster());
    assert_eq!(broker.recount(&roster, 3).await.unwrap(), 2);
    let generation = broker.roster(&roster).await.unwrap().generation;
    assert!(generation > one.held.heard().generation, "also in the same ms");
    let before = bench.dump().await;
    assert_eq!(broker.recount(&roster, 3).await.unwrap(), 3);
    bench.assert_unchanged(&before).await;
    bench.assert_sound().await;
}

async fn positions_of_old_generations_stay_until_all_new_posts_have_one(bench: Bench) {
    let mut one = RosterMember::new("w1", 2);
    bench.hold(0, &mut one).await;
    let (broker, roster) = (bench.at(100), bench.roster());
    let old = one.granted(0);
    broker.checkpoint(&holder(&bench, &one.id, old), "5").await.unwrap();
    broker.recount(&roster, 3).await.unwrap();
    bench.hold_and_yield(200, &mut one).await;
    bench.hold(300, &mut one).await;
    let mut before = broker.positions(&roster).await.unwrap();
    assert_eq!(before.generations.values().copied().collect::<Vec<_>>(), [2, 3]);
    for index in 0..3 {
        assert_eq!(before.posts.get(&old.0).map(String::as_str), Some("5"), "before {index}");
        let granted = one.granted(index);
        broker.checkpoint(&holder(&bench, &one.id, granted), "7").await.unwrap();
        before = broker.positions(&roster).await.unwrap();
    }
    assert_eq!((before.posts.get(&old.0), before.posts.len()), (None, 3));
    assert_eq!(before.generations.values().copied().collect::<Vec<_>>(), [3]);
    bench.assert_sound().await;
}

async fn a_restart_forgets_positions_and_refuses_those_of_old_holders(bench: Bench) {
    let mut one = RosterMember::new("w1", 2);
    bench.hold(0, &mut one).await;
    let (broker, roster) = (bench.at(100), bench.roster());
    let old = holder(&bench, &one.id, one.granted(0));
    broker.checkpoint(&old, "5").await.unwrap();
    assert_eq!(broker.restart(&roster).await.unwrap(), 2);
    let late = broker.checkpoint(&old, "6").await;
    assert!(matches!(late, Err(BrokerError::Refused(Refusal::Stale, _))), "{late:?}");
    let positions = broker.positions(&roster).await.unwrap();
    assert_eq!((positions.posts.len(), positions.generations.len()), (0, 1));
    let begun = positions.generations.keys().next().copied();
    assert_eq!(positions.restarted, begun, "for positions in other databases");
    bench.hold_and_yield(200, &mut one).await;
    bench.hold(300, &mut one).await;
    assert_eq!(one.holds(), [0, 1]);
    assert!(one.granted(0).0.generation > old.granted.0.generation);
}

async fn a_restart_keeps_each_pause_and_another_count_ends_those_of_single_posts(bench: Bench) {
    let mut one = RosterMember::new("w1", 3);
    bench.hold(0, &mut one).await;
    let (broker, roster) = (bench.at(100), bench.roster());
    let stopped = async || -> Vec<String> {
        broker.roster(&roster).await.unwrap().suspended.into_keys().collect()
    };
    broker.suspend(&roster, Some(1), "ann", "its rows are wrong").await.unwrap();
    broker.suspend(&roster, None, "ann", "a repair").await.unwrap();
    broker.restart(&roster).await.unwrap();
    assert_eq!(stopped().await, ["*", "1"], "the same rows are wrong");
    broker.recount(&roster, 4).await.unwrap();
    assert_eq!(stopped().await, ["*"], "a number belongs to other rows");
    bench.assert_sound().await;
}

async fn the_positions_of_sixteen_generations_can_be_needed(bench: Bench) {
    let mut one = RosterMember::new("w1", 1);
    bench.hold(0, &mut one).await;
    for round in 0_u16..20 {
        bench.at(100).recount(&bench.roster(), 2 + round).await.unwrap();
    }
    let generations = bench.now().positions(&bench.roster()).await.unwrap().generations;
    assert_eq!(generations.len(), 16);
    assert_eq!(generations.values().last(), Some(&21));
}

on_both![
    a_roster_that_nobody_knows_has_no_count_to_change,
    a_repeat_changes_nothing,
    positions_of_old_generations_stay_until_all_new_posts_have_one,
    a_restart_forgets_positions_and_refuses_those_of_old_holders,
    a_restart_keeps_each_pause_and_another_count_ends_those_of_single_posts,
    the_positions_of_sixteen_generations_can_be_needed,
];
