//! `checkpoint`: the holder of a post stores its position.

use optimus_core::broker::{BrokerError, Refusal};

use crate::{bench::Bench, rosters::RosterMember, world_rosters::holder};

fn is_stale<T>(answer: &Result<T, BrokerError>) -> bool {
    matches!(answer, Err(BrokerError::Refused(Refusal::Stale, _)))
}

async fn only_the_holder_under_its_fence_stores_a_position(bench: Bench) {
    let (mut one, mut two) = (RosterMember::new("w1", 1), RosterMember::new("w2", 1));
    bench.hold(0, &mut one).await;
    let (broker, granted) = (bench.at(1), one.granted(0));
    broker.checkpoint(&holder(&bench, &one.id, granted), "5").await.unwrap();
    let before = bench.dump().await;
    assert!(is_stale(&broker.checkpoint(&holder(&bench, &two.id, granted), "6").await));
    let late = (granted.0, granted.1 - 1);
    assert!(is_stale(&broker.checkpoint(&holder(&bench, &one.id, late), "6").await));
    bench.assert_unchanged(&before).await;

    bench.give(2, &mut one, &[granted]).await;
    assert!(is_stale(&broker.checkpoint(&holder(&bench, &one.id, granted), "6").await));
    bench.hold(3, &mut two).await;
    let next = holder(&bench, &two.id, two.granted(0));
    assert_eq!(broker.positions(&next.roster).await.unwrap().posts[&granted.0], "5");
    for _ in 0..2 {
        broker.checkpoint(&next, "7").await.unwrap();
    }
    assert_eq!(broker.positions(&next.roster).await.unwrap().posts[&granted.0], "7");
    bench.assert_sound().await;
}

on_both![only_the_holder_under_its_fence_stores_a_position];
