//! `hold`: posts are shared, and move only when they must.

use optimus_core::{Changes, Post};

use crate::{acts::ms, bench::Bench, rosters::RosterMember};

fn members<const N: usize>(asked: u16) -> [RosterMember; N] {
    let mut number = 0;
    [(); N].map(|()| {
        number += 1;
        RosterMember::new(&format!("w{number}"), asked)
    })
}

fn loads(members: &[RosterMember]) -> Vec<usize> {
    members.iter().map(|member| member.holds().len()).collect()
}

/// Lets all members send a heartbeat every five seconds, so often.
async fn beat(bench: &Bench, from: u64, times: u64, members: &mut [RosterMember]) {
    for time in 0..times {
        for member in &mut *members {
            bench.hold_and_yield(from + time * 5_000, member).await;
        }
    }
}

async fn a_lone_member_holds_all_posts_under_fences(bench: Bench) {
    let mut member = RosterMember::new("w1", 5);
    let changes = bench.hold(0, &mut member).await;
    assert_eq!(changes.start.len(), 5);
    assert_eq!(member.holds(), [0, 1, 2, 3, 4]);
    let heard = member.held.heard();
    assert_eq!((heard.count, heard.longest), (5, member.lease));
    assert!(changes.start.iter().all(|(post, fence)| {
        post.generation == heard.generation && *fence >= heard.generation
    }));
    assert_eq!(bench.hold(5_000, &mut member).await, Changes::default(), "it keeps what it has");
    bench.assert_sound().await;
}

async fn posts_are_shared_once_a_new_member_has_settled(bench: Bench) {
    let [mut one, mut two] = members(10);
    bench.hold(0, &mut one).await;
    bench.hold(1_000, &mut two).await;
    let early = bench.hold(9_000, &mut one).await;
    assert_eq!(early, Changes::default(), "the new one has not settled");
    let changes = bench.hold_and_yield(14_000, &mut one).await;
    assert_eq!((changes.drain.len(), one.holds().len()), (5, 5));
    bench.hold(14_100, &mut two).await;
    assert_eq!((one.holds(), two.holds()), (vec![0, 1, 2, 3, 4], vec![5, 6, 7, 8, 9]));
    bench.assert_sound().await;
}

async fn members_that_come_and_go_move_nothing(bench: Bench) {
    let [mut one, mut two, mut brief] = members(10);
    bench.hold(0, &mut one).await;
    bench.hold(0, &mut two).await;
    let mut both = [one, two];
    beat(&bench, 11_000, 3, &mut both).await;
    assert_eq!(loads(&both), [5, 5]);
    let before = both.each_ref().map(|member| member.held.shown());
    for round in 0..3 {
        let at = 30_000 + round * 10_000;
        bench.hold(at, &mut brief).await;
        beat(&bench, at + 4_000, 1, &mut both).await;
        let left = bench.at(at).leave_roster(&bench.roster(), &brief.id, &brief.held.shown()).await;
        assert_eq!(left.unwrap(), 0);
        beat(&bench, at + 9_000, 1, &mut both).await;
        assert_eq!(both.each_ref().map(|member| member.held.shown()), before);
    }
}

async fn loads_differ_by_at_most_one_for_any_number_of_members(bench: Bench) {
    for (posts, expected) in [(7, [3, 2, 2]), (2, [1, 1, 0]), (3, [1, 1, 1]), (16, [6, 5, 5])] {
        let bench = bench.sibling(&format!("of-{posts}"));
        let mut all: [RosterMember; 3] = members(posts);
        beat(&bench, 0, 8, &mut all).await;
        let mut found = loads(&all);
        found.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(found, expected, "{posts} posts");
        bench.assert_sound().await;
    }
}

async fn a_post_is_held_until_its_holder_has_given_it_back(bench: Bench) {
    let [mut one, mut two] = members(2);
    bench.hold(0, &mut one).await;
    bench.hold(0, &mut two).await;
    let changes = bench.hold(10_000, &mut one).await;
    let drained = changes.drain[0];
    for at in [10_100, 14_000, 18_000] {
        bench.hold(at, &mut two).await;
        assert_eq!(two.holds(), [0_u16; 0], "the holder still drains");
        bench.hold(at, &mut one).await;
    }
    bench.give(18_100, &mut one, &[drained]).await;
    bench.hold(18_200, &mut two).await;
    assert_eq!(
        (two.holds(), two.fence(drained.0.index) > drained.1),
        (vec![drained.0.index], true)
    );
}

async fn a_member_that_lacks_posts_asks_again_soon(bench: Bench) {
    let [mut one, mut two] = members(2);
    bench.hold(0, &mut one).await;
    let soon = bench.ask(0, &two).await.unwrap().soon;
    assert_eq!(soon, Some(ms(1_000)), "it has none of two");
    bench.hold(0, &mut two).await;
    assert_eq!(bench.ask(0, &one).await.unwrap().soon, None);
}

async fn the_posts_of_a_dead_member_are_taken_as_soon_as_its_lease_is_over(bench: Bench) {
    let mut both: [RosterMember; 2] = members(4);
    beat(&bench, 0, 4, &mut both).await;
    assert_eq!(loads(&both), [2, 2]);
    let [mut one, two] = both;
    let before = two.fence(two.holds()[0]);
    for at in [20_000, 25_000] {
        bench.hold(at, &mut one).await;
    }
    let holding = bench.ask(29_999, &one).await.unwrap();
    assert_eq!((holding.next_expiry, holding.posts.len()), (Some(ms(1)), 2));
    bench.hold(30_000, &mut one).await;
    assert_eq!(one.holds(), [0, 1, 2, 3]);
    assert!(two.holds().iter().all(|index| one.fence(*index) > before));
    bench.assert_sound().await;
}

async fn a_member_leaves_free_posts_to_others_that_lack_them(bench: Bench) {
    let mut all: [RosterMember; 3] = members(6);
    beat(&bench, 0, 8, &mut all).await;
    assert_eq!(loads(&all), [2, 2, 2]);
    let [mut one, mut two, _] = all;
    for at in [40_000, 45_000] {
        bench.hold(at, &mut one).await;
        bench.hold(at, &mut two).await;
    }
    bench.hold(50_000, &mut one).await;
    assert_eq!(one.holds().len(), 3, "two posts of a dead member are free");
    bench.hold(50_100, &mut two).await;
    assert_eq!(two.holds().len(), 3);
    bench.assert_sound().await;
}

async fn a_member_that_leaves_gives_all_back_and_counts_no_more(bench: Bench) {
    let mut both: [RosterMember; 2] = members(4);
    beat(&bench, 0, 4, &mut both).await;
    let [mut one, mut two] = both;
    two.is_leaving = true;
    let changes = bench.hold(16_000, &mut two).await;
    assert_eq!((changes.drain.len(), changes.start.len()), (2, 0));
    let (first, last) = (changes.drain[0], changes.drain[1]);
    bench.give(16_100, &mut two, &[first]).await;
    bench.hold(16_200, &mut one).await;
    assert_eq!(one.holds().len(), 3, "the other one takes it although the member is still there");
    assert_eq!(bench.hold(16_300, &mut two).await, Changes::default(), "it takes nothing");
    let left = bench.at(16_400).leave_roster(&bench.roster(), &two.id, &[last]).await;
    assert_eq!(left.unwrap(), 0);
    bench.hold(16_500, &mut one).await;
    assert_eq!(one.holds().len(), 4);
    let seen = bench.now().roster(&bench.roster()).await.unwrap();
    assert_eq!(seen.members.keys().collect::<Vec<_>>(), [&one.id]);
    bench.assert_sound().await;
}

async fn a_roster_has_up_to_1024_posts(bench: Bench) {
    let mut both: [RosterMember; 2] = members(1_024);
    beat(&bench, 0, 4, &mut both).await;
    assert_eq!(loads(&both), [512, 512]);
    let post = Post { generation: both[0].held.heard().generation, index: 1_023 };
    assert!(bench.holder_of(post).await.is_some());
}

on_both![
    a_lone_member_holds_all_posts_under_fences,
    posts_are_shared_once_a_new_member_has_settled,
    members_that_come_and_go_move_nothing,
    loads_differ_by_at_most_one_for_any_number_of_members,
    a_post_is_held_until_its_holder_has_given_it_back,
    a_member_that_lacks_posts_asks_again_soon,
    the_posts_of_a_dead_member_are_taken_as_soon_as_its_lease_is_over,
    a_member_leaves_free_posts_to_others_that_lack_them,
    a_member_that_leaves_gives_all_back_and_counts_no_more,
    a_roster_has_up_to_1024_posts,
];
