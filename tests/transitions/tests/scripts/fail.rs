//! `fail`: Working → Retry | Dead | Cancelled.

use optimus_core::{
    Lease, Task, TaskState,
    broker::{Failure, FailureOutcome, Give, Reported},
};

use crate::{
    acts::{Grants, failed, given, ms},
    bench::{Bench, START},
    jobs::{Fragile, job, jobs},
};

async fn each_outcome_has_its_state(bench: Bench) {
    let outcomes = [
        (FailureOutcome::Retry(ms(30)), TaskState::Retry, START + 39),
        (FailureOutcome::Dead, TaskState::Dead, START + 9),
        (FailureOutcome::Cancelled, TaskState::Cancelled, START + 9),
    ];
    bench.submit(0, &jobs(3)).await;
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 3).await.leases(&worker);
    let before = bench.dump().await;
    let reports: Vec<_> =
        leases.iter().zip(outcomes).map(|(lease, (outcome, ..))| failed(lease, outcome)).collect();

    assert!(bench.fail(9, &reports).await.is_empty());

    for (lease, (_, state, at)) in leases.iter().zip(outcomes) {
        let found = bench.now().inspect(&lease.id).await.unwrap();
        assert_eq!((found.state, found.at_ms), (state, Some(at)));
        assert_eq!(found.tries, (1, 0, 0));
        assert_eq!(found.errors, format!("{} {{\"reason\":\"failed\"}}", START + 9));
        assert!(!found.record.is_empty());
    }
    let changed = ["cancelled", "dead", "errors", "meta", "retry", "tries", "working:w"];
    assert_eq!(bench.changes(&before).await, changed);
}

async fn failures_add_up_and_the_last_ten_errors_are_kept(bench: Bench) {
    let id = bench.add(0, job()).await;
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    for at in 1..=13 {
        let lease = bench.take(at, &worker, at).await;
        let failure =
            Failure { error: format!("{{\"n\":{at}}}"), ..failed(&lease, FailureOutcome::Dead) };
        let failure = Failure { outcome: FailureOutcome::Retry(ms(1)), ..failure };
        assert!(bench.fail(at, &[failure]).await.is_empty());
        assert_eq!(bench.tries(&id).await, (u32::try_from(at).unwrap(), 0, 0));
    }
    let found = bench.now().inspect(&id).await.unwrap();
    let expected: Vec<String> =
        (4..=13).map(|at| format!("{} {{\"n\":{at}}}", START + at)).collect();
    assert_eq!(found.errors.lines().collect::<Vec<_>>(), expected);
}

async fn a_retry_resets_misfits_and_a_dead_task_keeps_them(bench: Bench) {
    for (outcome, misfits) in [(FailureOutcome::Retry(ms(1)), 0), (FailureOutcome::Dead, 2)] {
        let id = bench.add(0, job()).await;
        let worker = bench.worker(0, "w").await;
        for at in 1..=2 {
            let lease = bench.take(at, &worker, at).await;
            assert!(bench.release(at, &[given(&lease, Give::Misfit(ms(1)))]).await.is_empty());
        }
        let lease = bench.take(3, &worker, 3).await;
        assert!(bench.fail(3, &[failed(&lease, outcome)]).await.is_empty());
        assert_eq!(bench.tries(&id).await, (1, 0, misfits), "{outcome:?}");
        bench.restore(&crate::dump::Dump::new()).await;
    }
}

async fn a_loss_is_no_failure_and_its_task_has_another_attempt_at_once(bench: Bench) {
    bench.submit(0, &jobs(2)).await;
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 2).await.leases(&worker);
    let outcomes = [FailureOutcome::Lost, FailureOutcome::Retry(ms(9_000))];
    let reports: Vec<_> = leases.iter().zip(outcomes).map(|(l, o)| failed(l, o)).collect();
    assert!(bench.fail(9, &reports).await.is_empty());
    let found = bench.now().inspect(&leases[0].id).await.unwrap();
    assert_eq!((found.state, found.at_ms), (TaskState::Retry, Some(START + 9)));
    assert_eq!(found.tries, (0, 1, 0));
    assert_eq!(bench.tries(&leases[1].id).await, (1, 0, 0));
    assert_eq!(bench.field("meta", "losses").await.as_deref(), Some("1"));
    assert_eq!(bench.field("meta", "retries").await.as_deref(), Some("1"));
    assert_eq!(bench.claim(9, &worker, 2, 2).await.leases(&worker)[0].id, leases[0].id);
}

async fn a_task_that_runs_alone_dies_of_its_last_loss_and_others_do_not(bench: Bench) {
    let id = bench.add(0, Fragile.call()).await;
    let worker = bench.worker(0, "w").await;
    let lost = |lease: &Lease| [failed(lease, FailureOutcome::Lost)];
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.fail(0, &lost(&lease)).await.is_empty());
    assert_eq!((bench.state(&id).await, bench.tries(&id).await), (TaskState::Retry, (0, 1, 0)));
    let alone = bench.at(1).claim_alone(&bench.queue, &worker, 2).await.unwrap();
    let reports = lost(&alone.leases(&worker)[0]);
    let broker = bench.at(1);
    let reported = broker.report(broker.fail_call(&bench.queue, &worker, &reports)).await.unwrap();
    assert_eq!(reported, Reported { dead: vec![0], ..Reported::default() });
    assert_eq!((bench.state(&id).await, bench.tries(&id).await), (TaskState::Dead, (0, 2, 0)));
}

async fn a_failure_without_an_error_adds_none(bench: Bench) {
    let id = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    let failure = Failure { error: String::new(), ..failed(&lease, FailureOutcome::Dead) };
    assert!(bench.fail(0, &[failure]).await.is_empty());
    let found = bench.now().inspect(&id).await.unwrap();
    assert_eq!((found.errors.as_str(), found.tries), ("", (1, 0, 0)));
}

async fn a_requested_cancel_overrides_each_failure(bench: Bench) {
    for outcome in [FailureOutcome::Retry(ms(1)), FailureOutcome::Dead, FailureOutcome::Cancelled] {
        bench.restore(&crate::dump::Dump::new()).await;
        let id = bench.add(0, job().biz_id("b")).await;
        let worker = bench.worker(0, "w").await;
        let lease = bench.take(0, &worker, 1).await;
        bench.at(0).cancel(&id).await.unwrap();
        assert!(bench.fail(0, &[failed(&lease, outcome)]).await.is_empty());
        assert_eq!(bench.state(&id).await, TaskState::Cancelled, "{outcome:?}");
        assert_eq!(bench.field("cancel", &id.stored()).await, None, "{outcome:?}");
        assert!(!bench.names().await.contains(&"biz:job:b".to_owned()), "{outcome:?}");
    }
}

async fn a_requested_cancel_of_one_task_does_not_affect_others_of_the_call(bench: Bench) {
    bench.submit(0, &jobs(2)).await;
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 2).await.leases(&worker);
    bench.at(0).cancel(&leases[0].id).await.unwrap();
    let reports: Vec<_> = leases.iter().map(|l| failed(l, FailureOutcome::Retry(ms(9)))).collect();
    assert!(bench.fail(0, &reports).await.is_empty());
    assert_eq!(bench.state(&leases[0].id).await, TaskState::Cancelled);
    assert_eq!(bench.state(&leases[1].id).await, TaskState::Retry);
}

async fn the_answer_names_the_tasks_that_were_cancelled_instead(bench: Bench) {
    use FailureOutcome::{Cancelled, Dead, Retry};
    bench.submit(0, &jobs(6)).await;
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 6).await.leases(&worker);
    for asked in [1, 2, 3, 4] {
        bench.at(0).cancel(&leases[asked].id).await.unwrap();
    }
    // Another worker has the second one.
    assert!(bench.release(0, &[given(&leases[1], Give::Head)]).await.is_empty());
    let outcomes = [Retry(ms(1)), Retry(ms(1)), Retry(ms(1)), Dead, Cancelled, Dead];
    let reports: Vec<_> = leases.iter().zip(outcomes).map(|(l, o)| failed(l, o)).collect();
    let broker = bench.at(0);
    let reported = broker.report(broker.fail_call(&bench.queue, &worker, &reports)).await.unwrap();
    assert_eq!(reported, Reported { stale: vec![1], cancelled: vec![2, 3], ..Reported::default() });
}

async fn a_waiting_client_gets_a_message_of_the_end_and_not_of_a_retry(bench: Bench) {
    bench.submit(0, &jobs(3)).await;
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 3).await.leases(&worker);
    for lease in &leases {
        bench.wait(&lease.id, "c").await;
    }
    let outcomes = [FailureOutcome::Retry(ms(1)), FailureOutcome::Dead, FailureOutcome::Cancelled];
    let reports: Vec<_> = leases.iter().zip(outcomes).map(|(l, v)| failed(l, v)).collect();
    assert!(bench.fail(0, &reports).await.is_empty());
    let completions = [(1, "dead"), (2, "cancelled")];
    let completions = completions.map(|(i, word)| format!("{} {word}", leases[i].id.stored()));
    assert_eq!(bench.completions("c").await, completions);
    assert_eq!(bench.field("waiters", &leases[0].id.stored()).await.as_deref(), Some("c"));
}

async fn a_retry_that_is_sooner_than_the_others_adds_a_wakeup(bench: Bench) {
    bench.submit(0, &jobs(3)).await;
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 3).await.leases(&worker);
    assert!(bench.answer_wakeup().await);
    for (lease, wait, wakes) in [(0, 50, true), (1, 50, false), (2, 49, true)] {
        let report = failed(&leases[lease], FailureOutcome::Retry(ms(wait)));
        assert!(bench.fail(0, &[report]).await.is_empty());
        assert_eq!(bench.answer_wakeup().await, wakes, "after {wait} ms");
    }
}

on_both![
    each_outcome_has_its_state,
    failures_add_up_and_the_last_ten_errors_are_kept,
    a_retry_resets_misfits_and_a_dead_task_keeps_them,
    a_loss_is_no_failure_and_its_task_has_another_attempt_at_once,
    a_task_that_runs_alone_dies_of_its_last_loss_and_others_do_not,
    a_failure_without_an_error_adds_none,
    a_requested_cancel_overrides_each_failure,
    a_requested_cancel_of_one_task_does_not_affect_others_of_the_call,
    the_answer_names_the_tasks_that_were_cancelled_instead,
    a_waiting_client_gets_a_message_of_the_end_and_not_of_a_retry,
    a_retry_that_is_sooner_than_the_others_adds_a_wakeup,
];
