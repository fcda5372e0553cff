//! The width of a lane that is set at run time wins over the widths of its tasks.

use std::num::NonZeroU16;

use optimus_core::{
    TaskId,
    broker::{FailureOutcome, Resized},
};

use crate::{
    acts::{Grants, failed, ids_of, ms},
    bench::Bench,
    jobs::jobs,
    lanes::{blocking, done_in, lane},
};

impl Bench {
    async fn resize(&self, at: u64, key: &str, width: u16) -> Resized {
        let width = NonZeroU16::new(width);
        self.at(at).resize(&self.queue, key, width).await.expect("no newer program")
    }

    async fn is_sound(&self) {
        assert_eq!(self.fsck_of_tasks().await, [""; 0]);
    }
}

async fn add(bench: &Bench, count: usize, width: u16) -> Vec<TaskId> {
    let tasks = jobs(count).into_iter().map(|task| task.in_lane(lane("a", width)));
    let mut tasks: Vec<_> = tasks.collect();
    // Tasks that come back start in the order of their ids.
    tasks.sort_by_key(|task| task.id().stored());
    bench.submit(0, &tasks).await;
    ids_of(&tasks)
}

async fn a_wider_lane_offers_more_tasks_at_once(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let ids = add(&bench, 5, 1).await;
    bench.take(1, &worker, 1).await;
    let resized = bench.resize(2, "a", 3).await;
    assert_eq!(resized, Resized { before: None, more: false });
    bench.is_sound().await;
    assert_eq!(bench.claim(3, &worker, 2, 9).await.ids(), ids[1..3]);
    assert_eq!(bench.resize(4, "a", 4).await.before, NonZeroU16::new(3));
    assert_eq!(bench.claim(5, &worker, 3, 9).await.ids(), ids[3..4]);
    bench.is_sound().await;
}

async fn one_call_offers_a_limited_number_and_says_that_there_are_more(bench: Bench) {
    add(&bench, 300, 1).await;
    let permits = async || bench.lane("a").await.iter().filter(|(_, at)| *at == -1).count();
    assert!(bench.resize(1, "a", 1_000).await.more);
    assert_eq!(permits().await, 129);
    assert!(bench.resize(1, "a", 1_000).await.more);
    assert!(!bench.resize(1, "a", 1_000).await.more);
    assert_eq!(permits().await, 300);
    bench.is_sound().await;
}

async fn a_narrower_lane_takes_nothing_back_and_offers_nothing_until_it_is_below(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let ids = add(&bench, 5, 3).await;
    let leases = bench.claim(1, &worker, 1, 9).await.leases(&worker);
    bench.resize(2, "a", 1).await;
    assert_eq!(leases.len(), 3);
    bench.complete(3, &[done_in(&leases[0], &lane("a", 3))]).await;
    bench.complete(4, &[done_in(&leases[1], &lane("a", 3))]).await;
    assert!(bench.claim(5, &worker, 2, 9).await.grants.is_empty(), "one is still held");
    bench.complete(6, &[done_in(&leases[2], &lane("a", 3))]).await;
    assert_eq!(bench.claim(7, &worker, 3, 9).await.ids(), ids[3..4]);
    // A task that comes now waits, too.
    let late = bench.add_in(8, &lane("a", 3)).await;
    assert!(bench.claim(9, &worker, 4, 9).await.grants.is_empty());
    bench.assert_lane("a", &[(&ids[3], -1), (&ids[4], 2), (&late, 3)]).await;
    bench.is_sound().await;
}

async fn tasks_join_a_lane_of_the_width_that_was_set_before_they_came(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.resize(0, "a", 2).await;
    let ids = add(&bench, 3, 1).await;
    assert_eq!(bench.claim(1, &worker, 1, 9).await.ids(), ids[..2]);
    bench.is_sound().await;
    // Other lanes are as wide as their tasks say.
    let other = bench.add_in(2, &lane("b", 1)).await;
    bench.add_in(2, &lane("b", 1)).await;
    assert_eq!(bench.claim(3, &worker, 2, 9).await.ids(), [other]);
}

async fn a_retry_keeps_the_permit_of_a_lane_that_was_set_to_one(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.resize(0, "a", 1).await;
    let ids = add(&bench, 2, 3).await;
    let lease = bench.take(1, &worker, 1).await;
    bench.fail(1, &[failed(&lease, FailureOutcome::Retry(ms(10)))]).await;
    bench.assert_lane("a", &[(&ids[0], -1), (&ids[1], 1)]).await;
    assert!(bench.claim(2, &worker, 2, 9).await.grants.is_empty(), "the order would be lost");
    assert_eq!(bench.claim(11, &worker, 3, 9).await.ids(), ids[..1]);
    bench.is_sound().await;
}

async fn a_retry_gives_the_permit_back_of_a_lane_that_was_set_to_two(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.resize(0, "a", 2).await;
    let ids = add(&bench, 3, 1).await;
    let leases = bench.claim(1, &worker, 1, 9).await.leases(&worker);
    bench.fail(1, &[failed(&leases[0], FailureOutcome::Retry(ms(10)))]).await;
    assert_eq!(bench.claim(2, &worker, 2, 9).await.ids(), ids[2..]);
    bench.assert_lane("a", &[(&ids[0], -2), (&ids[1], -1), (&ids[2], -1)]).await;
    assert!(bench.claim(12, &worker, 3, 9).await.grants.is_empty());
    bench.assert_lane("a", &[(&ids[1], -1), (&ids[2], -1), (&ids[0], 0)]).await;
    bench.is_sound().await;
}

async fn a_reset_lane_is_as_wide_as_its_tasks_say(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.resize(0, "a", 1).await;
    let ids = add(&bench, 4, 3).await;
    assert_eq!(bench.claim(1, &worker, 1, 9).await.ids(), ids[..1]);
    assert_eq!(bench.resize(2, "a", 0).await.before, NonZeroU16::new(1));
    assert_eq!(bench.claim(3, &worker, 2, 9).await.ids(), ids[1..3]);
    assert_eq!(bench.resize(4, "a", 0).await.before, None);
    assert_eq!(bench.field("meta", "widest").await.as_deref(), Some("65535"), "the mark is gone");
    bench.is_sound().await;
}

async fn a_dead_task_still_blocks_a_lane_that_becomes_wider_and_its_order_stays(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let [first, second, third] = [
        bench.add_in(0, &blocking("a")).await,
        bench.add_in(0, &blocking("a")).await,
        bench.add_in(0, &blocking("a")).await,
    ];
    let lease = bench.take(1, &worker, 1).await;
    bench.fail(1, &[failed(&lease, FailureOutcome::Dead)]).await;
    bench.resize(2, "a", 2).await;
    assert_eq!(bench.take(3, &worker, 2).await.id, second);
    let mut holders = [(&first, -1), (&second, -1)];
    holders.sort_by_key(|(id, _)| id.stored());
    bench.assert_lane("a", &[holders[0], holders[1], (&third, 2)]).await;
    bench.is_sound().await;
}

on_both![
    a_wider_lane_offers_more_tasks_at_once,
    one_call_offers_a_limited_number_and_says_that_there_are_more,
    a_narrower_lane_takes_nothing_back_and_offers_nothing_until_it_is_below,
    tasks_join_a_lane_of_the_width_that_was_set_before_they_came,
    a_retry_keeps_the_permit_of_a_lane_that_was_set_to_one,
    a_retry_gives_the_permit_back_of_a_lane_that_was_set_to_two,
    a_reset_lane_is_as_wide_as_its_tasks_say,
    a_dead_task_still_blocks_a_lane_that_becomes_wider_and_its_order_stays,
];
