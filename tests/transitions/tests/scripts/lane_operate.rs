//! What operators and the janitor do to the tasks of a lane: the lane continues at once.

use std::time::Duration;

use optimus_core::{
    Lane, TaskId, TaskState,
    broker::{Cancelled, Deleted, FailureOutcome},
};

use crate::{
    acts::{Grants, failed, keep},
    bench::Bench,
    jobs::jobs,
    lanes::{blocking, done_in, lane},
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn three(bench: &Bench, lane: &Lane) -> [TaskId; 3] {
    [bench.add_in(0, lane).await, bench.add_in(0, lane).await, bench.add_in(0, lane).await]
}

async fn tombstones(bench: &Bench) -> String {
    bench.field("meta", "tombstones").await.unwrap_or("0".into())
}

async fn a_cancelled_head_passes_its_permit_on_and_leaves_a_tombstone(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let [head, next, last] = three(&bench, &Lane::new("a")).await;
    assert_eq!(bench.at(1).cancel(&head).await.unwrap(), Cancelled::Done);
    bench.assert_lane("a", &[(&next, -1), (&last, 2)]).await;
    assert_eq!(tombstones(&bench).await, "1");
    assert_eq!(bench.claim(2, &worker, 1, 9).await.ids(), [next]);
    assert_eq!(tombstones(&bench).await, "0");
}

async fn a_cancelled_waiter_leaves_no_tombstone(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let [head, next, last] = three(&bench, &Lane::new("a")).await;
    assert_eq!(bench.at(1).cancel(&next).await.unwrap(), Cancelled::Done);
    bench.assert_lane("a", &[(&head, -1), (&last, 2)]).await;
    assert_eq!(
        (tombstones(&bench).await.as_str(), bench.state(&next).await),
        ("0", TaskState::Cancelled)
    );
    bench.at(2).requeue(&next).await.unwrap();
    bench.assert_lane("a", &[(&head, -1), (&next, 0), (&last, 2)]).await;
    for (seq, id) in (1..).zip([&head, &next, &last]) {
        let lease = bench.take(3, &worker, seq).await;
        assert_eq!(&lease.id, id, "a tombstone would skip a task");
        bench.complete(3, &[done_in(&lease, &Lane::new("a"))]).await;
    }
}

async fn a_whole_lane_is_cancelled_or_deleted_in_one_call(bench: Bench) {
    for width in [1, 2] {
        for is_delete in [false, true] {
            let ids = three(&bench, &lane("a", width)).await;
            let all: Vec<&TaskId> = ids.iter().collect();
            if is_delete {
                let done = bench.at(1).delete_all(&bench.queue, &all).await.unwrap();
                assert_eq!(done, [Deleted::Done; 3]);
            } else {
                let done = bench.at(1).cancel_all(&bench.queue, &all).await.unwrap();
                assert_eq!(done, [Cancelled::Done; 3]);
            }
            bench.assert_lane("a", &[]).await;
            assert_eq!(bench.field("meta", "blocked").await.as_deref(), Some("0"));
        }
    }
}

async fn a_deleted_head_passes_its_permit_on(bench: Bench) {
    let [head, next, last] = three(&bench, &Lane::new("a")).await;
    let done = bench.at(1).delete_all(&bench.queue, &[&head, &last]).await.unwrap();
    assert_eq!(done, [Deleted::Done; 2]);
    bench.assert_lane("a", &[(&next, -1)]).await;
    assert_eq!(tombstones(&bench).await, "1", "only the head had an entry");
}

async fn a_purge_keeps_a_dead_task_that_blocks_its_lane(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let [head, next, _] = three(&bench, &blocking("a")).await;
    let dead = bench.add_in(0, &Lane::new("b")).await;
    for lease in bench.claim(1, &worker, 1, 9).await.leases(&worker) {
        bench.fail(1, &[failed(&lease, FailureOutcome::Dead)]).await;
    }
    let purged = bench.at(2).purge(&bench.queue, keep(0, DAY), DAY).await.unwrap();
    assert_eq!((purged.tasks, purged.more), (1, false));
    assert_eq!(bench.state(&dead).await, TaskState::Forgotten);
    assert_eq!(bench.state(&head).await, TaskState::Dead);
    assert!(bench.claim(3, &worker, 2, 9).await.grants.is_empty(), "its lane waits");
    bench.at(4).delete_all(&bench.queue, &[&head]).await.unwrap();
    assert_eq!(bench.take(5, &worker, 3).await.id, next);
}

async fn purges_reach_the_tasks_behind_many_that_block_their_lanes(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    for (at, count) in [(0, 100), (2, 100)] {
        let blocks = |n: usize| blocking(&format!("{at} {n}"));
        let blocked = jobs(count).into_iter().enumerate().map(|(n, task)| task.in_lane(blocks(n)));
        let tasks: Vec<_> = blocked.chain(jobs(20)).collect();
        bench.submit(at, &tasks).await;
        let leases = bench.claim(at + 1, &worker, at + 1, 128).await.leases(&worker);
        for lease in &leases {
            bench.fail(at + 1, &[failed(lease, FailureOutcome::Dead)]).await;
        }
    }
    let (mut purged, mut calls) = (0, 0);
    while purged < 40 {
        let answer = bench.at(9).purge(&bench.queue, keep(0, DAY), DAY).await.unwrap();
        assert!(answer.tasks > 0 || !answer.more, "a call that removes nothing is not repeated");
        (purged, calls) = (purged + answer.tasks, calls + 1);
        assert!(calls <= 8, "{purged} tasks purged in {calls} calls");
    }
    let counts = bench.now().counts(&bench.queue).await.unwrap();
    assert_eq!(counts.dead, 200);
}

async fn a_requeued_task_comes_before_those_that_had_no_turn(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let [head, next, last] = three(&bench, &Lane::new("a")).await;
    let lease = bench.take(1, &worker, 1).await;
    bench.fail(1, &[failed(&lease, FailureOutcome::Dead)]).await;
    bench.at(2).requeue(&head).await.unwrap();
    bench.assert_lane("a", &[(&next, -1), (&head, 0), (&last, 2)]).await;
    let found = bench.now().inspect(&head).await.unwrap();
    assert_eq!(found.state, TaskState::Blocked);
    let lease = bench.take(3, &worker, 2).await;
    bench.fail(3, &[failed(&lease, FailureOutcome::Dead)]).await;
    assert_eq!(bench.take(4, &worker, 3).await.id, head);
    bench.at(5).cancel_all(&bench.queue, &[&last]).await.unwrap();
    let lone = bench.add_in(6, &Lane::new("b")).await;
    let lease = bench.take(6, &worker, 4).await;
    bench.fail(6, &[failed(&lease, FailureOutcome::Dead)]).await;
    bench.at(7).requeue(&lone).await.unwrap();
    bench.assert_lane("b", &[(&lone, -1)]).await;
}

async fn waiting_tasks_are_listed_lane_by_lane_and_counted(bench: Bench) {
    let mut expected = Vec::new();
    for (at, key) in [(1, "z"), (2, "a"), (3, "x y")] {
        let lane = Lane::new(key);
        bench.add_in(at, &lane).await;
        for _ in 0..3 {
            expected.push(bench.add_in(at, &lane).await);
        }
    }
    bench.add_in(4, &Lane::new("alone")).await;
    let counts = bench.now().counts(&bench.queue).await.unwrap();
    assert_eq!((counts.blocked, counts.ready), (9, 4));
    for size in [1, 2, 4, 128] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let listed =
                bench.now().list(&bench.queue, TaskState::Blocked, size, &cursor).await.unwrap();
            seen.extend(listed.rows.into_iter().map(|row| row.id));
            cursor = listed.next;
            if cursor.is_empty() {
                break;
            }
        }
        assert_eq!(seen, expected, "pages of {size}");
    }

    // The task and the lane of the cursor have gone.
    let page = bench.now().list(&bench.queue, TaskState::Blocked, 4, "").await.unwrap();
    bench.at(5).cancel_all(&bench.queue, &expected[3..6].iter().collect::<Vec<_>>()).await.unwrap();
    let rest = bench.now().list(&bench.queue, TaskState::Blocked, 9, &page.next).await.unwrap();
    let rest: Vec<_> = rest.rows.into_iter().map(|row| row.id).collect();
    assert_eq!(rest, expected[6..]);
}

on_both![
    a_cancelled_head_passes_its_permit_on_and_leaves_a_tombstone,
    a_cancelled_waiter_leaves_no_tombstone,
    a_whole_lane_is_cancelled_or_deleted_in_one_call,
    a_deleted_head_passes_its_permit_on,
    a_purge_keeps_a_dead_task_that_blocks_its_lane,
    purges_reach_the_tasks_behind_many_that_block_their_lanes,
    a_requeued_task_comes_before_those_that_had_no_turn,
    waiting_tasks_are_listed_lane_by_lane_and_counted,
];
