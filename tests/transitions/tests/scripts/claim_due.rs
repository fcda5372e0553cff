//! `claim` adds due tasks to the ready list first: Delayed | Retry → Ready → Working.

use std::collections::BTreeSet;

use optimus_core::{
    Due, TaskState,
    broker::{FailureOutcome, Give},
};

use crate::{
    acts::{Grants, done, failed, given, ids_of, ms},
    bench::Bench,
    jobs::{job, jobs, ready},
};

async fn a_due_task_is_claimed_and_not_sooner(bench: Bench) {
    let late = bench.add(0, job().due(Due::In(ms(20)))).await;
    let early = bench.add(0, job().due(Due::In(ms(10)))).await;
    let worker = bench.worker(0, "w").await;
    for (at, granted, wait) in
        [(9, None, Some(1)), (10, Some(early), Some(10)), (20, Some(late), None)]
    {
        let claimed = bench.claim(at, &worker, at, 8).await;
        assert_eq!(claimed.ids(), Vec::from_iter(granted), "at {at}");
        assert_eq!(claimed.next_due, wait.map(ms), "at {at}");
        assert!(!claimed.more);
    }
}

async fn a_due_retry_is_claimed_with_its_tries(bench: Bench) {
    let id = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Retry(ms(30)))]).await.is_empty());
    assert_eq!(bench.state(&id).await, TaskState::Retry);
    assert_eq!(bench.claim(29, &worker, 2, 1).await.next_due, Some(ms(1)));

    let claimed = bench.claim(30, &worker, 3, 1).await;
    assert_eq!((claimed.ids(), claimed.grants[0].tries), (vec![id], (1, 0, 0)));
    assert!(!bench.names().await.contains(&"retry".to_owned()));
}

async fn the_next_due_time_is_the_earlier_of_both_kinds(bench: Bench) {
    bench.add(0, job()).await;
    bench.add(0, job().due(Due::In(ms(50)))).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Retry(ms(40)))]).await.is_empty());
    assert_eq!(bench.claim(1, &worker, 2, 1).await.next_due, Some(ms(39)));
    assert_eq!(bench.claim(40, &worker, 3, 1).await.next_due, Some(ms(10)));
}

async fn due_tasks_follow_the_ready_list_and_stay_there_if_the_claim_is_full(bench: Bench) {
    let line = jobs(2);
    bench.submit(0, &line).await;
    let (due, ranked) = (
        bench.add(0, job().due(Due::In(ms(5)))).await,
        bench.add(0, job().due(Due::In(ms(6))).priority(9)).await,
    );
    let worker = bench.worker(0, "w").await;
    assert!(bench.answer_wakeup().await);
    let claimed = bench.claim(7, &worker, 1, 1).await;
    assert_eq!((claimed.ids(), claimed.more), (vec![line[0].id().clone()], true));
    for id in [&due, &ranked] {
        assert_eq!(bench.state(id).await, TaskState::Ready);
    }
    assert!(bench.answer_wakeup().await, "a worker is woken for the work that is left");
    let rest = bench.claim(7, &worker, 2, 8).await;
    assert_eq!(
        rest.ids(),
        [ranked, line[1].id().clone(), due],
        "the ranked task comes by its priority"
    );
}

async fn a_due_task_is_ready_since_a_claim_found_it_due(bench: Bench) {
    let first = bench.add(0, job()).await;
    let due = bench.add(0, job().due(Due::In(ms(50)))).await;
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    assert_eq!(bench.claim(60, &worker, 1, 1).await.ids(), [first]);
    // A step of priority counts as a minute, so these two tasks are a ms before and after that
    // time.
    let before = bench.add(60_059, job().priority(1)).await;
    let after = bench.add(60_061, job().priority(1)).await;
    assert_eq!(bench.claim(60_070, &worker, 2, 8).await.ids(), [before, due, after]);
}

async fn a_cancelled_delayed_task_costs_one_claim(bench: Bench) {
    let (gone, later) = (Due::In(ms(10)), Due::In(ms(40)));
    let gone = bench.add(0, job().due(gone)).await;
    let later = bench.add(0, job().due(later)).await;
    bench.at(0).cancel(&gone).await.unwrap();
    let worker = bench.worker(0, "w").await;
    assert_eq!(
        bench.claim(0, &worker, 1, 8).await.next_due,
        Some(ms(10)),
        "a time that is too early is harmless"
    );
    let found = bench.claim(10, &worker, 2, 8).await;
    assert_eq!((found.ids(), found.next_due), (vec![], Some(ms(30))));
    assert_eq!(bench.claim(40, &worker, 3, 8).await.ids(), [later]);
    assert_eq!(bench.field("meta", "due").await, None, "no task is delayed");
}

async fn a_task_that_comes_back_has_its_tries_on_every_path(bench: Bench) {
    let ids = jobs(3);
    bench.submit(0, &ids).await;
    let ids = ids_of(&ids);
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    let leases = bench.claim(0, &worker, 1, 8).await.leases(&worker);
    let reports: Vec<_> = leases.iter().map(|l| failed(l, FailureOutcome::Retry(ms(5)))).collect();
    assert!(bench.fail(0, &reports).await.is_empty());
    // The task is retried, then released to the head of the ready list, then Dead and requeued.
    let retried = bench.claim(5, &worker, 2, 8).await;
    assert!(retried.grants.iter().all(|g| (g.tries, g.was_tried) == ((1, 0, 0), true)));
    let leases = retried.leases(&worker);
    assert!(bench.release(6, &[given(&leases[0], Give::Head)]).await.is_empty());
    let back = bench.claim(6, &worker, 3, 8).await;
    assert_eq!((back.ids(), back.grants[0].tries), (vec![leases[0].id.clone()], (1, 0, 0)));
    // A claim of one task reads it by itself.
    assert!(bench.release(6, &[given(&back.leases(&worker)[0], Give::Head)]).await.is_empty());
    let back = bench.claim(6, &worker, 5, 1).await;
    assert_eq!((back.ids(), back.grants[0].tries), (vec![leases[0].id.clone()], (1, 0, 0)));
    assert!(bench.fail(7, &[failed(&leases[1], FailureOutcome::Dead)]).await.is_empty());
    bench.at(8).requeue(&leases[1].id).await.unwrap();
    let requeued = bench.claim(8, &worker, 6, 8).await;
    assert_eq!(requeued.ids(), [leases[1].id.clone()]);
    assert_eq!((requeued.grants[0].tries, requeued.grants[0].was_tried), ((0, 0, 0), true));
    for lease in [&back.leases(&worker)[0], &requeued.leases(&worker)[0], &leases[2]] {
        assert!(bench.complete(9, &[done(lease)]).await.is_empty());
    }
    let left = bench.names().await;
    assert!(
        !left.iter().any(|name| ["tries", "errors"].contains(&name.as_str())),
        "{ids:?}: {left:?}"
    );
}

async fn at_most_128_of_each_kind_become_ready_in_a_call(bench: Bench) {
    let retries = jobs(200);
    bench.submit(0, &retries).await;
    let worker = bench.worker(0, "w").await;
    for seq in 1..=2 {
        let leases = bench.claim(0, &worker, seq, 128).await.leases(&worker);
        let failures: Vec<_> =
            leases.iter().map(|l| failed(l, FailureOutcome::Retry(ms(5)))).collect();
        assert!(bench.fail(0, &failures).await.is_empty());
    }
    let later: Vec<_> = (0..200).map(|_| ready(job().due(Due::In(ms(5))))).collect();
    bench.submit(0, &later).await;

    let claimed = bench.claim(9, &worker, 3, 1).await;
    assert_eq!((claimed.grants.len(), claimed.more), (1, true));
    let counts = bench.now().counts(&bench.queue).await.unwrap();
    assert_eq!((counts.ready, counts.delayed, counts.retry), (255, 72, 72));
}

async fn ten_thousand_tasks_due_in_one_millisecond_are_claimed_call_by_call(bench: Bench) {
    let mut expected = BTreeSet::new();
    for _ in 0..10 {
        let tasks: Vec<_> = (0..1_000).map(|_| ready(job().due(Due::In(ms(5))))).collect();
        expected.extend(ids_of(&tasks));
        bench.submit(0, &tasks).await;
    }
    let worker = bench.worker(0, "w").await;
    let mut claimed = BTreeSet::new();
    for seq in 1..=100 {
        let answer = bench.claim(5, &worker, seq, 128).await;
        if answer.grants.is_empty() {
            break;
        }
        assert_eq!(answer.grants.len(), 128.min(10_000 - claimed.len()));
        claimed.extend(answer.ids());
    }
    assert_eq!(claimed, expected);
}

async fn a_claim_reports_that_more_tasks_are_due_than_it_moves(bench: Bench) {
    let tasks: Vec<_> = (0..129).map(|_| ready(job().due(Due::In(ms(5))))).collect();
    bench.submit(0, &tasks).await;
    let worker = bench.worker(0, "w").await;
    let claimed = bench.claim(5, &worker, 1, 128).await;
    assert_eq!(claimed.grants.len(), 128);
    assert_eq!((claimed.more, claimed.next_due), (true, None), "the worker claims again");
}

async fn one_worker_waits_for_a_due_time_and_the_others_are_standbys(bench: Bench) {
    bench.add(0, job().due(Due::In(ms(50)))).await;
    let mut workers = Vec::new();
    for name in ["one", "two", "three"] {
        workers.push(bench.worker(0, name).await);
    }
    let answer_of = async |at: u64, worker: usize| {
        let claimed = bench.claim(at, &workers[worker], at + 1, 8).await;
        (claimed.next_due, claimed.standby)
    };
    assert_eq!(answer_of(0, 0).await, (Some(ms(50)), None));
    assert_eq!(answer_of(1, 1).await, (Some(ms(49)), Some(3)));
    assert_eq!(answer_of(2, 0).await, (Some(ms(48)), None), "the worker still waits");
    // Another task is due sooner. The first worker that reads the new time waits for it.
    bench.add(3, job().due(Due::In(ms(17)))).await;
    assert_eq!(answer_of(4, 1).await, (Some(ms(16)), None));
    assert_eq!(answer_of(5, 0).await, (Some(ms(15)), Some(3)));
    // The time has come and the waiting worker did not claim: the next one takes its place.
    assert_eq!(bench.claim(20, &workers[2], 21, 1).await.next_due, Some(ms(30)));
    assert_eq!(answer_of(21, 1).await, (Some(ms(29)), Some(3)));
}

async fn a_claim_of_zero_tasks_moves_due_tasks_and_adds_a_wakeup(bench: Bench) {
    let id = bench.add(0, job().due(Due::In(ms(50)))).await;
    let worker = bench.worker(0, "w").await;
    bench.answer_wakeup().await;
    let claimed = bench.claim(50, &worker, 1, 0).await;
    assert_eq!((claimed.ids(), claimed.more), (vec![], true));
    assert!(bench.answer_wakeup().await);
    assert_eq!(bench.state(&id).await, TaskState::Ready);
}

async fn a_paused_queue_does_not_move_due_tasks(bench: Bench) {
    let id = bench.add(0, job().due(Due::In(ms(5)))).await;
    let worker = bench.worker(0, "w").await;
    bench.at(0).pause(&bench.queue).await.unwrap();
    bench.at(9).claim(&bench.queue, &worker, 1, 1).await.unwrap_err();
    assert_eq!(bench.state(&id).await, TaskState::Delayed);
}

on_both![
    a_cancelled_delayed_task_costs_one_claim,
    a_task_that_comes_back_has_its_tries_on_every_path,
    a_due_task_is_claimed_and_not_sooner,
    a_due_retry_is_claimed_with_its_tries,
    the_next_due_time_is_the_earlier_of_both_kinds,
    one_worker_waits_for_a_due_time_and_the_others_are_standbys,
    a_claim_of_zero_tasks_moves_due_tasks_and_adds_a_wakeup,
    due_tasks_follow_the_ready_list_and_stay_there_if_the_claim_is_full,
    a_due_task_is_ready_since_a_claim_found_it_due,
    at_most_128_of_each_kind_become_ready_in_a_call,
    ten_thousand_tasks_due_in_one_millisecond_are_claimed_call_by_call,
    a_claim_reports_that_more_tasks_are_due_than_it_moves,
    a_paused_queue_does_not_move_due_tasks,
];
