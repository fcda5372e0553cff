//! `run_now`: Delayed | Retry → due now.

use optimus_core::{
    Due, TaskId, TaskState,
    broker::{FailureOutcome, Refusal},
};
use redis::cmd;

use crate::{
    acts::{Grants, done, failed, ms, refusal},
    bench::{Bench, START},
    jobs::job,
};

async fn run_now(bench: &Bench, at: u64, id: &TaskId) -> Option<TaskState> {
    bench.at(at).run_now(&bench.queue, &[id]).await.unwrap()[0]
}

async fn a_delayed_task_and_a_retry_are_claimed_at_once(bench: Bench) {
    let retry = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Retry(ms(90)))]).await.is_empty());
    let delayed = bench.add(0, job().due(Due::In(ms(80)))).await;
    assert!(bench.claim(5, &worker, 2, 128).await.grants.is_empty());

    let before = bench.dump().await;
    assert_eq!(run_now(&bench, 9, &delayed).await, None);
    assert_eq!(bench.changes(&before).await, ["delayed", "meta"]);
    assert_eq!(bench.score("delayed", &delayed.stored()).await, Some(START + 9));
    assert_eq!(bench.state(&delayed).await, TaskState::Delayed);
    assert_eq!(run_now(&bench, 10, &retry).await, None);
    assert_eq!(bench.score("retry", &retry.stored()).await, Some(START + 10));

    let mut claimed = bench.claim(10, &worker, 3, 128).await.ids();
    claimed.sort();
    let mut both = [retry, delayed];
    both.sort();
    assert_eq!(claimed, both);
}

async fn a_worker_that_waits_for_the_due_time_is_woken(bench: Bench) {
    let id = bench.add(0, job().due(Due::In(ms(80)))).await;
    bench.answer_wakeup().await;
    assert_eq!(run_now(&bench, 9, &id).await, None);
    assert!(bench.answer_wakeup().await);
}

async fn a_task_that_is_due_already_stays_as_it_is(bench: Bench) {
    let id = bench.add(0, job().due(Due::In(ms(5)))).await;
    let before = bench.dump().await;
    assert_eq!(run_now(&bench, 9, &id).await, None);
    bench.assert_unchanged(&before).await;
    // So does one that is named again.
    let later = bench.add(0, job().due(Due::In(ms(50)))).await;
    let answers = bench.at(9).run_now(&bench.queue, &[&later, &later]).await.unwrap();
    assert_eq!(answers, [None, None]);
    let before = bench.dump().await;
    assert_eq!(run_now(&bench, 10, &later).await, None);
    bench.assert_unchanged(&before).await;
}

async fn other_tasks_are_named_by_their_states_and_stay_as_they_are(bench: Bench) {
    let [held, ended, dead] =
        [bench.add(0, job()).await, bench.add(0, job()).await, bench.add(0, job()).await];
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 3).await.leases(&worker);
    assert!(bench.complete(0, &[done(&leases[1])]).await.is_empty());
    assert!(bench.fail(0, &[failed(&leases[2], FailureOutcome::Dead)]).await.is_empty());
    let (ready, gone) = (bench.add(0, job()).await, bench.add(0, job()).await);
    let cancelled = bench.add(0, job()).await;
    bench.at(0).cancel(&cancelled).await.unwrap();
    bench.at(0).delete_all(&bench.queue, &[&gone]).await.unwrap();

    let before = bench.dump().await;
    let ids = [&held, &ended, &dead, &ready, &gone, &cancelled];
    let answers = bench.at(9).run_now(&bench.queue, &ids).await.unwrap();
    let states = [
        TaskState::Working,
        TaskState::Success,
        TaskState::Dead,
        TaskState::Ready,
        TaskState::Forgotten,
        TaskState::Cancelled,
    ];
    assert_eq!(answers, states.map(Some));
    bench.assert_unchanged(&before).await;
}

async fn a_task_that_waits_in_its_lane_is_blocked(bench: Bench) {
    let lane = || job().lane("line");
    let _first = bench.add(0, lane()).await;
    let second = bench.add(0, lane()).await;
    let before = bench.dump().await;
    assert_eq!(run_now(&bench, 9, &second).await, Some(TaskState::Blocked));
    bench.assert_unchanged(&before).await;
    // A delayed task joins its lane when it is due.
    let delayed = bench.add(0, lane().due(Due::In(ms(80)))).await;
    assert_eq!(run_now(&bench, 9, &delayed).await, None);
    let worker = bench.worker(9, "w").await;
    assert_eq!(bench.claim(9, &worker, 1, 128).await.grants.len(), 1);
    assert_eq!(bench.state(&delayed).await, TaskState::Blocked);
}

async fn a_queue_of_newer_scripts_is_left_alone(bench: Bench) {
    let id = bench.add(0, job().due(Due::In(ms(80)))).await;
    let () = bench.raw(cmd("HSET").arg(bench.key("meta")).arg("needs").arg(1_000)).await;
    let before = bench.dump().await;
    assert_eq!(refusal(bench.at(9).run_now(&bench.queue, &[&id]).await), Refusal::Newer);
    bench.assert_unchanged(&before).await;
}

on_both![
    a_delayed_task_and_a_retry_are_claimed_at_once,
    a_worker_that_waits_for_the_due_time_is_woken,
    a_task_that_is_due_already_stays_as_it_is,
    other_tasks_are_named_by_their_states_and_stay_as_they_are,
    a_task_that_waits_in_its_lane_is_blocked,
    a_queue_of_newer_scripts_is_left_alone,
];
