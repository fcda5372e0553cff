//! `purge`: Dead | Cancelled → ∅, past their age or above the cap; and idle ledgers. That a mark of
//! another task's biz id stays: see `biz`.

use std::time::Duration;

use optimus_core::{
    Lease, TaskState,
    broker::{Batch, Purged, Verdict},
};

use crate::{
    acts::{Grants, failed, ids_of, ms},
    bench::Bench,
    jobs::{job, job_of, jobs, ready},
};

const LONG: Duration = Duration::from_secs(10_000_000);
const MANY: usize = 10_000;

async fn purge(bench: &Bench, at: u64, keep: usize, age: Duration) -> Purged {
    bench.at(at).purge(&bench.queue, keep, age, LONG).await.expect("a purge is not refused")
}

/// So many tasks that died at 0, 1, 2… ms.
async fn mark_dead(bench: &Bench, count: usize) -> Vec<Lease> {
    bench.submit(0, &jobs(count)).await;
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, count).await.leases(&worker);
    for (at, lease) in (0..).zip(&leases) {
        assert!(bench.fail(at, &[failed(lease, Verdict::Dead)]).await.is_empty());
    }
    leases
}

async fn what_is_above_the_cap_goes_the_oldest_first(bench: Bench) {
    let leases = mark_dead(&bench, 5).await;
    let purged = purge(&bench, 9, 3, LONG).await;
    assert_eq!((purged.tasks, purged.more), (2, false));
    for (position, lease) in leases.iter().enumerate() {
        let expected = if position < 2 { TaskState::Forgotten } else { TaskState::Dead };
        assert_eq!(bench.state(&lease.id).await, expected, "position {position}");
    }
    assert_eq!(bench.now().counts(&bench.queue).await.unwrap().purged, 2);
}

async fn what_is_past_its_age_goes(bench: Bench) {
    let leases = mark_dead(&bench, 5).await;
    assert_eq!(purge(&bench, 9, MANY, ms(10)).await.tasks, 0);
    assert_eq!(purge(&bench, 11, MANY, ms(10)).await.tasks, 2);
    assert_eq!(bench.state(&leases[1].id).await, TaskState::Forgotten);
    assert_eq!(bench.state(&leases[2].id).await, TaskState::Dead);
}

async fn nothing_of_a_purged_task_is_left(bench: Bench) {
    let large = format!("\"{}\"", "x".repeat(20_000));
    for call in [job_of(large).biz_id("b").priority(1), job().biz_id("c")] {
        let id = bench.add(0, call).await;
        bench.at(0).cancel(&id).await.unwrap();
        bench.at(0).requeue(&id).await.unwrap();
    }
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 8).await.leases(&worker);
    let failures: Vec<_> = leases.iter().map(|lease| failed(lease, Verdict::Dead)).collect();
    assert!(bench.fail(0, &failures).await.is_empty());
    assert_eq!(purge(&bench, 9, 0, LONG).await.tasks, 2);
    let left = ["ledger:c1", "meta", "wake", "worker:w", "workers", "working:w"];
    assert_eq!(bench.names().await, left);
}

async fn the_cancelled_are_purged_by_themselves(bench: Bench) {
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

async fn a_purge_is_bounded_and_says_that_there_is_more(bench: Bench) {
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

async fn idle_ledgers_go_and_used_ones_stay(bench: Bench) {
    for (client, at) in [("idle", 0), ("used", 50)] {
        let tasks = [ready(job())];
        let batch =
            Batch { queue: &bench.queue, client, number: 1, since: 0, keep: true, tasks: &tasks };
        bench.at(at).submit(&batch).await.unwrap();
    }
    let before = bench.dump().await;
    let purged = bench.at(100).purge(&bench.queue, MANY, LONG, ms(60)).await.unwrap();
    assert_eq!((purged.tasks, purged.more), (0, false));
    assert_eq!(bench.changes(&before).await, ["ledger:idle", "ledgers"]);
    assert_eq!(bench.score("ledgers", "idle").await, None);
    assert!(bench.score("ledgers", "used").await.is_some());
}

async fn it_tells_how_many_workers_share_the_chore(bench: Bench) {
    assert_eq!(purge(&bench, 0, MANY, LONG).await.workers, 0);
    for name in ["one", "two", "two"] {
        bench.worker(0, name).await;
    }
    assert_eq!(purge(&bench, 0, MANY, LONG).await.workers, 2);
}

on_both![
    what_is_above_the_cap_goes_the_oldest_first,
    what_is_past_its_age_goes,
    nothing_of_a_purged_task_is_left,
    the_cancelled_are_purged_by_themselves,
    a_purge_is_bounded_and_says_that_there_is_more,
    live_tasks_are_never_purged,
    idle_ledgers_go_and_used_ones_stay,
    it_tells_how_many_workers_share_the_chore,
];
