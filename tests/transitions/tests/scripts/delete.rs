//! `delete`: Delayed | Ready | Retry | Dead | Cancelled → ∅, by an operator.

use std::time::Duration;

use optimus_core::{
    Due, Submit, TaskId, TaskState,
    broker::{Deleted, FailureOutcome, StoredBy},
};

use redis::cmd;

use crate::{
    acts::{Grants, done, failed, ids_of, keep, ms},
    bench::Bench,
    jobs::{job, job_of, jobs},
};

const HOUR: Duration = Duration::from_secs(3_600);

async fn delete(bench: &Bench, ids: &[&TaskId]) -> Vec<Deleted> {
    bench.at(9).delete_all(&bench.queue, ids).await.expect("a delete is not refused")
}

/// Tasks with biz ids, one in each state that can be deleted.
async fn one_of_each(bench: &Bench) -> Vec<(TaskState, TaskId)> {
    let large = format!("\"{}\"", "x".repeat(20_000));
    let dead = bench.add(0, job_of(large).biz_id("dead").biz_window(HOUR)).await;
    let retry = bench.add(0, job().biz_id("retry")).await;
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 2).await.leases(&worker);
    let failures = [
        failed(&leases[0], FailureOutcome::Dead),
        failed(&leases[1], FailureOutcome::Retry(ms(50))),
    ];
    assert!(bench.fail(0, &failures).await.is_empty());
    let cancelled = bench.add(0, job().biz_id("cancelled").expires_in(HOUR)).await;
    bench.at(0).cancel(&cancelled).await.unwrap();
    let delayed = bench.add(0, job().biz_id("delayed").due(Due::In(ms(50))).priority(1)).await;
    let ranked = bench.add(0, job().biz_id("ranked").priority(2)).await;
    let ready = bench.add(0, job().biz_id("ready").biz_window(HOUR)).await;
    vec![
        (TaskState::Dead, dead),
        (TaskState::Retry, retry),
        (TaskState::Cancelled, cancelled),
        (TaskState::Delayed, delayed),
        (TaskState::Ready, ranked),
        (TaskState::Ready, ready),
    ]
}

async fn a_delete_removes_all_data_and_frees_the_biz_id(bench: Bench) {
    let tasks = one_of_each(&bench).await;
    for (state, id) in &tasks {
        assert_eq!(bench.state(id).await, *state);
        assert_eq!(delete(&bench, &[id]).await, [Deleted::Done], "from {state}");
        assert_eq!(bench.state(id).await, TaskState::Forgotten);
        assert_eq!(bench.fsck_of_tasks().await, [""; 0], "from {state}");
    }
    let left = [
        "deleted",
        "ledger:c1",
        "meta",
        "ready",
        "skips",
        "wake",
        "worker:w",
        "workers",
        "working:w",
    ];
    assert_eq!(bench.names().await, left);
    let worker = bench.worker(100, "w").await;
    assert!(bench.claim(100, &worker, 2, 128).await.grants.is_empty());
    assert!(!bench.names().await.contains(&"ready".to_owned()), "the tombstones are gone");
    for name in ["dead", "retry", "cancelled", "delayed", "ranked", "ready"] {
        assert_eq!(bench.duplicate_of(100, job().biz_id(name)).await, None, "{name}");
    }
    assert_eq!(bench.now().counts(&bench.queue).await.unwrap().purged, 6);
}

async fn a_running_or_succeeded_task_is_not_changed(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let good = bench.add(0, job()).await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.complete(0, &[done(&lease)]).await.is_empty());
    let held = bench.add(0, job().biz_id("b")).await;
    let lease = bench.take(0, &worker, 2).await;
    let before = bench.dump().await;
    for (id, state) in [(&good, TaskState::Success), (&held, TaskState::Working)] {
        assert_eq!(delete(&bench, &[id]).await, [Deleted::Left(state)]);
    }
    bench.assert_unchanged(&before).await;
    assert!(bench.complete(0, &[done(&lease)]).await.is_empty(), "the worker can still report");
}

async fn a_second_delete_finds_an_unknown_task(bench: Bench) {
    let id = bench.add(0, job()).await;
    assert_eq!(delete(&bench, &[&id]).await, [Deleted::Done]);
    let before = bench.dump().await;
    assert_eq!(delete(&bench, &[&id]).await, [Deleted::Left(TaskState::Forgotten)]);
    bench.assert_unchanged(&before).await;
}

async fn a_task_that_is_submitted_again_with_its_id_is_not_deleted_any_more(bench: Bench) {
    let submission = |id: &TaskId| job().id(id.clone()).into_submission().unwrap();
    let ids = [(); 2].map(|()| TaskId::new(bench.queue.clone()));
    bench.submit(0, &ids.each_ref().map(submission)).await;
    assert_eq!(delete(&bench, &[&ids[0], &ids[1]]).await, [Deleted::Done; 2]);
    bench.submit(9, &[submission(&ids[0])]).await;
    assert_eq!(bench.score("deleted", &ids[0].stored()).await, None);
    assert!(
        bench.score("deleted", &ids[1].stored()).await.is_some(),
        "the other task stays deleted"
    );
}

async fn a_wait_for_a_deleted_task_ends_as_forgotten(bench: Bench) {
    let tasks = jobs(3);
    bench.submit(0, &tasks).await;
    let ids = ids_of(&tasks);
    for id in &ids {
        bench.wait(id, "c").await;
    }
    delete(&bench, &[&ids[0], &ids[2]]).await;
    let completion = |id: &TaskId| format!("{} forgotten", id.stored());
    assert_eq!(bench.completions("c").await, [completion(&ids[0]), completion(&ids[2])]);
    let by = Some(StoredBy { client: "c1", number: 1 });
    for id in [&ids[0], &ids[2]] {
        let state = bench.now().state_of(id, by).await.unwrap();
        assert_eq!(state, TaskState::Forgotten, "a deleted task is not a success");
    }
}

/// Otherwise each delete would hide successes from clients that wait late for other tasks.
async fn the_success_of_an_older_task_is_still_known(bench: Bench) {
    let good = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.complete(0, &[done(&lease)]).await.is_empty());
    let () = bench.raw(cmd("DEL").arg(bench.key("success"))).await;
    let deleted = bench.add(5, job()).await;
    assert_eq!(delete(&bench, &[&deleted]).await, [Deleted::Done]);
    let state_of = async |id, number| {
        let by = Some(StoredBy { client: "c1", number });
        bench.now().state_of(id, by).await.unwrap()
    };
    assert_eq!(state_of(&good, 1).await, TaskState::Success);
    assert_eq!(state_of(&deleted, 2).await, TaskState::Forgotten);
    // A day later the id is no longer stored, but the task still does not count as a success.
    let day = 24 * 3_600_000;
    let kept = keep(10, HOUR);
    assert_eq!(bench.at(9 + day).purge(&bench.queue, kept, 48 * HOUR).await.unwrap().tasks, 0);
    assert_eq!(bench.score("deleted", &deleted.stored()).await, None);
    assert_eq!(state_of(&deleted, 2).await, TaskState::Forgotten);
}

async fn each_of_many_is_deleted_alone_and_one_named_twice_only_once(bench: Bench) {
    let tasks = one_of_each(&bench).await;
    let worker = bench.worker(0, "w").await;
    let held = bench.add(0, job().priority(9)).await;
    assert_eq!(bench.take(0, &worker, 2).await.id, held);
    let unknown = TaskId::new(bench.queue.clone());
    let mut ids: Vec<&TaskId> = tasks.iter().map(|(_, id)| id).collect();
    ids.extend([&held, &unknown, &tasks[5].1, &tasks[0].1]);
    let mut expected = vec![Deleted::Done; tasks.len()];
    expected.extend([TaskState::Working, TaskState::Forgotten].map(Deleted::Left));
    expected.extend([Deleted::Done; 2]);
    assert_eq!(delete(&bench, &ids).await, expected);
    assert_eq!(bench.field("meta", "tombstones").await.as_deref(), Some("2"), "named twice");
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_biz_id_that_another_task_holds_stays(bench: Bench) {
    let old = bench.add(0, job().biz_id("b")).await;
    bench.at(0).cancel(&old).await.unwrap();
    let new = bench.add(0, job().biz_id("b")).await;
    assert_eq!(delete(&bench, &[&old]).await, [Deleted::Done]);
    assert_eq!(bench.duplicate_of(9, job().biz_id("b")).await, Some(new));
}

async fn a_full_call_is_deleted_at_once(bench: Bench) {
    let tasks = jobs(128);
    bench.submit(0, &tasks).await;
    let ids = ids_of(&tasks);
    let all: Vec<&TaskId> = ids.iter().collect();
    assert_eq!(delete(&bench, &all).await, [Deleted::Done; 128]);
    assert_eq!(bench.now().counts(&bench.queue).await.unwrap().ready, 0);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

on_both![
    a_delete_removes_all_data_and_frees_the_biz_id,
    a_running_or_succeeded_task_is_not_changed,
    a_task_that_is_submitted_again_with_its_id_is_not_deleted_any_more,
    a_second_delete_finds_an_unknown_task,
    a_wait_for_a_deleted_task_ends_as_forgotten,
    the_success_of_an_older_task_is_still_known,
    each_of_many_is_deleted_alone_and_one_named_twice_only_once,
    a_biz_id_that_another_task_holds_stays,
    a_full_call_is_deleted_at_once,
];
