//! `suspend`: posts that nobody may hold.

use optimus_core::broker::{BrokerError, Refusal};

use crate::{bench::Bench, rosters::RosterMember};

async fn a_suspended_post_is_given_back_and_not_granted(bench: Bench) {
    let mut one = RosterMember::new("w1", 3);
    bench.hold(0, &mut one).await;
    let (broker, roster) = (bench.at(100), bench.roster());
    assert!(broker.suspend(&roster, Some(1), "ann", "a repair").await.unwrap().is_changed);
    assert!(!broker.suspend(&roster, Some(1), "ann", "a repair").await.unwrap().is_changed);
    bench.hold_and_yield(200, &mut one).await;
    bench.hold(300, &mut one).await;
    assert_eq!(one.holds(), [0, 2]);
    let seen = broker.roster(&roster).await.unwrap();
    assert!(seen.suspended["1"].ends_with(" ann\na repair"), "{:?}", seen.suspended);
    bench.assert_sound().await;
    assert!(broker.resume_posts(&roster, Some(1)).await.unwrap().is_changed);
    bench.hold(400, &mut one).await;
    assert_eq!(one.holds(), [0, 1, 2]);
    assert!(!broker.resume_posts(&roster, Some(1)).await.unwrap().is_changed);
}

async fn all_posts_stop_and_go_on_together(bench: Bench) {
    let mut one = RosterMember::new("w1", 3);
    bench.hold(0, &mut one).await;
    let (broker, roster) = (bench.at(100), bench.roster());
    broker.suspend(&roster, Some(1), "ann", "").await.unwrap();
    broker.suspend(&roster, None, "ann", "").await.unwrap();
    assert_eq!(bench.hold_and_yield(200, &mut one).await.drain.len(), 3);
    assert_eq!(bench.hold(300, &mut one).await.start, []);
    assert!(broker.resume_posts(&roster, None).await.unwrap().is_changed);
    assert_eq!(bench.hold(400, &mut one).await.start.len(), 3, "single pauses end, too");
}

async fn a_roster_that_nobody_has_served_is_paused_and_the_answer_says_so(bench: Bench) {
    let (broker, roster) = (bench.at(0), bench.roster());
    let answer = broker.suspend(&roster, None, "ann", "").await.unwrap();
    assert_eq!((answer.is_changed, answer.is_known), (true, false));
    let mut one = RosterMember::new("w1", 3);
    assert_eq!(bench.hold(100, &mut one).await.start, [], "it finds the pause");
    let answer = broker.suspend(&roster, None, "ann", "").await.unwrap();
    assert_eq!((answer.is_changed, answer.is_known), (false, true));
    assert!(broker.resume_posts(&roster, None).await.unwrap().is_known);
    assert_eq!(bench.hold(200, &mut one).await.start.len(), 3);
}

async fn the_posts_that_go_on_are_shared(bench: Bench) {
    let (mut one, mut two) = (RosterMember::new("w1", 4), RosterMember::new("w2", 4));
    for index in [0, 1] {
        if index == 0 {
            bench.hold(0, &mut one).await;
        }
        bench.at(1).suspend(&bench.roster(), Some(index), "ann", "").await.unwrap();
    }
    for at in [1_000, 6_000, 12_000, 13_000] {
        bench.hold_and_yield(at, &mut one).await;
        bench.hold_and_yield(at, &mut two).await;
    }
    assert_eq!((one.holds().len(), two.holds().len()), (1, 1));
}

async fn there_is_no_post_beyond_the_count(bench: Bench) {
    let mut one = RosterMember::new("w1", 3);
    bench.hold(0, &mut one).await;
    let answer = bench.at(1).suspend(&bench.roster(), Some(3), "ann", "").await;
    let is_refused = matches!(&answer, Err(BrokerError::Refused(Refusal::Absent, n)) if n == "3");
    assert!(is_refused, "{answer:?}");
}

async fn a_new_count_ends_the_pauses_of_single_posts(bench: Bench) {
    let mut one = RosterMember::new("w1", 3);
    bench.hold(0, &mut one).await;
    let (broker, roster) = (bench.at(100), bench.roster());
    broker.suspend(&roster, Some(1), "ann", "").await.unwrap();
    broker.suspend(&roster, None, "ann", "").await.unwrap();
    broker.recount(&roster, 2).await.unwrap();
    let seen = broker.roster(&roster).await.unwrap();
    assert_eq!(seen.suspended.keys().collect::<Vec<_>>(), ["*"]);
}

on_both![
    a_suspended_post_is_given_back_and_not_granted,
    all_posts_stop_and_go_on_together,
    a_roster_that_nobody_has_served_is_paused_and_the_answer_says_so,
    the_posts_that_go_on_are_shared,
    there_is_no_post_beyond_the_count,
    a_new_count_ends_the_pauses_of_single_posts,
];
