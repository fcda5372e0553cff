//! `purge`: Dead | Cancelled → ∅, after their age or above what is kept; and idle ledgers. For biz
//! ids that another task holds see `biz`.

use std::time::Duration;

use optimus_core::{
    Lease, TaskId, TaskState,
    broker::{Batch, FailureOutcome, Keep, Purged},
};

use redis::cmd;

use crate::{
    acts::{Grants, failed, ids_of, keep, ms},
    bench::Bench,
    jobs::{job, job_of, jobs, ready},
};

const LONG: Duration = Duration::from_secs(10_000_000);
const MANY: usize = 10_000;

/// The size of a payload that is larger than any record or error history.
const LARGE: usize = 20_000;

async fn purge(bench: &Bench, at: u64, tasks: usize, age: Duration) -> Purged {
    purge_above(bench, at, keep(tasks, age)).await
}

async fn purge_above(bench: &Bench, at: u64, keep: Keep) -> Purged {
    bench.at(at).purge(&bench.queue, keep, LONG).await.expect("a purge is not refused")
}

/// Makes this many tasks that died at 0, 1, 2… ms.
async fn mark_dead(bench: &Bench, count: usize) -> Vec<Lease> {
    bench.submit(0, &jobs(count)).await;
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, count).await.leases(&worker);
    for (at, lease) in (0..).zip(&leases) {
        assert!(bench.fail(at, &[failed(lease, FailureOutcome::Dead)]).await.is_empty());
    }
    leases
}

async fn tasks_above_the_cap_are_purged_the_oldest_first(bench: Bench) {
    let leases = mark_dead(&bench, 5).await;
    let purged = purge(&bench, 9, 3, LONG).await;
    assert_eq!((purged.tasks, purged.more), (2, false));
    for (position, lease) in leases.iter().enumerate() {
        let expected = if position < 2 { TaskState::Forgotten } else { TaskState::Dead };
        assert_eq!(bench.state(&lease.id).await, expected, "position {position}");
    }
    assert_eq!(bench.now().counts(&bench.queue).await.unwrap().purged, 2);
}

async fn tasks_that_have_just_ended_stay_above_the_cap(bench: Bench) {
    mark_dead(&bench, 5).await;
    let keep = Keep { recent: ms(7), ..keep(1, LONG) };
    // Those that died at 0, 1 and 2 ms ended 7 ms ago or more, and four are above the cap.
    assert_eq!(purge_above(&bench, 9, keep).await.above_count, 3);
    assert_eq!(purge_above(&bench, 9, keep).await.tasks, 0);
    assert_eq!(
        purge_above(&bench, 10, Keep { bytes: 0, ..keep }).await.tasks,
        2,
        "the bytes count"
    );
}

fn large() -> String {
    format!("\"{}\"", "x".repeat(LARGE))
}

/// Makes this many dead and cancelled tasks with large payloads, which ended at 1, 2… ms.
async fn end_large(bench: &Bench, dead: usize, cancelled: usize) -> (Vec<TaskId>, Vec<TaskId>) {
    let (mut died, mut stopped) = (Vec::new(), Vec::new());
    let worker = bench.worker(0, "w").await;
    for at in 1..=dead as u64 {
        died.push(bench.add(at, job_of(large())).await);
        let lease = bench.take(at, &worker, at).await;
        assert!(bench.fail(at, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
    }
    for at in 1..=cancelled as u64 {
        stopped.push(bench.add(at, job_of(large())).await);
        bench.at(at).cancel(&stopped[stopped.len() - 1]).await.unwrap();
    }
    (died, stopped)
}

async fn tasks_above_the_bytes_are_purged_the_oldest_first(bench: Bench) {
    let (dead, cancelled) = end_large(&bench, 5, 2).await;
    let counts = bench.now().counts(&bench.queue).await.unwrap();
    assert!((5 * LARGE..5 * LARGE + 1_000).contains(&counts.dead_bytes.try_into().unwrap()));
    // Two of the five dead tasks fit, and both cancelled tasks.
    let keep = Keep { bytes: 3 * LARGE as u64 - 1, ..keep(MANY, LONG) };
    let purged = purge_above(&bench, 9, keep).await;
    assert_eq!((purged.tasks, purged.above_count, purged.above_bytes), (3, 0, 3));
    for id in &dead[..3] {
        assert_eq!(bench.state(id).await, TaskState::Forgotten);
    }
    for id in dead[3..].iter().chain(&cancelled) {
        assert!(bench.state(id).await.is_terminal());
        assert_ne!(bench.state(id).await, TaskState::Forgotten);
    }
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    assert_eq!(purge_above(&bench, 9, keep).await.tasks, 0, "the purge is complete");
}

async fn each_purged_task_is_counted_for_its_first_reason(bench: Bench) {
    end_large(&bench, 6, 0).await;
    let keep = Keep { bytes: 2 * LARGE as u64, ..keep(3, ms(8)) };
    // At 10 ms the first two tasks are too old, the third is above the limit of three tasks, and
    // two more are above the bytes.
    let purged = purge_above(&bench, 10, keep).await;
    assert_eq!((purged.tasks, purged.above_count, purged.above_bytes), (5, 1, 2));
}

async fn the_counted_bytes_are_those_of_the_kept_tasks(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let bytes = async || {
        let counts = bench.now().counts(&bench.queue).await.unwrap();
        assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
        (counts.dead_bytes, counts.cancelled_bytes)
    };
    let id = bench.add(0, job().biz_id("b").expires_in(LONG)).await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
    let (first, _) = bytes().await;
    assert!(first > 0);
    bench.at(1).requeue_as(&id, "once").await.unwrap();
    bench.at(1).requeue_as(&id, "once").await.unwrap();
    assert_eq!(bytes().await, (0, 0));
    let lease = bench.take(1, &worker, 2).await;
    assert!(bench.fail(1, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
    assert!(bytes().await.0 > first, "the task's error history is longer");
    bench.at(2).requeue(&id).await.unwrap();
    bench.at(2).cancel(&id).await.unwrap();
    bench.at(2).cancel(&id).await.unwrap();
    assert!(bytes().await.1 > first);
    assert_eq!(purge(&bench, 9, 0, LONG).await.tasks, 1);
    assert_eq!(bytes().await, (0, 0));
}

/// Another program may have written such a count.
async fn a_count_that_is_too_low_does_not_become_negative(bench: Bench) {
    let (dead, _) = end_large(&bench, 3, 0).await;
    let () = bench.raw(cmd("HDEL").arg(bench.key("meta")).arg("dead_bytes")).await;
    bench.at(9).requeue(&dead[0]).await.unwrap();
    assert_eq!(bench.field("meta", "dead_bytes").await.as_deref(), Some("0"));
    assert_eq!(purge(&bench, 9, 0, LONG).await.tasks, 2);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0], "no task is left, and no bytes are counted");
}

async fn tasks_past_their_age_are_purged(bench: Bench) {
    let leases = mark_dead(&bench, 5).await;
    assert_eq!(purge(&bench, 9, MANY, ms(10)).await.tasks, 0);
    assert_eq!(purge(&bench, 11, MANY, ms(10)).await.tasks, 2);
    assert_eq!(bench.state(&leases[1].id).await, TaskState::Forgotten);
    assert_eq!(bench.state(&leases[2].id).await, TaskState::Dead);
}

async fn a_purge_removes_all_data_of_a_task(bench: Bench) {
    let large = format!("\"{}\"", "x".repeat(20_000));
    for call in [job_of(large).biz_id("b").priority(1), job().biz_id("c")] {
        let id = bench.add(0, call).await;
        bench.at(0).cancel(&id).await.unwrap();
        bench.at(0).requeue(&id).await.unwrap();
    }
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 8).await.leases(&worker);
    let failures: Vec<_> = leases.iter().map(|lease| failed(lease, FailureOutcome::Dead)).collect();
    assert!(bench.fail(0, &failures).await.is_empty());
    assert_eq!(purge(&bench, 9, 0, LONG).await.tasks, 2);
    let left = ["ledger:c1", "meta", "wake", "worker:w", "workers", "working:w"];
    assert_eq!(bench.names().await, left);
}

async fn cancelled_tasks_are_purged_apart_from_dead_ones(bench: Bench) {
    mark_dead(&bench, 3).await;
    let cancelled = jobs(3);
    bench.submit(0, &cancelled).await;
    for id in ids_of(&cancelled) {
        bench.at(5).cancel(&id).await.unwrap();
    }
    assert_eq!(purge(&bench, 9, 2, LONG).await.tasks, 2, "one of each kind");
    let counts = bench.now().counts(&bench.queue).await.unwrap();
    assert_eq!((counts.dead, counts.cancelled), (2, 2));
}

async fn a_purge_is_bounded_and_reports_that_there_is_more(bench: Bench) {
    mark_dead(&bench, 128).await;
    for (tasks, more) in [(64, true), (64, true), (0, false)] {
        let purged = purge(&bench, 200, 0, LONG).await;
        assert_eq!((purged.tasks, purged.more), (tasks, more));
    }
    assert_eq!(bench.now().counts(&bench.queue).await.unwrap().dead, 0);
}

async fn live_tasks_are_never_purged(bench: Bench) {
    bench.submit(0, &jobs(3)).await;
    let worker = bench.worker(0, "w").await;
    bench.take(0, &worker, 1).await;
    let before = bench.dump().await;
    assert_eq!(purge(&bench, 900_000, 0, ms(0)).await.tasks, 0);
    bench.assert_unchanged(&before).await;
}

async fn idle_ledgers_are_purged_and_used_ones_stay(bench: Bench) {
    for (client, at) in [("idle", 0), ("used", 50)] {
        let tasks = [ready(job())];
        let batch =
            Batch { queue: &bench.queue, client, number: 1, since: 0, keep: true, tasks: &tasks };
        bench.at(at).submit(&batch).await.unwrap();
    }
    let before = bench.dump().await;
    let purged = bench.at(100).purge(&bench.queue, keep(MANY, LONG), ms(60)).await.unwrap();
    assert_eq!((purged.tasks, purged.more), (0, false));
    assert_eq!(bench.changes(&before).await, ["ledger:idle", "ledgers"]);
    assert_eq!(bench.score("ledgers", "idle").await, None);
    assert!(bench.score("ledgers", "used").await.is_some());
}

async fn it_returns_how_many_workers_the_queue_has(bench: Bench) {
    assert_eq!(purge(&bench, 0, MANY, LONG).await.workers, 0);
    for name in ["one", "two", "two"] {
        bench.worker(0, name).await;
    }
    assert_eq!(purge(&bench, 0, MANY, LONG).await.workers, 2);
}

on_both![
    tasks_above_the_cap_are_purged_the_oldest_first,
    tasks_that_have_just_ended_stay_above_the_cap,
    tasks_above_the_bytes_are_purged_the_oldest_first,
    each_purged_task_is_counted_for_its_first_reason,
    the_counted_bytes_are_those_of_the_kept_tasks,
    a_count_that_is_too_low_does_not_become_negative,
    tasks_past_their_age_are_purged,
    a_purge_removes_all_data_of_a_task,
    cancelled_tasks_are_purged_apart_from_dead_ones,
    a_purge_is_bounded_and_reports_that_there_is_more,
    live_tasks_are_never_purged,
    idle_ledgers_are_purged_and_used_ones_stay,
    it_returns_how_many_workers_the_queue_has,
];
