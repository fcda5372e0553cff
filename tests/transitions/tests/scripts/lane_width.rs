//! A lane of a larger width: at most this many of its tasks run at once.

use optimus_core::{
    TaskState,
    broker::{FailureOutcome, Give},
};

use crate::{
    acts::{Grants, failed, given, ids_of, ms},
    bench::Bench,
    jobs::jobs,
    lanes::{done_in, lane},
};

async fn at_most_as_many_tasks_of_a_lane_are_held_as_it_is_wide(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let wide = lane("a", 3);
    let tasks: Vec<_> = jobs(7).into_iter().map(|task| task.in_lane(wide.clone())).collect();
    let ids = ids_of(&tasks);
    bench.submit(0, &tasks).await;
    let first = bench.claim(1, &worker, 1, 128).await;
    assert_eq!(first.ids(), ids[..3]);
    let reports: Vec<_> = first.leases(&worker)[..2].iter().map(|l| done_in(l, &wide)).collect();
    bench.complete(2, &reports).await;
    let second = bench.claim(3, &worker, 2, 128).await;
    assert_eq!(second.ids(), ids[3..5]);
    let mut reports: Vec<_> = second.leases(&worker).iter().map(|l| done_in(l, &wide)).collect();
    reports.push(done_in(&first.leases(&worker)[2], &wide));
    bench.complete(4, &reports).await;
    assert_eq!(bench.claim(5, &worker, 3, 128).await.ids(), ids[5..]);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_waiting_retry_gives_its_permit_back_and_returns_before_new_tasks(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let wide = lane("a", 2);
    let mut tasks: Vec<_> = jobs(5).into_iter().map(|task| task.in_lane(wide.clone())).collect();
    // Tasks that come back start in the order of their ids.
    tasks.sort_by_key(|task| task.id().stored());
    let ids = ids_of(&tasks);
    bench.submit(0, &tasks).await;
    let leases = bench.claim(1, &worker, 1, 9).await.leases(&worker);
    bench.fail(1, &[failed(&leases[0], FailureOutcome::Retry(ms(10)))]).await;
    bench.release(1, &[given(&leases[1], Give::Snooze(ms(10)))]).await;
    let expected = [(&ids[0], -2), (&ids[1], -2), (&ids[2], -1), (&ids[3], -1), (&ids[4], 3)];
    bench.assert_lane("a", &expected).await;
    let leases = bench.claim(2, &worker, 2, 9).await.leases(&worker);
    assert!(bench.claim(20, &worker, 3, 9).await.grants.is_empty(), "they wait in their lane");
    let expected = [(&ids[2], -1), (&ids[3], -1), (&ids[0], 0), (&ids[1], 0), (&ids[4], 3)];
    bench.assert_lane("a", &expected).await;
    assert_eq!(bench.state(&ids[0]).await, TaskState::Blocked);
    assert!(bench.list("retry").await.is_empty());
    bench.complete(21, &[done_in(&leases[0], &wide)]).await;
    assert_eq!(bench.claim(22, &worker, 4, 9).await.ids(), [ids[0].clone()]);
    bench.complete(23, &[done_in(&leases[1], &wide)]).await;
    assert_eq!(bench.claim(24, &worker, 5, 9).await.ids(), [ids[1].clone()]);
    assert_eq!(bench.state(&ids[4]).await, TaskState::Blocked);
}

async fn a_retry_takes_a_free_permit_when_it_is_due(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let wide = lane("a", 2);
    let id = bench.add_in(0, &wide).await;
    let lease = bench.take(1, &worker, 1).await;
    bench.fail(1, &[failed(&lease, FailureOutcome::Retry(ms(10)))]).await;
    bench.assert_lane("a", &[(&id, -2)]).await;
    assert_eq!(bench.take(11, &worker, 2).await.id, id);
    bench.assert_lane("a", &[(&id, -1)]).await;
}

async fn a_task_of_a_larger_width_does_not_overtake_those_that_wait(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let narrow = lane("a", 1);
    let first = bench.add_in(0, &narrow).await;
    let second = bench.add_in(0, &narrow).await;
    let wide = bench.add_in(0, &lane("a", 3)).await;
    bench.assert_lane("a", &[(&first, -1), (&second, 1), (&wide, 2)]).await;
    let lease = bench.take(1, &worker, 1).await;
    bench.complete(2, &[done_in(&lease, &narrow)]).await;
    assert_eq!(bench.claim(3, &worker, 2, 9).await.ids(), [second]);
}

async fn a_lane_becomes_as_wide_as_the_tasks_that_end(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let mut tasks: Vec<_> = jobs(2).into_iter().map(|task| task.in_lane(lane("a", 1))).collect();
    tasks.extend(jobs(6).into_iter().map(|task| task.in_lane(lane("a", 3))));
    let ids = ids_of(&tasks);
    bench.submit(0, &tasks).await;
    let mut grants = Vec::new();
    let mut held = Vec::new();
    for seq in 1..=4 {
        let claimed = bench.claim(seq, &worker, seq, 128).await;
        grants.push(claimed.grants.len());
        held.extend(claimed.leases(&worker));
        let lease = held.remove(0);
        let width = if ids[..2].contains(&lease.id) { 1 } else { 3 };
        bench.complete(seq, &[done_in(&lease, &lane("a", width))]).await;
    }
    assert_eq!(grants, [1, 1, 1, 3], "the first wide task that ends makes room for three");

    // Narrower tasks take no permit back, and no task is left.
    for seq in 5..=20 {
        held.extend(bench.claim(seq, &worker, seq, 128).await.leases(&worker));
        if held.is_empty() {
            break;
        }
        bench.complete(seq, &[done_in(&held.remove(0), &lane("a", 1))]).await;
    }
    bench.assert_lane("a", &[]).await;
}

on_both![
    at_most_as_many_tasks_of_a_lane_are_held_as_it_is_wide,
    a_waiting_retry_gives_its_permit_back_and_returns_before_new_tasks,
    a_retry_takes_a_free_permit_when_it_is_due,
    a_task_of_a_larger_width_does_not_overtake_those_that_wait,
    a_lane_becomes_as_wide_as_the_tasks_that_end,
];
