//! `complete`: Working → Success.

use std::slice;

use optimus_core::{
    TaskState,
    broker::{Completion, FailureOutcome, Give},
};
use redis::cmd;

use crate::{
    acts::{Grants, done, done_biz, failed, given, ids_of, ms},
    bench::{Bench, START},
    jobs::{job, job_of, jobs, ready},
};

async fn only_the_summary_of_a_success_is_left(bench: Bench) {
    let (id, other) = (bench.add(0, job()).await, bench.add(0, job()).await);
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 2).await.leases(&worker);
    let before = bench.dump().await;

    assert!(bench.complete(9, &[done(&leases[0])]).await.is_empty());

    assert_eq!(bench.changes(&before).await, ["success", "tasks", "working:w"]);
    let expected = format!("{} {} job 1 5 w", id.stored(), START + 7);
    assert_eq!(bench.list("success").await, slice::from_ref(&expected));
    let found = bench.now().inspect(&id).await.unwrap();
    assert_eq!((found.state, found.at_ms), (TaskState::Success, Some(START + 7)));
    assert_eq!((found.summary, found.record), (expected, Vec::new()));
    assert_eq!(bench.state(&other).await, TaskState::Working);
}

async fn data_apart_from_the_record_is_removed_with_it(bench: Bench) {
    let large = format!("\"{}\"", "x".repeat(20_000));
    let id = bench.add(0, job_of(large).priority(4)).await;
    bench.at(0).cancel(&id).await.unwrap();
    bench.at(0).requeue(&id).await.unwrap();
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Retry(ms(1)))]).await.is_empty());
    assert!(bench.claim(1, &worker, 2, 1).await.more, "the retry is ranked first");
    let lease = bench.take(1, &worker, 2).await;
    bench.at(1).cancel(&id).await.unwrap();
    bench.wait(&id, "c").await;
    let names = bench.names().await;
    for side in ["tries", "errors", "blobs", "cancel", "priorities", "waiters"] {
        assert!(names.contains(&side.to_owned()), "{side} is in use");
    }

    assert!(bench.complete(1, &[done(&lease)]).await.is_empty());
    let kept = bench.names().await;
    // The mark of the cancel stays until the next success.
    let expected = ["completions:c", "ledger:c1", "meta", "success", "waiters", "wake", "wake:w"];
    assert_eq!(kept, [&expected[..], &["worker:w", "workers", "working:w"]].concat());
    bench.assert_sound().await;
}

async fn a_success_removes_the_marks_of_keys_that_are_empty_and_no_other(bench: Bench) {
    bench.submit(0, &jobs(4)).await;
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 4).await.leases(&worker);
    for lease in &leases[..2] {
        bench.at(0).cancel(&lease.id).await.unwrap();
    }

    assert!(bench.complete(1, &[done(&leases[2])]).await.is_empty());
    assert!(bench.complete(1, &[done(&leases[0])]).await.is_empty());
    assert_eq!(bench.field("waiters", "#cancel").await.as_deref(), Some("1"));
    assert!(bench.complete(1, &[done(&leases[1])]).await.is_empty());
    bench.assert_sound().await;

    assert!(bench.complete(1, &[done(&leases[3])]).await.is_empty());
    let names = bench.names().await;
    assert!(!names.contains(&"waiters".to_owned()), "{names:?}");
    assert!(!names.contains(&"cancel".to_owned()), "{names:?}");
    assert_eq!(bench.state(&leases[0].id).await, TaskState::Success);
}

async fn a_success_overrides_a_requested_cancel(bench: Bench) {
    let id = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    bench.at(0).cancel(&id).await.unwrap();
    assert!(bench.complete(0, &[done(&lease)]).await.is_empty());
    assert_eq!(bench.state(&id).await, TaskState::Success);
    assert_eq!(bench.field("cancel", &id.stored()).await, None);
}

async fn a_result_is_kept_unchanged_for_its_time(bench: Bench) {
    bench.submit(0, &jobs(3)).await;
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 3).await.leases(&worker);
    let body: Vec<u8> = (0..=255).collect();
    let with = |i: usize, result: Vec<u8>| Completion {
        result: Some((result, ms(90_000))),
        ..done(&leases[i])
    };
    let reports = [with(0, body.clone()), done(&leases[1]), with(2, Vec::new())];
    assert!(bench.complete(0, &reports).await.is_empty());

    let broker = bench.now();
    assert_eq!(broker.result(&leases[0].id).await.unwrap(), Some(body));
    assert_eq!(broker.result(&leases[1].id).await.unwrap(), None);
    assert_eq!(broker.result(&leases[2].id).await.unwrap(), Some(Vec::new()));
    let key = bench.key(&format!("result:{}", leases[0].id.stored()));
    let ttl: i64 = bench.raw(cmd("PTTL").arg(key)).await;
    assert!((60_000..=90_000).contains(&ttl), "{ttl}");
}

async fn results_and_biz_ids_stay_with_their_task_if_others_are_stale(bench: Bench) {
    for name in ["a", "b", "c"] {
        bench.add(0, job().biz_id(name)).await;
    }
    let worker = bench.worker(0, "w").await;
    let mut leases = bench.claim(0, &worker, 1, 3).await.leases(&worker);
    leases[0].token.seq += 1;
    let reports: Vec<_> = leases
        .iter()
        .zip(["a", "b", "c"])
        .map(|(lease, name)| Completion {
            result: Some((name.into(), ms(90_000))),
            ..done_biz(lease, name)
        })
        .collect();
    assert_eq!(bench.complete(0, &reports).await, [0]);

    let broker = bench.now();
    for (lease, expected) in leases.iter().zip([None, Some(b"b".to_vec()), Some(b"c".to_vec())]) {
        assert_eq!(broker.result(&lease.id).await.unwrap(), expected);
    }
    let marks: Vec<_> =
        bench.names().await.into_iter().filter(|name| name.starts_with("biz:")).collect();
    assert_eq!(marks, ["biz:job:a"]);
}

async fn a_waiting_client_gets_a_completion_message(bench: Bench) {
    let (id, other) = (bench.add(0, job()).await, bench.add(0, job()).await);
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 2).await.leases(&worker);
    for client in ["one", "two"] {
        bench.wait(&id, client).await;
    }
    bench.wait(&other, "two").await;
    assert!(bench.complete(0, &[done(&leases[0])]).await.is_empty());

    let completion = format!("{} success", id.stored());
    for client in ["one", "two"] {
        assert_eq!(bench.completions(client).await, slice::from_ref(&completion));
        let ttl: i64 =
            bench.raw(cmd("PTTL").arg(bench.key(&format!("completions:{client}")))).await;
        assert!(ttl > 0, "a completion list that is not read expires");
    }
    assert_eq!(bench.field("waiters", &id.stored()).await, None);
    assert_eq!(bench.field("waiters", &other.stored()).await.as_deref(), Some("two"));
}

async fn abbreviated_extras_apply_to_their_task_if_others_are_stale(bench: Bench) {
    let ranked = |_| ready(job().priority(4));
    let mut tasks: Vec<_> = (0..3).map(ranked).collect();
    tasks.extend([ready(job()), ready(job().biz_id("a")), ready(job().biz_id("b"))]);
    bench.submit(0, &tasks).await;
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 6).await.leases(&worker);
    let mut reports: Vec<_> = ids_of(&tasks)
        .iter()
        .map(|id| done(leases.iter().find(|lease| lease.id == *id).expect("the task is claimed")))
        .collect();
    for (report, biz_id) in reports[3..].iter_mut().zip([None, Some("a"), Some("b")]) {
        (report.has_sides, report.biz_id) = (false, biz_id.map(Into::into));
    }
    let (stale, other) = (1, 4);
    reports[stale].lease.token.seq += 1;
    reports[other].lease.token.seq += 1;

    assert_eq!(bench.complete(0, &reports).await, [stale, other]);
    for (at, task) in tasks.iter().enumerate() {
        let is_kept = bench.field("priorities", &task.id().stored()).await.is_some();
        assert_eq!(is_kept, at == stale, "the side of {at}");
    }
    let names = bench.names().await;
    assert!(names.contains(&"biz:job:a".into()) && !names.contains(&"biz:job:b".into()));
}

async fn the_last_thousand_summaries_are_kept(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let (mut first, mut latest) = (None, None);
    for seq in 1..=9 {
        bench.submit(0, &jobs(128)).await;
        let leases = bench.claim(0, &worker, seq, 128).await.leases(&worker);
        first.get_or_insert_with(|| leases[0].id.clone());
        latest = leases.last().map(|lease| lease.id.stored());
        let reports: Vec<_> = leases.iter().map(done).collect();
        assert!(bench.complete(seq, &reports).await.is_empty());
    }
    let summaries = bench.list("success").await;
    assert_eq!(summaries.len(), 1_000);
    let totals = bench.now().totals(&bench.queue).await.unwrap();
    assert_eq!(totals.successes, 9 * 128, "those that were removed count, too");
    let last = bench.list("success").await.pop().expect("a summary");
    assert!(last.starts_with(&latest.unwrap()), "the latest summary is last");
    assert_eq!(bench.state(&first.unwrap()).await, TaskState::Forgotten);
}

async fn a_released_task_can_be_completed_by_the_next_worker(bench: Bench) {
    let id = bench.add(0, job()).await;
    let (one, two) = (bench.worker(0, "one").await, bench.worker(0, "two").await);
    let lease = bench.take(0, &one, 1).await;
    assert!(bench.release(0, &[given(&lease, Give::Head)]).await.is_empty());
    let lease = bench.take(0, &two, 1).await;
    assert!(bench.complete(0, &[done(&lease)]).await.is_empty());
    assert_eq!(bench.state(&id).await, TaskState::Success);
}

on_both![
    only_the_summary_of_a_success_is_left,
    data_apart_from_the_record_is_removed_with_it,
    a_success_removes_the_marks_of_keys_that_are_empty_and_no_other,
    a_success_overrides_a_requested_cancel,
    a_result_is_kept_unchanged_for_its_time,
    results_and_biz_ids_stay_with_their_task_if_others_are_stale,
    abbreviated_extras_apply_to_their_task_if_others_are_stale,
    a_waiting_client_gets_a_completion_message,
    the_last_thousand_summaries_are_kept,
    a_released_task_can_be_completed_by_the_next_worker,
];
