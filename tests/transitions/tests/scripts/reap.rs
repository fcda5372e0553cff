//! `reap`: Working → Ready | Dead | Cancelled, for workers whose lease is over.

use optimus_core::{
    Call, Due, OnLost, TaskState, WorkerId,
    broker::{FailureOutcome, Lost, Reaped},
};
use redis::cmd;

use crate::{
    acts::{Grants, LEASE, LEASE_MS, done, failed, ids_of, ms},
    bench::{Bench, START},
    dump::Dump,
    jobs::{Fragile, job, jobs, ready},
};

/// Registers a worker that watches the leases until now, so that a reap finds no outage.
async fn watcher(bench: &Bench, at: u64) -> WorkerId {
    let watched_at = bench.field("meta", "watched_at").await;
    let mut now = watched_at.map_or(at, |ms| ms.parse::<u64>().unwrap() - START);
    loop {
        now = at.min(now + LEASE_MS / 2);
        let watcher = bench.worker_for(now, "watcher", ms(10_000_000)).await;
        if now == at {
            return watcher;
        }
    }
}

async fn reap(bench: &Bench, at: u64, limit: usize) -> Reaped {
    let watcher = watcher(bench, at).await;
    bench.at(at).reap(&bench.queue, &watcher, LEASE, limit).await.expect("a reap is not refused")
}

/// Makes the worker `lost` claim all tasks at `at` and then stop. Returns when its lease is over.
async fn lose(bench: &Bench, at: u64) -> u64 {
    let lost = bench.worker(at, "lost").await;
    bench.claim(at, &lost, 1, 128).await;
    watcher(bench, at).await;
    at + LEASE_MS
}

/// Makes the worker `lost` claim one task to run alone, and then stop.
async fn lose_alone(bench: &Bench, at: u64) -> u64 {
    let lost = bench.worker(at, "lost").await;
    bench.at(at).claim_alone(&bench.queue, &lost, 1).await.expect("this claim is not refused");
    watcher(bench, at).await;
    at + LEASE_MS
}

async fn nothing_is_reaped_before_its_lease_is_over(bench: Bench) {
    bench.submit(0, &jobs(2)).await;
    let over = lose(&bench, 0).await;
    let watcher = watcher(&bench, over - 1).await;
    let before = bench.dump().await;
    let reaped = bench.at(over - 1).reap(&bench.queue, &watcher, LEASE, 128).await.unwrap();
    assert_eq!((reaped.tasks, reaped.more, reaped.next_expiry), (0, false, Some(ms(1))));
    assert!(reaped.lapsed.is_empty());
    bench.assert_unchanged(&before).await;
}

async fn lost_tasks_go_to_the_head(bench: Bench) {
    let lost = jobs(3);
    bench.submit(0, &lost).await;
    let mut entries = bench.ready_list().await;
    let over = lose(&bench, 0).await;
    let later = bench.add(over, job()).await;

    let reaped = reap(&bench, over, 128).await;
    assert_eq!((reaped.tasks, reaped.more, reaped.next_expiry), (3, false, None));
    assert_eq!(reaped.lapsed, ["lost"]);
    assert_eq!(reaped.lost.len(), 3);
    for task in &reaped.lost {
        assert_eq!((task.worker.as_str(), task.attempt), ("lost", 1));
        assert_eq!((task.task.as_deref(), task.state), (Some("job"), TaskState::Ready));
    }
    let mut line = bench.ready_list().await;
    assert_eq!(line.pop(), Some(later.stored()));
    line.sort();
    entries.sort();
    assert_eq!(line, entries);
    for id in ids_of(&lost) {
        assert_eq!((bench.state(&id).await, bench.tries(&id).await), (TaskState::Ready, (0, 1, 0)));
    }
}

async fn a_ranked_task_keeps_its_rank(bench: Bench) {
    let id = bench.add(0, job().priority(3)).await;
    let score = bench.score("priority", &id.stored()).await;
    let over = lose(&bench, 0).await;
    reap(&bench, over, 128).await;
    assert_eq!(bench.score("priority", &id.stored()).await, score);
}

async fn a_reap_removes_all_data_of_a_worker(bench: Bench) {
    bench.submit(0, &jobs(1)).await;
    let over = lose(&bench, 0).await;
    reap(&bench, over, 128).await;
    let names = bench.names().await;
    assert!(!names.iter().any(|name| name.ends_with(":lost")), "{names:?}");
    assert_eq!(bench.score("workers", "lost").await, None);
    assert!(bench.score("workers", "watcher").await.is_some());
}

async fn a_reap_is_bounded_and_reports_that_there_is_more(bench: Bench) {
    bench.submit(0, &jobs(5)).await;
    let over = lose(&bench, 0).await;
    for (left, more) in [(3, true), (1, true), (0, false)] {
        let reaped = reap(&bench, over, 2).await;
        assert_eq!((reaped.more, reaped.lapsed), (more, vec!["lost".to_owned()]));
        let counts = bench.now().counts(&bench.queue).await.unwrap();
        assert_eq!((counts.working, counts.ready), (left, 5 - left));
        assert_eq!(bench.score("workers", "lost").await.is_some(), left > 0);
    }
}

async fn no_reap_takes_more_than_128_tasks(bench: Bench) {
    bench.submit(0, &jobs(130)).await;
    let lost = bench.worker(0, "lost").await;
    bench.claim(0, &lost, 1, 128).await;
    bench.claim(0, &lost, 2, 128).await;
    watcher(&bench, 0).await;
    let reaped = reap(&bench, LEASE_MS, 1_000).await;
    assert_eq!((reaped.tasks, reaped.more), (128, true));
    assert_eq!(reap(&bench, LEASE_MS, 1_000).await.tasks, 2);
}

async fn many_lapsed_workers_are_reaped_call_by_call(bench: Bench) {
    bench.submit(0, &jobs(20)).await;
    for n in 0..20 {
        let worker = bench.worker(0, &format!("w{n}")).await;
        bench.take(0, &worker, 1).await;
    }
    let first = reap(&bench, LEASE_MS, 128).await;
    assert_eq!((first.tasks, first.more), (16, true));
    let second = reap(&bench, LEASE_MS, 128).await;
    assert_eq!((second.tasks, second.more), (4, false));
}

async fn losses_are_counted_apart_from_failures_and_the_third_marks_dead(bench: Bench) {
    let id = bench.add(0, job().biz_id("b")).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Retry(ms(1)))]).await.is_empty());
    let mut now = 1;
    for (losses, state) in [(1, TaskState::Ready), (2, TaskState::Ready), (3, TaskState::Dead)] {
        now = lose_alone(&bench, now).await;
        reap(&bench, now, 128).await;
        let found = bench.now().inspect(&id).await.unwrap();
        assert_eq!((found.state, found.tries), (state, (1, losses, 0)));
        assert_eq!(found.errors.lines().count(), 1 + usize::try_from(losses).unwrap());
    }
    assert_eq!(
        bench.duplicate_of(now, job().biz_id("b")).await,
        Some(id),
        "a dead task keeps its biz id"
    );
}

async fn a_loss_is_written_into_the_history(bench: Bench) {
    let id = bench.add(0, job()).await;
    let over = lose(&bench, 0).await;
    reap(&bench, over, 128).await;
    let errors = bench.now().inspect(&id).await.unwrap().errors;
    let (at, entry) = errors.split_once(' ').unwrap();
    assert_eq!(at, (START + over).to_string());
    let entry: serde_json::Value = serde_json::from_str(entry).unwrap();
    let expected = serde_json::json!({ "reason": "lost", "attempt": 1, "worker": "lost" });
    assert_eq!(entry, expected);
}

async fn a_task_may_be_marked_dead_by_its_first_loss(bench: Bench) {
    let (fragile, once) = (ready(Call::new(Fragile)), ready(job().on_lost(OnLost::Dead)));
    for (task, alone, name) in [(fragile, true, "fragile"), (once, false, "job")] {
        let (id, name) = (task.id().clone(), name.to_owned());
        bench.submit(0, &[task]).await;
        let over = if alone { lose_alone(&bench, 0).await } else { lose(&bench, 0).await };
        bench.wait(&id, "c").await;
        let lost = reap(&bench, over, 128).await.lost;
        let (worker, state) = (WorkerId::from_stored("lost"), TaskState::Dead);
        assert_eq!(
            lost,
            [Lost { id: id.clone(), worker, task: Some(name), attempt: 1, state, run: None }]
        );
        assert_eq!((bench.state(&id).await, bench.tries(&id).await), (TaskState::Dead, (0, 1, 0)));
        assert_eq!(bench.score("dead", &id.stored()).await, Some(START + over));
        assert!(bench.completions("c").await.contains(&format!("{} dead", id.stored())));
        assert!(bench.list("ready").await.is_empty());
    }
}

async fn a_task_that_was_lost_with_others_is_not_marked_dead(bench: Bench) {
    let id = bench.add(0, Call::new(Fragile)).await;
    for losses in 1..=5 {
        let over = lose(&bench, u64::from(losses) * LEASE_MS).await;
        reap(&bench, over, 128).await;
        assert_eq!(
            (bench.state(&id).await, bench.tries(&id).await),
            (TaskState::Ready, (0, losses, 0))
        );
    }
    let over = lose_alone(&bench, 10 * LEASE_MS).await;
    reap(&bench, over, 128).await;
    assert_eq!(bench.state(&id).await, TaskState::Dead);
}

async fn the_next_claim_of_a_worker_ends_its_claim_alone(bench: Bench) {
    let first = bench.add(0, Call::new(Fragile)).await;
    let lost = bench.worker(0, "lost").await;
    let alone = bench.at(0).claim_alone(&bench.queue, &lost, 1).await.unwrap();
    let second = bench.add(0, Call::new(Fragile)).await;
    bench.claim(0, &lost, 2, 1).await;
    assert!(bench.complete(0, &[done(&alone.leases(&lost)[0])]).await.is_empty());
    watcher(&bench, 0).await;
    reap(&bench, LEASE_MS, 128).await;
    assert_eq!(bench.state(&first).await, TaskState::Success);
    assert_eq!(bench.state(&second).await, TaskState::Ready);
}

async fn a_claim_that_grants_nothing_ends_a_claim_alone(bench: Bench) {
    let id = bench.add(0, Call::new(Fragile)).await;
    let lost = bench.worker(0, "lost").await;
    bench.at(0).claim_alone(&bench.queue, &lost, 1).await.unwrap();
    assert!(bench.claim(0, &lost, 2, 1).await.grants.is_empty());
    assert!(bench.claim(0, &lost, 2, 1).await.grants.is_empty(), "the repeat has no effect");
    watcher(&bench, 0).await;
    reap(&bench, LEASE_MS, 128).await;
    assert_eq!(bench.state(&id).await, TaskState::Ready, "others may have run at the same time");
}

async fn a_lost_task_with_a_requested_cancel_is_cancelled(bench: Bench) {
    let id = bench.add(0, job().biz_id("b").on_lost(OnLost::Dead)).await;
    let over = lose(&bench, 0).await;
    bench.wait(&id, "c").await;
    bench.at(1).cancel(&id).await.unwrap();
    reap(&bench, over, 128).await;
    assert_eq!(bench.state(&id).await, TaskState::Cancelled);
    assert_eq!(bench.field("cancel", &id.stored()).await, None);
    assert_eq!(bench.completions("c").await, [format!("{} cancelled", id.stored())]);
    assert_eq!(bench.duplicate_of(over, job().biz_id("b")).await, None);
}

async fn a_damaged_record_does_not_stop_a_reap_or_a_later_claim(bench: Bench) {
    let deep = format!("loyw3v28{}{}\n", "[".repeat(2_000), "]".repeat(2_000));
    let damaged = [
        "",
        "x",
        "no newline at all",
        "!!!!!!!!{}\n{}",
        "LOYW3V28{}\n{}",
        "loyw3v28{\"t\":\n{}",
        "loyw3v28[]\n",
        "loyw3v28null\n",
        "loyw3v28{\"t\":1,\"z\":2,\"l\":[],\"m\":{},\"w\":\"x\"}\n",
        &deep,
    ];
    for priority in [0, 5] {
        let tasks = damaged.map(|_| ready(job().priority(priority)));
        bench.submit(0, &tasks).await;
        for (task, record) in tasks.iter().zip(damaged) {
            let stored = task.id().stored();
            let () = bench.raw(cmd("HSET").arg(bench.key("tasks")).arg(stored).arg(record)).await;
        }
    }
    let over = lose(&bench, 0).await;
    bench.add(over, job().priority(1)).await;
    assert_eq!(reap(&bench, over, 128).await.tasks, 2 * damaged.len());
    let worker = watcher(&bench, over).await;
    let mut claimed = Vec::new();
    for seq in 1..100 {
        let answer = bench.claim(over, &worker, seq, 3).await;
        claimed.extend(answer.ids());
        if !answer.more {
            break;
        }
    }
    assert_eq!(claimed.len(), 2 * damaged.len() + 1, "the next worker decides about each");
}

async fn a_held_task_without_a_record_is_removed(bench: Bench) {
    let tasks = jobs(2);
    bench.submit(0, &tasks).await;
    let over = lose(&bench, 0).await;
    let gone = tasks[0].id();
    let () = bench.raw(cmd("HDEL").arg(bench.key("tasks")).arg(gone.stored())).await;
    assert_eq!(reap(&bench, over, 128).await.tasks, 2);
    assert_eq!(bench.ready_list().await, [tasks[1].id().stored()]);
    assert_eq!(bench.state(gone).await, TaskState::Forgotten);
    assert_eq!(bench.field("tries", &gone.stored()).await, None);
}

async fn a_reap_adds_a_wakeup(bench: Bench) {
    bench.submit(0, &jobs(1)).await;
    let over = lose(&bench, 0).await;
    assert!(bench.answer_wakeup().await);
    reap(&bench, over, 128).await;
    assert!(bench.answer_wakeup().await);
}

async fn a_wakeup_that_a_reaped_worker_took_is_repeated(bench: Bench) {
    for call in [job(), job().priority(1), job().due(Due::In(ms(9 * LEASE_MS)))] {
        bench.restore(&Dump::new()).await;
        let over = lose(&bench, 0).await;
        bench.add(0, call).await;
        assert!(bench.answer_wakeup().await, "the worker that is lost");
        reap(&bench, over, 128).await;
        assert!(bench.answer_wakeup().await);
    }
    bench.restore(&Dump::new()).await;
    let over = lose(&bench, 0).await;
    reap(&bench, over, 128).await;
    assert!(!bench.answer_wakeup().await, "without work");
}

on_both![
    nothing_is_reaped_before_its_lease_is_over,
    lost_tasks_go_to_the_head,
    a_ranked_task_keeps_its_rank,
    a_reap_removes_all_data_of_a_worker,
    a_reap_is_bounded_and_reports_that_there_is_more,
    no_reap_takes_more_than_128_tasks,
    many_lapsed_workers_are_reaped_call_by_call,
    losses_are_counted_apart_from_failures_and_the_third_marks_dead,
    a_loss_is_written_into_the_history,
    a_task_may_be_marked_dead_by_its_first_loss,
    a_task_that_was_lost_with_others_is_not_marked_dead,
    the_next_claim_of_a_worker_ends_its_claim_alone,
    a_claim_that_grants_nothing_ends_a_claim_alone,
    a_lost_task_with_a_requested_cancel_is_cancelled,
    a_damaged_record_does_not_stop_a_reap_or_a_later_claim,
    a_held_task_without_a_record_is_removed,
    a_wakeup_that_a_reaped_worker_took_is_repeated,
    a_reap_adds_a_wakeup,
];
