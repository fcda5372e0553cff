//! `yield`: a member gives posts back.

use crate::{bench::Bench, rosters::RosterMember};

async fn only_the_holder_under_its_fence_gives_a_post_back(bench: Bench) {
    let (mut one, two) = (RosterMember::new("w1", 2), RosterMember::new("w2", 2));
    bench.hold(0, &mut one).await;
    let (post, fence) = one.granted(0);
    let (broker, roster) = (bench.at(1), bench.roster());
    let before = bench.dump().await;
    let by_another = broker.yield_posts(&roster, &two.id, &[(post, fence)]).await;
    assert_eq!(by_another.unwrap(), (0, 0));
    let under_another = broker.yield_posts(&roster, &one.id, &[(post, fence + 1)]).await;
    assert_eq!(under_another.unwrap(), (0, 2));
    bench.assert_unchanged(&before).await;
    for repeat in [1, 0] {
        let given = broker.yield_posts(&roster, &one.id, &[(post, fence)]).await;
        assert_eq!(given.unwrap(), (repeat, 1));
    }
    bench.assert_sound().await;
}

async fn a_member_that_holds_a_post_stays(bench: Bench) {
    let mut one = RosterMember::new("w1", 2);
    bench.hold(0, &mut one).await;
    let (broker, roster) = (bench.at(1), bench.roster());
    let left = broker.leave_roster(&roster, &one.id, &[one.granted(0)]).await;
    assert_eq!(left.unwrap(), 1);
    assert_eq!(broker.roster(&roster).await.unwrap().members.len(), 1);
    for _ in 0..2 {
        let left = broker.leave_roster(&roster, &one.id, &[one.granted(1)]).await;
        assert_eq!(left.unwrap(), 0);
    }
    assert_eq!(broker.roster(&roster).await.unwrap().members.len(), 0);
    assert_eq!(bench.names().await, ["fences", "generations", "meta"]);
}

on_both![only_the_holder_under_its_fence_gives_a_post_back, a_member_that_holds_a_post_stays,];
