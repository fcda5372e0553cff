//! A lane of width 1: its tasks run one after the other, in the order of their submits.

use optimus_core::{
    Submission, TaskId, TaskState,
    broker::{Cancelled, FailureOutcome, Give, Receipt},
};

use crate::{
    acts::{Grants, LEASE_MS, done, failed, given, ids_of, ms},
    bench::Bench,
    jobs::{Fragile, job, jobs, ready},
    lanes::{blocking, done_in, lane},
};
use optimus_core::{Lane, Task as _};

fn in_lane(count: usize, key: &str) -> Vec<Submission> {
    jobs(count).into_iter().map(|task| task.in_lane(Lane::new(key))).collect()
}

async fn the_next_task_of_a_lane_is_ready_once_the_one_before_has_succeeded(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let tasks = in_lane(3, "user-7");
    let ids = ids_of(&tasks);
    bench.submit(0, &tasks).await;
    bench.assert_lane("user-7", &[(&ids[0], -1), (&ids[1], 1), (&ids[2], 2)]).await;
    assert_eq!(bench.state(&ids[0]).await, TaskState::Ready);
    assert_eq!(bench.state(&ids[1]).await, TaskState::Blocked);
    let left: [&[(&TaskId, i64)]; 3] = [&[(&ids[1], -1), (&ids[2], 2)], &[(&ids[2], -1)], &[]];
    for (seq, (id, left)) in (1..).zip(ids.iter().zip(left)) {
        let claimed = bench.claim(seq, &worker, seq, 128).await;
        assert_eq!(claimed.ids(), std::slice::from_ref(id), "one at a time, in order");
        let mut report = done_in(&claimed.leases(&worker)[0], &Lane::new("user-7"));
        // A report of one task that has nothing but a lane needs no lists.
        report.has_sides = seq == 1;
        assert!(bench.complete(seq, std::slice::from_ref(&report)).await.is_empty());
        bench.assert_lane("user-7", left).await;
        let before = bench.dump().await;
        assert_eq!(bench.complete(seq, &[report]).await, [0], "a repeat is stale");
        bench.assert_unchanged(&before).await;
    }
    let left = bench.names().await;
    assert!(left.iter().all(|name| !name.starts_with("lane")), "{left:?}");
    assert_eq!(bench.field("meta", "blocked").await.as_deref(), Some("0"));
}

async fn each_lane_offers_one_task_and_lanes_take_turns(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let mut tasks = in_lane(4, "large");
    tasks.extend(in_lane(2, "small"));
    tasks.extend(jobs(1));
    let ids = ids_of(&tasks);
    bench.submit(0, &tasks).await;
    let mut seen: Vec<TaskId> = Vec::new();
    for seq in 1..=4 {
        let claimed = bench.claim(seq, &worker, seq, 128).await;
        let reports: Vec<_> = claimed
            .leases(&worker)
            .iter()
            .map(|lease| match ids.iter().position(|id| *id == lease.id).unwrap() {
                0..4 => done_in(lease, &Lane::new("large")),
                4..6 => done_in(lease, &Lane::new("small")),
                _ => done(lease),
            })
            .collect();
        seen.extend(claimed.ids());
        assert!(bench.complete(seq, &reports).await.is_empty());
    }
    let order = [0, 4, 6, 1, 5, 2, 3].map(|at| ids[at].clone());
    assert_eq!(seen, order);
}

async fn the_lanes_of_a_call_share_its_places(bench: Bench) {
    let mut tasks = in_lane(3, "large");
    tasks.extend(in_lane(2, "small"));
    let ids = ids_of(&tasks);
    bench.submit(0, &tasks).await;
    bench.assert_lane("large", &[(&ids[0], -1), (&ids[1], 1), (&ids[2], 2)]).await;
    bench.assert_lane("small", &[(&ids[3], -1), (&ids[4], 1)]).await;
    let later = bench.add_in(1, &Lane::new("small")).await;
    bench.assert_lane("small", &[(&ids[3], -1), (&ids[4], 1), (&later, 3)]).await;
    let more: Vec<_> = ["small", "large", "large"].map(|key| in_lane(1, key)).concat();
    let more_ids = ids_of(&more);
    bench.submit(2, &more).await;
    let waits = [(&ids[4], 1), (&later, 3), (&more_ids[0], 4)];
    bench.assert_lane("small", &[&[(&ids[3], -1)], &waits[..]].concat()).await;
    let waits = [(&ids[1], 1), (&ids[2], 2), (&more_ids[1], 4), (&more_ids[2], 5)];
    bench.assert_lane("large", &[&[(&ids[0], -1)], &waits[..]].concat()).await;
}

async fn a_task_keeps_its_lane_through_retries_snoozes_and_lost_workers(bench: Bench) {
    let (worker, other) = (bench.worker(0, "w").await, bench.worker(0, "other").await);
    let head = bench.add_in(0, &Lane::new("a")).await;
    let next = bench.add_in(0, &Lane::new("a")).await;
    let lease = bench.take(1, &worker, 1).await;
    bench.fail(1, &[failed(&lease, FailureOutcome::Retry(ms(10)))]).await;
    bench.assert_lane("a", &[(&head, -1), (&next, 1)]).await;
    assert!(bench.claim(2, &worker, 2, 9).await.grants.is_empty());

    let lease = bench.take(11, &worker, 3).await;
    assert_eq!(lease.id, head);
    bench.release(12, &[given(&lease, Give::Snooze(ms(10)))]).await;
    assert!(bench.claim(13, &worker, 4, 9).await.grants.is_empty());
    let lease = bench.take(22, &worker, 5).await;
    assert_eq!(lease.id, head);
    bench.release(23, &[given(&lease, Give::Head)]).await;
    assert_eq!(bench.take(24, &worker, 6).await.id, head);

    // The worker is lost.
    bench.at(7_000).renew(&bench.queue, &other, ms(60_000)).await.unwrap();
    bench.at(14_000).renew(&bench.queue, &other, ms(60_000)).await.unwrap();
    let reaped = bench.at(LEASE_MS + 1).reap(&bench.queue, &other, ms(60_000), 9).await.unwrap();
    assert_eq!(reaped.tasks, 1);
    bench.assert_lane("a", &[(&head, -1), (&next, 1)]).await;
    let claimed = bench.claim(LEASE_MS + 2, &other, 1, 9).await;
    assert_eq!(claimed.ids(), [head]);
    bench.complete(LEASE_MS + 3, &[done_in(&claimed.leases(&other)[0], &Lane::new("a"))]).await;
    bench.assert_lane("a", &[(&next, -1)]).await;
}

async fn a_dead_or_cancelled_task_passes_its_lane_on(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let ids = [bench.add_in(0, &Lane::new("a")).await, bench.add_in(0, &Lane::new("a")).await];
    let last = bench.add_in(0, &Lane::new("a")).await;
    let lease = bench.take(1, &worker, 1).await;
    bench.fail(1, &[failed(&lease, FailureOutcome::Dead)]).await;
    bench.assert_lane("a", &[(&ids[1], -1), (&last, 3 - 1)]).await;
    let lease = bench.take(2, &worker, 2).await;
    assert_eq!(lease.id, ids[1]);
    assert_eq!(bench.at(2).cancel(&lease.id).await.unwrap(), Cancelled::Requested);
    bench.assert_lane("a", &[(&ids[1], -1), (&last, 2)]).await;
    bench.fail(3, &[failed(&lease, FailureOutcome::Retry(ms(9)))]).await;
    assert_eq!(bench.state(&ids[1]).await, TaskState::Cancelled);
    let lease = bench.take(4, &worker, 3).await;
    assert_eq!(lease.id, last);
    bench.at(4).cancel(&last).await.unwrap();
    bench.release(5, &[given(&lease, Give::Head)]).await;
    bench.assert_lane("a", &[]).await;
}

async fn a_task_that_a_lost_worker_leaves_dead_passes_its_lane_on(bench: Bench) {
    let (worker, other) = (bench.worker(0, "w").await, bench.worker(0, "other").await);
    let fragile = bench.add_call_in(0, &Lane::new("a"), Fragile.call()).await;
    let next = bench.add_in(0, &Lane::new("a")).await;
    let alone = bench.at(0).claim_alone(&bench.queue, &worker, 1).await.unwrap();
    assert_eq!(alone.ids(), std::slice::from_ref(&fragile));
    bench.at(7_000).renew(&bench.queue, &other, ms(60_000)).await.unwrap();
    bench.at(14_000).renew(&bench.queue, &other, ms(60_000)).await.unwrap();
    bench.at(LEASE_MS + 1).reap(&bench.queue, &other, ms(60_000), 9).await.unwrap();
    assert_eq!(bench.state(&fragile).await, TaskState::Dead);
    bench.assert_lane("a", &[(&next, -1)]).await;
    assert_eq!(bench.take(LEASE_MS + 2, &other, 1).await.id, next);
}

async fn a_dead_task_blocks_its_lane_if_that_was_asked_for(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let (head, next) =
        (bench.add_in(0, &blocking("a")).await, bench.add_in(0, &blocking("a")).await);
    let lease = bench.take(1, &worker, 1).await;
    bench.fail(1, &[failed(&lease, FailureOutcome::Dead)]).await;
    bench.assert_lane("a", &[(&head, -1), (&next, 1)]).await;
    assert!(bench.claim(2, &worker, 2, 9).await.grants.is_empty());

    bench.at(3).requeue(&head).await.unwrap();
    bench.assert_lane("a", &[(&head, -1), (&next, 1)]).await;
    let lease = bench.take(4, &worker, 3).await;
    assert_eq!(lease.id, head);
    bench.fail(5, &[failed(&lease, FailureOutcome::Dead)]).await;
    bench.at(6).delete_all(&bench.queue, &[&head]).await.unwrap();
    bench.assert_lane("a", &[(&next, -1)]).await;
    assert_eq!(bench.take(7, &worker, 4).await.id, next);
}

async fn an_expired_task_never_blocks_its_lane(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let (head, next) =
        (bench.add_in(0, &blocking("a")).await, bench.add_in(0, &blocking("a")).await);
    let lease = bench.take(1, &worker, 1).await;
    bench.fail(1, &[failed(&lease, FailureOutcome::Expired)]).await;
    assert_eq!(bench.state(&head).await, TaskState::Dead);
    bench.assert_lane("a", &[(&next, -1)]).await;
    assert_eq!(bench.take(2, &worker, 2).await.id, next);
}

async fn a_refused_task_does_not_join_and_a_repeated_submit_joins_once(bench: Bench) {
    let unique = || ready(job().biz_id("o-17")).in_lane(Lane::new("a"));
    let (first, second) = (unique(), unique());
    let owner = first.id().clone();
    let tasks = [first, second];
    let receipts = bench.send(0, 1, &tasks).await.unwrap();
    assert_eq!(receipts, [Receipt::Created, Receipt::Duplicate(owner.clone())]);
    bench.assert_lane("a", &[(&owner, -1)]).await;
    let before = bench.dump().await;
    assert_eq!(bench.send(1, 1, &tasks).await.unwrap(), receipts);
    bench.assert_unchanged(&before).await;
}

async fn a_priority_ranks_the_lane_and_not_the_tasks_in_it(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let plain = bench.add(0, job()).await;
    let low = bench.add_call_in(0, &Lane::new("a"), job().priority(-1)).await;
    let high = bench.add_call_in(0, &Lane::new("a"), job().priority(9)).await;
    let claimed = bench.claim(1, &worker, 1, 9).await;
    assert_eq!(claimed.ids(), [plain, low]);
    bench.complete(2, &[done_in(&claimed.leases(&worker)[1], &Lane::new("a"))]).await;
    let later = bench.add(3, job()).await;
    assert_eq!(bench.claim(4, &worker, 2, 9).await.ids(), [high, later]);
}

async fn any_text_can_be_the_key_of_a_lane(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    for (seq, key) in (1..).zip(["a;1;b", "@1;2;é {x} \"q\" \\", "{other:default:0}:ready", "1 2"])
    {
        let (head, next) =
            (bench.add_in(0, &Lane::new(key)).await, bench.add_in(0, &Lane::new(key)).await);
        let lease = bench.take(0, &worker, 2 * seq).await;
        assert_eq!(lease.id, head);
        bench.complete(0, &[done_in(&lease, &lane(key, 1))]).await;
        bench.assert_lane(key, &[(&next, -1)]).await;
        let lease = bench.take(0, &worker, 2 * seq + 1).await;
        bench.fail(0, &[failed(&lease, FailureOutcome::Dead)]).await;
        bench.assert_lane(key, &[]).await;
    }
}

on_both![
    the_next_task_of_a_lane_is_ready_once_the_one_before_has_succeeded,
    each_lane_offers_one_task_and_lanes_take_turns,
    the_lanes_of_a_call_share_its_places,
    a_task_keeps_its_lane_through_retries_snoozes_and_lost_workers,
    a_dead_or_cancelled_task_passes_its_lane_on,
    a_task_that_a_lost_worker_leaves_dead_passes_its_lane_on,
    a_dead_task_blocks_its_lane_if_that_was_asked_for,
    an_expired_task_never_blocks_its_lane,
    a_refused_task_does_not_join_and_a_repeated_submit_joins_once,
    a_priority_ranks_the_lane_and_not_the_tasks_in_it,
    any_text_can_be_the_key_of_a_lane,
];
