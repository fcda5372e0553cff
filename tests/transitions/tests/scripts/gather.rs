//! Tasks that run together: they wait in their key, and one of them leads when the run is due.

use optimus_core::{Due, Lane, TaskState, broker::Receipt};

use crate::{
    acts::{Grants, ms},
    after::after,
    bench::Bench,
    gathers::{gathered, many_of, three_of},
    jobs::{job, ready_at},
    limits::one_in_10_s,
};

async fn calls_wait_for_the_time_of_the_first_and_one_of_them_leads(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let first = bench.add_gathered(0, &many_of("a")).await;
    let second = bench.add_gathered(4_000, &many_of("a")).await;
    assert_eq!(bench.state(&first).await, TaskState::Blocked);
    bench.assert_gathering("a", &[(&first, 0), (&second, 4_000)], Some(10_000)).await;
    let early = bench.claim(9_000, &worker, 1, 9).await;
    assert_eq!((early.ids(), early.next_due), (vec![], Some(ms(1_000))));
    assert_eq!(bench.claim(10_000, &worker, 2, 9).await.ids(), std::slice::from_ref(&first));
    bench.assert_gathering("a", &[(&first, -1), (&second, 4_000)], Some(25_000)).await;
    assert_eq!(bench.state(&second).await, TaskState::Blocked);
}

async fn a_run_is_due_at_once_when_enough_calls_wait(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let one = bench.add_gathered(0, &three_of("a")).await;
    bench.answer_wakeup().await;
    let two = bench.add_gathered(1, &three_of("a")).await;
    assert!(!bench.answer_wakeup().await, "the worker waits for the time of the first");
    let three = bench.add_gathered(2, &three_of("a")).await;
    assert!(bench.answer_wakeup().await, "the run is due earlier");
    bench.assert_gathering("a", &[(&one, 0), (&two, 1), (&three, 2)], Some(2)).await;
    assert_eq!(bench.claim(3, &worker, 1, 9).await.ids(), [one]);
}

async fn the_smallest_maximum_starts_a_run(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.submit(0, &gathered(0, 4, &many_of("a"))).await;
    assert_eq!(bench.due_run("a").await, Some(10_000));
    bench.add_gathered(5, &three_of("a")).await;
    assert_eq!(bench.due_run("a").await, Some(5));
    bench.add_gathered(6, &three_of("a")).await;
    assert_eq!(bench.due_run("a").await, Some(5), "it stays due");
    assert_eq!(bench.claim(7, &worker, 1, 9).await.grants.len(), 1);
    bench.answer_wakeup().await;
    bench.add_gathered(8, &three_of("a")).await;
    assert_eq!(bench.due_run("a").await, Some(15_007), "the run has begun");
    assert!(!bench.answer_wakeup().await);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn calls_of_one_submit_and_of_other_keys_join_their_own_keys(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let mut tasks = gathered(0, 4, &three_of("a"));
    tasks.extend(gathered(0, 1, &three_of("b")));
    tasks.push(ready_at(0, job()));
    tasks.extend(gathered(0, 1, &three_of("a")));
    bench.submit(0, &tasks).await;
    assert_eq!(bench.gathering("a").await.len(), 5);
    assert_eq!((bench.due_run("a").await, bench.due_run("b").await), (Some(0), Some(10_000)));
    assert_eq!(bench.now().counts(&bench.queue).await.unwrap().blocked, 6);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    let ids = bench.claim(1, &worker, 1, 9).await.ids();
    assert_eq!(ids.len(), 2, "the plain task, and one that leads");
    assert!(ids.contains(tasks[5].id()));
    assert_eq!(bench.now().counts(&bench.queue).await.unwrap().blocked, 5);
}

async fn one_task_of_a_key_leads_at_a_time(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let tasks = gathered(0, 7, &three_of("a"));
    bench.submit(0, &tasks).await;
    assert_eq!(bench.claim(1, &worker, 1, 9).await.grants.len(), 1);
    bench.add_gathered(2, &three_of("a")).await;
    bench.at(14_000).renew(&bench.queue, &worker, ms(60_000)).await.unwrap();
    for (at, seq) in [(3, 2), (15_001, 3), (30_002, 4)] {
        assert!(bench.claim(at, &worker, seq, 9).await.grants.is_empty(), "at {at}");
    }
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_delayed_call_joins_when_it_is_due(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(60_000)).await;
    let call = job().due(Due::In(ms(5_000)));
    let id = bench.add_call_gathered(0, &many_of("a"), call).await;
    assert_eq!(bench.state(&id).await, TaskState::Delayed);
    let claimed = bench.claim(6_000, &worker, 1, 9).await;
    assert_eq!((claimed.ids(), claimed.next_due), (vec![], Some(ms(10_000))));
    bench.assert_gathering("a", &[(&id, 6_000)], Some(16_000)).await;
    assert_eq!(bench.claim(16_000, &worker, 2, 9).await.ids(), [id]);
}

async fn a_call_with_prerequisites_joins_after_them(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(60_000)).await;
    let needed = bench.add(0, job()).await;
    let task = ready_at(0, job()).waiting_for(after(&needed)).gathered(many_of("a"));
    bench.submit(0, std::slice::from_ref(&task)).await;
    assert_eq!(bench.gathering("a").await, []);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    let lease = bench.take(1, &worker, 1).await;
    assert_eq!(lease.id, needed);
    bench.complete(2, &[crate::acts::done(&lease)]).await;
    assert!(bench.claim(3, &worker, 2, 9).await.grants.is_empty());
    bench.assert_gathering("a", &[(task.id(), 3)], Some(10_003)).await;
}

async fn the_run_has_the_priority_of_the_task_that_leads(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(60_000)).await;
    let id = bench.add_call_gathered(0, &many_of("a"), job().priority(3)).await;
    bench.submit(10_000, &gathered(0, 2, &many_of("a"))).await;
    bench.add(10_000, job()).await;
    assert_eq!(bench.claim(10_000, &worker, 1, 1).await.grants.len(), 1);
    bench.add(10_001, job()).await;
    assert_eq!(bench.state(&id).await, TaskState::Ready);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    assert_eq!(bench.take(10_001, &worker, 2).await.id, id, "before the task that waits less");
}

async fn a_biz_id_that_is_taken_joins_nothing(bench: Bench) {
    let first = bench.add_call_gathered(0, &many_of("a"), job().biz_id("x")).await;
    let again = ready_at(1, job().biz_id("x")).gathered(many_of("a"));
    let receipts = bench.submit(1, &[again]).await;
    assert_eq!(receipts, [Receipt::Duplicate(first.clone())]);
    bench.assert_gathering("a", &[(&first, 0)], Some(10_000)).await;
}

async fn a_run_takes_one_token_of_a_limit(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(60_000)).await;
    let limited = |key: &str| {
        let tasks = gathered(0, 3, &three_of(key)).into_iter();
        tasks.map(|task| task.limited_by(vec![one_in_10_s("r")])).collect::<Vec<_>>()
    };
    bench.submit(0, &limited("a")).await;
    bench.submit(0, &limited("b")).await;
    let leases = bench.claim(1, &worker, 1, 9).await.leases(&worker);
    assert_eq!(leases.len(), 1, "the other run waits for the limit");
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    assert_eq!(bench.collect(1, &leases[0], 2).await.grants.len(), 2);
    assert!(bench.claim(2, &worker, 2, 9).await.grants.is_empty());
    assert_eq!(bench.claim(10_002, &worker, 3, 9).await.grants.len(), 1);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn older_scripts_refuse_a_queue_with_such_tasks(bench: Bench) {
    assert_eq!(bench.field("meta", "needs").await, None);
    bench.add_in(0, &Lane::new("l")).await;
    bench.add_gathered(0, &three_of("a")).await;
    assert_eq!(bench.field("meta", "needs").await.as_deref(), Some("6"));
    bench.add_in(0, &Lane::new("l")).await;
    assert_eq!(bench.field("meta", "needs").await.as_deref(), Some("6"));
}

async fn an_inspector_lists_all_that_wait(bench: Bench) {
    for key in ["a", "b"] {
        bench.submit(0, &gathered(0, 3, &many_of(key))).await;
    }
    let mut cursor = String::new();
    let mut seen = std::collections::BTreeSet::new();
    loop {
        let page = bench.now().list(&bench.queue, TaskState::Blocked, 2, &cursor).await.unwrap();
        seen.extend(page.rows.iter().map(|row| row.id.clone()));
        cursor = page.next;
        if cursor.is_empty() {
            break;
        }
    }
    assert_eq!(seen.len(), 6);
}

on_both! {
    calls_wait_for_the_time_of_the_first_and_one_of_them_leads,
    a_run_is_due_at_once_when_enough_calls_wait,
    the_smallest_maximum_starts_a_run,
    calls_of_one_submit_and_of_other_keys_join_their_own_keys,
    one_task_of_a_key_leads_at_a_time,
    a_delayed_call_joins_when_it_is_due,
    a_call_with_prerequisites_joins_after_them,
    the_run_has_the_priority_of_the_task_that_leads,
    a_biz_id_that_is_taken_joins_nothing,
    a_run_takes_one_token_of_a_limit,
    older_scripts_refuse_a_queue_with_such_tasks,
    an_inspector_lists_all_that_wait,
}
