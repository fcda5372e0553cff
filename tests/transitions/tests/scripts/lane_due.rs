//! A delayed task joins its lane when a claim finds it due.

use optimus_core::{Due, Lane, TaskState, broker::Cancelled};

use crate::{
    acts::{Grants, ms},
    bench::Bench,
    jobs::{job, ready},
    lanes::done_in,
};

async fn a_delayed_task_takes_its_place_when_it_is_due(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let lane = Lane::new("a");
    let delayed = bench.add_call_in(0, &lane, job().due(Due::In(ms(10)))).await;
    let first = bench.add_in(0, &lane).await;
    bench.assert_lane("a", &[(&first, -1)]).await;
    let lease = bench.take(1, &worker, 1).await;
    assert!(bench.claim(10, &worker, 2, 9).await.grants.is_empty());
    assert_eq!(bench.state(&delayed).await, TaskState::Blocked);
    let last = bench.add_in(11, &lane).await;
    bench.assert_lane("a", &[(&first, -1), (&delayed, 1), (&last, 2)]).await;
    bench.complete(12, &[done_in(&lease, &lane)]).await;
    let claimed = bench.claim(13, &worker, 3, 9).await;
    assert_eq!(claimed.ids(), [delayed]);
    bench.complete(14, &[done_in(&claimed.leases(&worker)[0], &lane)]).await;
    assert_eq!(bench.claim(15, &worker, 4, 9).await.ids(), [last]);
}

async fn due_tasks_of_a_lane_and_others_are_claimed_in_one_call(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let mut tasks = Vec::new();
    for (key, wait) in [("a", 10), ("a", 11), ("b", 12), ("b", 13), ("c", 14)] {
        tasks.push(ready(job().due(Due::In(ms(wait)))).in_lane(Lane::new(key)));
    }
    tasks.push(ready(job().due(Due::In(ms(5)))));
    tasks.push(ready(job().due(Due::In(ms(20))).priority(3)).in_lane(Lane::new("d")));
    tasks.push(ready(job().due(Due::In(ms(20))).priority(4)).in_lane(Lane::new("d")));
    let ids: Vec<_> = tasks.iter().map(|task| task.id().clone()).collect();
    bench.submit(0, &tasks).await;
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    let first = bench.claim(30, &worker, 1, 2).await;
    assert_eq!(first.ids(), [ids[5].clone(), ids[0].clone()]);
    bench.assert_lane("b", &[(&ids[2], -1), (&ids[3], 1)]).await;
    assert_eq!(bench.field("meta", "blocked").await.as_deref(), Some("3"));
    let second = bench.claim(31, &worker, 2, 9).await.ids();
    assert_eq!(second.len(), 3, "{second:?}");
    assert!(second.contains(&ids[2]) && second.contains(&ids[4]));
    let ranked = [&ids[6], &ids[7]].into_iter().filter(|id| second.contains(id)).count();
    assert_eq!(ranked, 1);
}

async fn a_delayed_task_that_is_cancelled_leaves_no_trace_in_its_lane(bench: Bench) {
    let lane = Lane::new("a");
    let delayed = bench.add_call_in(0, &lane, job().due(Due::In(ms(10)))).await;
    let first = bench.add_in(0, &lane).await;
    assert_eq!(bench.at(1).cancel(&delayed).await.unwrap(), Cancelled::Done);
    bench.assert_lane("a", &[(&first, -1)]).await;
    assert_eq!(bench.field("meta", "tombstones").await.unwrap_or("0".into()), "0");
    bench.at(2).requeue(&delayed).await.unwrap();
    bench.assert_lane("a", &[(&first, -1), (&delayed, 0)]).await;
}

async fn many_due_tasks_of_a_lane_join_it_in_the_order_of_their_times(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let lane = Lane::new("a");
    let tasks: Vec<_> = (0..300)
        .map(|count| ready(job().due(Due::In(ms(1_000 - count)))).in_lane(lane.clone()))
        .collect();
    bench.submit(0, &tasks).await;
    let mut seq = 0;
    let mut order = Vec::new();
    while order.len() < tasks.len() {
        seq += 1;
        let claimed = bench.claim(2_000, &worker, seq, 8).await;
        assert!(claimed.grants.len() <= 1, "a lane of one");
        for lease in claimed.leases(&worker) {
            bench.complete(2_000, &[done_in(&lease, &lane)]).await;
            order.push(lease.id);
        }
    }
    let expected: Vec<_> = tasks.iter().rev().map(|task| task.id().clone()).collect();
    assert!(order == expected, "the task that was due first comes first");
}

on_both![
    a_delayed_task_takes_its_place_when_it_is_due,
    due_tasks_of_a_lane_and_others_are_claimed_in_one_call,
    a_delayed_task_that_is_cancelled_leaves_no_trace_in_its_lane,
    many_due_tasks_of_a_lane_join_it_in_the_order_of_their_times,
];
