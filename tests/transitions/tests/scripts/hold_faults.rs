//! `hold` after lost answers, an outage, a loss of writes, and a clock that is set.

use optimus_core::{
    Changes, Stay,
    broker::{BrokerError, Refusal},
};
use redis::cmd;

use crate::{acts::ms, bench::Bench, rosters::RosterMember};

async fn a_grant_whose_answer_was_lost_is_given_again_under_a_larger_fence(bench: Bench) {
    let mut member = RosterMember::new("w1", 1);
    let lost = bench.ask(0, &member).await.unwrap();
    let changes = bench.hold(0, &mut member).await;
    assert_eq!(changes.start.len(), 1);
    assert!(member.fence(0) > lost.posts[0].1, "the first grant may have begun");
}

async fn a_late_repeat_of_an_old_heartbeat_takes_no_post_from_another(bench: Bench) {
    let (mut one, mut two) = (RosterMember::new("w1", 1), RosterMember::new("w2", 1));
    bench.hold(0, &mut one).await;
    let shown = one.held.shown();
    bench.hold(0, &mut one).await;
    let old = one.granted(0);
    bench.give(100, &mut one, &[old]).await;
    bench.hold(200, &mut two).await;
    let fence = two.fence(0);
    // What knows the numbers of the heartbeats is lost, too.
    let () = bench.raw(cmd("HDEL").arg(bench.key("worker:w1")).arg("beat")).await;
    let mut repeat = RosterMember::new("w1", 1);
    let posts: Vec<_> = shown.iter().map(|(post, fence)| (*post, *fence, Stay::Keep)).collect();
    let heard = one.held.heard();
    repeat.held.answered((ms(0), ms(0)), repeat.lease, heard, &posts);
    let late = bench.ask(300, &repeat).await.unwrap();
    assert_eq!(late.posts, [], "another holds it under a later fence");
    bench.hold(400, &mut two).await;
    assert_eq!((two.holds(), two.fence(0)), (vec![0], fence));
}

async fn a_heartbeat_that_arrives_after_a_later_one_frees_nothing(bench: Bench) {
    let (mut one, mut two) = (RosterMember::new("w1", 1), RosterMember::new("w2", 1));
    // The first heartbeat names nothing, and arrives late. The second one gets the post.
    let late = RosterMember::new("w1", 1);
    *one.beats.get_mut() = 1;
    bench.hold(0, &mut one).await;
    let old = one.granted(0);
    bench.at(1_000).recount(&bench.roster(), 2).await.unwrap();
    let before = bench.dump().await;
    // The second call has the number of the one that was answered, as a repeat of it would have.
    for at in [2_000, 2_050] {
        let refused = bench.ask(at, &late).await;
        assert!(matches!(refused, Err(BrokerError::Refused(Refusal::Stale, _))), "{refused:?}");
        bench.assert_unchanged(&before).await;
    }
    assert_eq!(bench.holder_of(old.0).await, Some(("w1".into(), old.1)));
    assert_eq!(bench.hold(2_100, &mut two).await.start, [], "the old post is still worked on");
    assert_eq!(bench.hold(2_200, &mut one).await.drain, [old], "it was not lost");
    bench.give(2_300, &mut one, &[old]).await;
    bench.hold(2_400, &mut two).await;
    assert_eq!(two.holds().len(), 1);
    bench.assert_sound().await;
}

async fn an_unknown_roster_grants_nothing_for_the_longest_lease(bench: Bench) {
    let mut one = RosterMember::new("w1", 2);
    one.quiet = one.lease;
    let holding = bench.ask(0, &one).await.unwrap();
    assert_eq!((holding.posts, holding.soon), (vec![], Some(ms(15_000))));
    assert_eq!(bench.ask(14_999, &one).await.unwrap().posts, []);
    assert_eq!(bench.hold(15_000, &mut one).await.start.len(), 2);
}

async fn holders_keep_what_a_flush_has_lost(bench: Bench) {
    let (mut one, mut two) = (RosterMember::new("w1", 2), RosterMember::new("w2", 2));
    (one.quiet, two.quiet) = (one.lease, two.lease);
    for at in [0, 15_000, 20_000, 25_000, 30_000] {
        bench.hold_and_yield(at, &mut one).await;
        bench.hold_and_yield(at, &mut two).await;
    }
    assert_eq!((one.holds(), two.holds()), (vec![0], vec![1]));
    bench.restore(&crate::dump::Dump::new()).await;
    let before = (one.held.shown(), one.held.heard());
    assert_eq!(bench.hold(31_000, &mut one).await, Changes::default(), "not even the free one");
    assert_eq!((one.held.shown(), one.held.heard()), before, "the generation survives, too");
    let mut new = RosterMember::new("w3", 9);
    new.quiet = new.lease;
    assert_eq!(bench.hold(31_500, &mut new).await, Changes::default(), "all is quiet");
    assert_eq!(bench.hold(32_000, &mut two).await, Changes::default());
    assert_eq!(new.held.heard().count, 2, "the count in its code does not matter");
    bench.assert_sound().await;
}

async fn after_a_flush_a_new_member_changes_nothing_for_the_holders(bench: Bench) {
    let (mut one, mut two) = (RosterMember::new("w1", 2), RosterMember::new("w2", 2));
    for at in [0, 5_000, 11_000, 15_000] {
        bench.hold_and_yield(at, &mut one).await;
        bench.hold_and_yield(at, &mut two).await;
    }
    bench.at(16_000).recount(&bench.roster(), 3).await.unwrap();
    for at in [16_000, 16_100, 16_200] {
        bench.hold_and_yield(at, &mut one).await;
        bench.hold_and_yield(at, &mut two).await;
    }
    assert_eq!(one.holds().len() + two.holds().len(), 3);
    bench.restore(&crate::dump::Dump::new()).await;
    let mut new = RosterMember::new("w3", 9);
    new.quiet = new.lease;
    assert_eq!(bench.hold(17_000, &mut new).await, Changes::default(), "all is quiet");
    assert_eq!(new.held.heard().generation, 0, "others may know of one");
    bench.assert_sound().await;
    let before = (one.held.shown(), one.held.heard(), two.held.shown(), two.held.heard());
    for at in [18_000, 19_000] {
        assert_eq!(bench.hold(at, &mut one).await, Changes::default());
        assert_eq!(bench.hold(at, &mut two).await, Changes::default());
    }
    let after = (one.held.shown(), one.held.heard(), two.held.shown(), two.held.heard());
    assert_eq!(before, after, "they keep their posts, and the count that an operator has set");
    bench.hold(20_000, &mut new).await;
    assert_eq!((new.held.heard(), new.holds()), (one.held.heard(), vec![]));
    bench.assert_sound().await;
}

async fn the_quiet_after_a_flush_is_as_long_as_the_longest_lease_that_is_heard_later(bench: Bench) {
    let (mut one, mut slow) = (RosterMember::new("w1", 1), RosterMember::new("w2", 1));
    slow.lease = ms(60_000);
    bench.hold(0, &mut slow).await;
    bench.hold(1_000, &mut one).await;
    bench.restore(&crate::dump::Dump::new()).await;
    let mut new = RosterMember::new("w3", 1);
    new.quiet = new.lease;
    let asked = bench.ask(2_000, &new).await.unwrap();
    assert_eq!((asked.soon, asked.heard.longest), (Some(ms(15_000)), ms(15_000)));
    bench.hold(3_000, &mut one).await;
    let asked = bench.ask(16_900, &new).await.unwrap();
    assert_eq!(asked.soon, Some(ms(62_000 - 16_900)), "the slow one holds the post");
    assert_eq!(bench.hold(61_000, &mut one).await.start, []);
    assert_eq!(bench.hold(62_000, &mut one).await.start.len(), 1);
}

async fn an_operator_changes_and_pauses_a_roster_before_its_first_grant(bench: Bench) {
    let mut one = RosterMember::new("w1", 2);
    one.quiet = one.lease;
    bench.hold(0, &mut one).await;
    let (broker, roster) = (bench.at(1_000), bench.roster());
    assert_eq!(broker.recount(&roster, 3).await.unwrap(), 2);
    assert!(broker.suspend(&roster, Some(2), "ann", "a repair").await.unwrap().is_changed);
    assert_eq!(bench.hold(2_000, &mut one).await, Changes::default());
    bench.hold(15_000, &mut one).await;
    assert_eq!((one.holds(), one.held.heard().count), (vec![0, 1], 3));
    bench.assert_sound().await;
}

async fn after_a_flush_all_is_quiet_for_the_longest_lease_that_was_heard(bench: Bench) {
    let (mut one, mut slow) = (RosterMember::new("w1", 1), RosterMember::new("w2", 1));
    (one.quiet, slow.lease) = (one.lease, ms(60_000));
    bench.hold(0, &mut slow).await;
    bench.hold(1_000, &mut one).await;
    bench.restore(&crate::dump::Dump::new()).await;
    assert_eq!(bench.hold(2_000, &mut one).await.start, [], "the slow one holds the post");
    assert_eq!(bench.hold(61_000, &mut one).await.start, []);
    assert_eq!(bench.hold(62_000, &mut one).await.start.len(), 1);
}

async fn a_later_fence_counts_if_redis_has_lost_writes(bench: Bench) {
    let (mut one, mut two) = (RosterMember::new("w1", 1), RosterMember::new("w2", 1));
    bench.hold(0, &mut one).await;
    let old = bench.dump().await;
    let granted = one.granted(0);
    bench.give(1_000, &mut one, &[granted]).await;
    bench.hold(2_000, &mut two).await;
    bench.restore(&old).await;
    let before = two.granted(0);
    assert_eq!(bench.hold(3_000, &mut two).await, Changes::default(), "it keeps its post");
    assert_eq!(two.granted(0), before);
    assert_eq!(bench.hold(3_100, &mut one).await, Changes::default());
    assert_eq!(bench.holder_of(before.0).await, Some(("w2".into(), before.1)));
    bench.give(3_200, &mut two, &[before]).await;
    bench.hold(3_300, &mut one).await;
    assert!(one.fence(0) > before.1, "fences never go back");
    bench.assert_sound().await;
}

/// Two members with a lease of 15 s. The clock of the first one stops with it, at 0, so it believes
/// that its lease goes on. The other one takes all posts.
async fn stopped_with_its_clock(bench: &Bench, posts: u16) -> [RosterMember; 2] {
    let (mut one, mut two) = (RosterMember::new("w1", posts), RosterMember::new("w2", posts));
    bench.hold(0, &mut one).await;
    for at in [1_000, 6_000, 11_000, 15_001] {
        bench.hold(at, &mut two).await;
    }
    assert_eq!((one.holds(), two.holds()), ((0..posts).collect(), (0..posts).collect()));
    [one, two]
}

async fn a_member_that_was_suspended_with_its_clock_gets_no_earlier_fence_back(bench: Bench) {
    let [mut one, two] = stopped_with_its_clock(&bench, 2).await;
    let (old, later) = (one.held.shown(), two.held.shown());
    let left = bench.at(16_000).leave_roster(&bench.roster(), &two.id, &later).await;
    assert_eq!(left.unwrap(), 0);
    let mut changes = bench.hold(17_000, &mut one).await;
    changes.stop.sort_unstable();
    assert_eq!((changes.stop, changes.start.len()), (old, 2));
    assert!(one.fence(0) > two.fence(0) && one.fence(1) > two.fence(1));
    bench.assert_sound().await;
}

async fn a_member_that_slept_through_a_generation_gets_none_of_its_posts_back(bench: Bench) {
    let [mut one, mut two] = stopped_with_its_clock(&bench, 2).await;
    let old = one.held.shown();
    bench.at(16_000).recount(&bench.roster(), 1).await.unwrap();
    bench.hold_and_yield(16_100, &mut two).await;
    bench.hold(16_200, &mut two).await;
    let later = two.granted(0);
    let left = bench.at(16_300).leave_roster(&bench.roster(), &two.id, &[later]).await;
    assert_eq!(left.unwrap(), 0);
    // Nobody has held the second post since.
    let changes = bench.hold(17_000, &mut one).await;
    assert_eq!((changes.stop, changes.drain), (old, vec![]));
    assert_eq!(one.holds(), [0]);
    assert!(one.granted(0).0 == later.0 && one.fence(0) > later.1);
    bench.assert_sound().await;
}

async fn a_post_that_was_given_back_is_not_held_again_by_a_late_heartbeat(bench: Bench) {
    let (mut one, mut two) = (RosterMember::new("w1", 1), RosterMember::new("w2", 1));
    bench.hold(0, &mut one).await;
    let granted = one.granted(0);
    let shown = one.held.shown();
    let left = bench.at(1_000).leave_roster(&bench.roster(), &one.id, &shown).await;
    assert_eq!(left.unwrap(), 0);
    one.is_leaving = true;
    let late = bench.ask(1_100, &one).await.unwrap();
    assert_eq!(late.posts, [], "{granted:?} was given back");
    bench.hold(1_200, &mut two).await;
    assert!(two.fence(0) > granted.1);
    bench.assert_sound().await;
}

async fn nobody_loses_posts_because_of_an_outage(bench: Bench) {
    let (mut one, mut two) = (RosterMember::new("w1", 2), RosterMember::new("w2", 2));
    for at in [0, 5_000, 11_000, 15_000] {
        bench.hold_and_yield(at, &mut one).await;
        bench.hold_and_yield(at, &mut two).await;
    }
    let before = [one.fence(0), two.fence(1)];
    // Both stop at the end of their leases, and show nothing.
    (one.held, two.held) = Default::default();
    bench.hold(100_000, &mut one).await;
    assert_eq!(one.holds(), [0], "the other one has a whole lease to come back");
    bench.hold(114_000, &mut two).await;
    assert_eq!(two.holds(), [1]);
    assert!(one.fence(0) > before[0] && two.fence(1) > before[1]);
}

async fn a_clock_that_is_set_back_stops_nothing(bench: Bench) {
    let hour = 3_600_000;
    let (mut one, mut two) = (RosterMember::new("w1", 2), RosterMember::new("w2", 2));
    bench.hold(hour, &mut one).await;
    let fence = one.fence(0);
    let ask = bench.ask(0, &one).await.unwrap();
    assert_eq!(ask.posts.len(), 2);
    bench.hold(1_000, &mut two).await;
    for at in [6_000, 11_000, 12_000] {
        let holding = bench.ask(at, &one).await.unwrap();
        let posts: Vec<_> = holding.posts.iter().filter(|post| post.2 == Stay::Drop).collect();
        if let [(post, fence, _)] = posts[..] {
            bench.give(at, &mut one, &[(*post, *fence)]).await;
        }
    }
    bench.hold(13_000, &mut two).await;
    assert_eq!(two.holds().len(), 1, "the new one settles by the clock that is set back");
    assert!(two.fence(two.holds()[0]) > fence);
    bench.assert_sound().await;
}

async fn posts_of_the_next_generation_wait_for_those_of_the_last(bench: Bench) {
    let (mut one, mut two) = (RosterMember::new("w1", 2), RosterMember::new("w2", 2));
    for at in [0, 5_000, 11_000, 15_000] {
        bench.hold_and_yield(at, &mut one).await;
        bench.hold_and_yield(at, &mut two).await;
    }
    assert_eq!(bench.at(16_000).recount(&bench.roster(), 3).await.unwrap(), 2);
    let old = two.granted(1);
    let changes = bench.hold_and_yield(16_100, &mut one).await;
    assert_eq!((changes.drain.len(), changes.start.len()), (1, 0), "the other one has an old post");
    let waiting = bench.ask(16_200, &one).await.unwrap();
    assert_eq!((waiting.posts, waiting.soon), (vec![], Some(ms(1_000))));
    assert_eq!(bench.hold(16_300, &mut two).await.drain, [old]);
    assert_eq!(bench.hold(16_400, &mut one).await.start, []);
    bench.give(16_500, &mut two, &[old]).await;
    bench.hold(16_600, &mut one).await;
    bench.hold(16_700, &mut two).await;
    assert_eq!(one.holds().len() + two.holds().len(), 3);
    assert!(one.granted(0).0.generation > old.0.generation);
    bench.assert_sound().await;
}

async fn a_generation_that_redis_has_lost_comes_back_with_its_members(bench: Bench) {
    let mut one = RosterMember::new("w1", 2);
    bench.hold(0, &mut one).await;
    let old = bench.dump().await;
    bench.at(100).recount(&bench.roster(), 3).await.unwrap();
    bench.hold_and_yield(200, &mut one).await;
    bench.hold(300, &mut one).await;
    assert_eq!(one.holds(), [0, 1, 2]);
    bench.restore(&old).await;
    assert_eq!(bench.hold(400, &mut one).await, Changes::default());
    assert_eq!((one.holds(), one.held.heard().count), (vec![0, 1, 2], 3));
    let counts: std::collections::BTreeMap<u64, u16> =
        bench.raw(cmd("HGETALL").arg(bench.key("generations"))).await;
    assert_eq!(counts[&one.held.heard().generation], 3);
}

async fn the_first_generation_after_a_flush_is_larger_than_each_one_before(bench: Bench) {
    let (mut one, mut two) = (RosterMember::new("w1", 1), RosterMember::new("w2", 1));
    bench.hold(0, &mut one).await;
    bench.restore(&crate::dump::Dump::new()).await;
    bench.hold(1, &mut two).await;
    assert!(two.held.heard().generation > one.held.heard().generation);
    assert!(two.fence(0) > one.fence(0));
}

on_both![
    the_first_generation_after_a_flush_is_larger_than_each_one_before,
    a_grant_whose_answer_was_lost_is_given_again_under_a_larger_fence,
    a_late_repeat_of_an_old_heartbeat_takes_no_post_from_another,
    a_heartbeat_that_arrives_after_a_later_one_frees_nothing,
    an_unknown_roster_grants_nothing_for_the_longest_lease,
    holders_keep_what_a_flush_has_lost,
    after_a_flush_a_new_member_changes_nothing_for_the_holders,
    the_quiet_after_a_flush_is_as_long_as_the_longest_lease_that_is_heard_later,
    an_operator_changes_and_pauses_a_roster_before_its_first_grant,
    after_a_flush_all_is_quiet_for_the_longest_lease_that_was_heard,
    a_later_fence_counts_if_redis_has_lost_writes,
    a_member_that_was_suspended_with_its_clock_gets_no_earlier_fence_back,
    a_member_that_slept_through_a_generation_gets_none_of_its_posts_back,
    a_post_that_was_given_back_is_not_held_again_by_a_late_heartbeat,
    nobody_loses_posts_because_of_an_outage,
    a_clock_that_is_set_back_stops_nothing,
    posts_of_the_next_generation_wait_for_those_of_the_last,
    a_generation_that_redis_has_lost_comes_back_with_its_members,
];
