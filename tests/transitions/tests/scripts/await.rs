//! `await`: registers a client as waiting for a task's end.

use optimus_core::{
    Due, Submit, TaskId, TaskState, WorkerId,
    broker::{Batch, FailureOutcome, LEDGER_SLOTS, Returned, StoredBy},
};
use redis::cmd;

use crate::{
    acts::{Grants, done, failed, ids_of, keep, ms},
    bench::Bench,
    dump::Dump,
    jobs::{job, jobs, ready_at},
};

/// How many gaps a slot of a ledger records.
const LOST_MAX: u64 = 8;

/// Returns the end of a task, for a client that waits and has no other facts.
async fn end(bench: &Bench, id: &TaskId, client: &str) -> Option<TaskState> {
    let end = bench.now().wait_for_end(id, client, None).await.expect("a wait is not refused");
    end.map(|end| end.state)
}

/// Returns the state of a task for its client, which submitted it in the call with this number.
async fn state_of(bench: &Bench, id: &TaskId, number: u64) -> TaskState {
    let stored_by = Some(StoredBy { client: "c1", number });
    let state = bench.now().state_of(id, stored_by).await.expect("a read is not refused");
    let end = bench.now().wait_for_end(id, "asks", stored_by).await.unwrap();
    assert_eq!(
        end.map(|end| end.state),
        state.is_terminal().then_some(state),
        "a read and a wait return the same"
    );
    state
}

/// Runs a task that returns nothing, and removes its summary, as 1,128 more successes would.
async fn succeed_long_ago(bench: &Bench, id: &TaskId, worker: &WorkerId, seq: u64) {
    let lease = bench.take(0, worker, seq).await;
    assert_eq!(lease.id, *id);
    assert!(bench.complete(0, &[done(&lease)]).await.is_empty());
    let () = bench.raw(cmd("DEL").arg(bench.key("success"))).await;
}

async fn a_client_waits_for_a_live_task(bench: Bench) {
    let delayed = bench.add(0, job().due(Due::In(ms(90)))).await;
    let working = bench.add(0, job()).await;
    let retry = bench.add(0, job()).await;
    let ready = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    bench.take(0, &worker, 1).await;
    let lease = bench.take(0, &worker, 2).await;
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Retry(ms(90)))]).await.is_empty());
    for (id, expected) in [
        (&delayed, TaskState::Delayed),
        (&working, TaskState::Working),
        (&retry, TaskState::Retry),
        (&ready, TaskState::Ready),
    ] {
        assert_eq!(bench.now().state_of(id, None).await.unwrap(), expected);
        let before = bench.dump().await;
        assert_eq!(end(&bench, id, "c").await, None);
        assert_eq!(bench.changes(&before).await, ["waiters"], "{expected}");
        assert_eq!(bench.field("waiters", &id.stored()).await.as_deref(), Some("c"));
    }
}

async fn a_wait_for_an_ended_task_returns_at_once(bench: Bench) {
    let [good, bad, cancelled] =
        [bench.add(0, job()).await, bench.add(0, job()).await, bench.add(0, job()).await];
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.complete(0, &[done(&lease)]).await.is_empty());
    let lease = bench.take(0, &worker, 2).await;
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
    bench.at(0).cancel(&cancelled).await.unwrap();
    let before = bench.dump().await;
    for (id, expected) in [
        (good, TaskState::Success),
        (bad, TaskState::Dead),
        (cancelled, TaskState::Cancelled),
        (TaskId::new(bench.queue.clone()), TaskState::Forgotten),
    ] {
        assert_eq!(end(&bench, &id, "c").await, Some(expected));
        assert_eq!(bench.now().state_of(&id, None).await.unwrap(), expected);
    }
    bench.assert_unchanged(&before).await;
}

async fn a_success_is_known_as_long_as_its_result(bench: Bench) {
    let id = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    let mut report = done(&lease);
    report.result = Some((b"1".to_vec(), ms(60_000)));
    assert!(bench.complete(0, &[report]).await.is_empty());
    let () = bench.raw(cmd("DEL").arg(bench.key("success"))).await;
    let end = bench.now().wait_for_end(&id, "c", None).await.unwrap().expect("the task has ended");
    assert_eq!((end.state, end.returned), (TaskState::Success, Returned::Json(b"1".to_vec())));
}

async fn a_large_result_is_not_passed_through_the_script(bench: Bench) {
    let id = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    let mut report = done(&lease);
    report.result = Some((vec![b'1'; 16_385], ms(60_000)));
    assert!(bench.complete(0, &[report]).await.is_empty());
    let end = bench.now().wait_for_end(&id, "c", None).await.unwrap().expect("the task has ended");
    assert_eq!((end.state, end.returned), (TaskState::Success, Returned::Elsewhere));
}

async fn the_submitter_always_knows_of_a_success(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    assert_eq!(state_of(&bench, &first, 1).await, TaskState::Ready);
    succeed_long_ago(&bench, &first, &worker, 1).await;
    assert_eq!(state_of(&bench, &first, 1).await, TaskState::Success);
    for seq in 2..40 {
        let id = bench.add(0, job()).await;
        succeed_long_ago(&bench, &id, &worker, seq).await;
    }
    assert_eq!(state_of(&bench, &first, 1).await, TaskState::Success, "another call used the slot");
    assert_eq!(end(&bench, &first, "c").await, Some(TaskState::Forgotten), "from elsewhere");
}

async fn a_lost_call_is_not_a_success(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let before = bench.add(0, job()).await;
    succeed_long_ago(&bench, &before, &worker, 1).await;
    let older = bench.dump().await;
    let lost = bench.add(0, job()).await;
    succeed_long_ago(&bench, &lost, &worker, 2).await;
    assert_eq!(state_of(&bench, &lost, 2).await, TaskState::Success);

    let next = bench.add(0, job()).await;
    bench.restore(&older).await;
    assert_eq!(state_of(&bench, &before, 1).await, TaskState::Success);
    assert_eq!(state_of(&bench, &lost, 2).await, TaskState::Forgotten);
    // Later calls, also those in the same slots, are stored by the promoted server.
    for number in 4..4 + 2 * LEDGER_SLOTS {
        bench.send(0, number, &jobs(1)).await.unwrap();
        assert_eq!(state_of(&bench, &lost, 2).await, TaskState::Forgotten, "after call {number}");
        assert_eq!(state_of(&bench, &next, 3).await, TaskState::Forgotten, "after call {number}");
        assert_eq!(state_of(&bench, &before, 1).await, TaskState::Success, "after call {number}");
    }
}

async fn a_slot_knows_which_calls_it_has_lost(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let (mut kept, mut lost, mut calls) = (Vec::new(), Vec::new(), 0..);
    let mut succeed = async |seq| {
        let call: u64 = calls.next().expect("there are many numbers");
        let (number, since) =
            (1 + call * LEDGER_SLOTS, (1 + call * LEDGER_SLOTS).saturating_sub(16));
        let task = [ready_at(0, job())];
        let (queue, client) = (&bench.queue, "c1");
        let batch = Batch { queue, client, number, since, keep: false, tasks: &task };
        bench.at(0).submit(&batch).await.unwrap();
        succeed_long_ago(&bench, task[0].id(), &worker, seq).await;
        (task[0].id().clone(), number)
    };
    for round in 0..LOST_MAX {
        kept.push(succeed(2 * round + 1).await);
        let older = bench.dump().await;
        lost.push(succeed(2 * round + 2).await);
        bench.restore(&older).await;
    }
    kept.push(succeed(2 * LOST_MAX).await);
    for (id, number) in &kept {
        assert_eq!(state_of(&bench, id, *number).await, TaskState::Success, "call {number}");
    }
    for (id, number) in &lost {
        assert_eq!(state_of(&bench, id, *number).await, TaskState::Forgotten, "call {number}");
    }
}

async fn a_late_call_at_another_server_does_not_prove_an_earlier_one(bench: Bench) {
    let tasks = jobs(2);
    let older = bench.dump().await;
    bench.send(0, 1, &tasks[..1]).await.unwrap();
    // The next call of that slot was in progress when another server, which has neither call, was
    // promoted.
    bench.restore(&older).await;
    bench.send(0, 1 + LEDGER_SLOTS, &tasks[1..]).await.unwrap();
    assert_eq!(state_of(&bench, tasks[0].id(), 1).await, TaskState::Forgotten);
    assert_eq!(state_of(&bench, tasks[1].id(), 1 + LEDGER_SLOTS).await, TaskState::Ready);
}

async fn a_redis_that_restarted_empty_knows_no_success(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let id = bench.add(0, job()).await;
    succeed_long_ago(&bench, &id, &worker, 1).await;
    bench.restore(&Dump::new()).await;
    assert_eq!(state_of(&bench, &id, 1).await, TaskState::Forgotten);
    bench.add(0, job()).await;
    assert_eq!(state_of(&bench, &id, 1).await, TaskState::Forgotten);
}

async fn a_task_that_may_have_been_purged_is_not_a_success(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let tasks = [ready_at(0, job()), ready_at(5, job()), ready_at(9, job())];
    for task in &tasks {
        bench.submit(0, std::slice::from_ref(task)).await;
    }
    let [good, dead, later] = [tasks[0].id(), tasks[1].id(), tasks[2].id()];
    succeed_long_ago(&bench, good, &worker, 1).await;
    let lease = bench.take(0, &worker, 2).await;
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
    succeed_long_ago(&bench, later, &worker, 3).await;
    let long = ms(1_000_000);
    assert_eq!(state_of(&bench, good, 1).await, TaskState::Success);
    assert_eq!(state_of(&bench, dead, 2).await, TaskState::Dead);

    assert_eq!(bench.at(9).purge(&bench.queue, keep(0, long), long).await.unwrap().tasks, 1);
    assert_eq!(state_of(&bench, dead, 2).await, TaskState::Forgotten);
    assert_eq!(
        state_of(&bench, good, 1).await,
        TaskState::Forgotten,
        "the purged task could be this one"
    );
    assert_eq!(state_of(&bench, later, 3).await, TaskState::Success, "no task as young was purged");
}

async fn only_successes_of_the_other_tasks_are_returned(bench: Bench) {
    let large = vec![b'1'; 16_384];
    let results = [Some(b"1".to_vec()), None, Some(large.clone()), Some(vec![b'1'; 16_385])];
    let mut along = Vec::new();
    let worker = bench.worker(0, "w").await;
    for (result, number) in results.into_iter().zip(1..) {
        let id = bench.add(0, job()).await;
        let mut report = done(&bench.take(0, &worker, number).await);
        report.result = result.map(|json| (json, ms(60_000)));
        assert!(bench.complete(0, &[report]).await.is_empty());
        along.push((id, number));
    }
    let dead = bench.add(0, job()).await;
    let lease = bench.take(0, &worker, 5).await;
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
    let cancelled = bench.add(0, job()).await;
    bench.at(0).cancel(&cancelled).await.unwrap();
    let open = bench.add(0, job()).await;
    along.extend([(dead, 5), (cancelled, 6), (open.clone(), 7)]);
    let unknown = TaskId::new(bench.queue.clone());
    along.extend([(unknown, 99), (along[1].0.clone(), 99)]);

    let stored_by = Some(StoredBy { client: "c1", number: 7 });
    let ends = bench.now().wait_with_next(&open, "c", stored_by, &along).await.unwrap();
    assert_eq!(ends.end, None);
    let expected = [Returned::Json(b"1".to_vec()), Returned::Nothing, Returned::Json(large)];
    let mut expected: Vec<_> = expected.into_iter().map(Some).collect();
    expected.extend([Some(Returned::Elsewhere), None, None, None, None, None]);
    assert_eq!(ends.next, expected);
    let waiting: Vec<String> = bench.raw(cmd("HKEYS").arg(bench.key("waiters"))).await;
    assert_eq!(waiting, [open.stored()], "no client waits for the others");
}

async fn results_that_are_too_large_together_are_not_all_returned(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let mut along = Vec::new();
    for number in 1..=20 {
        let id = bench.add(0, job()).await;
        let mut report = done(&bench.take(0, &worker, number).await);
        report.result = Some((vec![b'1'; 16_384], ms(60_000)));
        assert!(bench.complete(0, &[report]).await.is_empty());
        along.push((id, number));
    }
    let stored_by = Some(StoredBy { client: "c1", number: 1 });
    let first = along.remove(0).0;
    let ends = bench.now().wait_with_next(&first, "c", stored_by, &along).await.unwrap();
    let passed = |returned: &&Option<Returned>| matches!(returned, Some(Returned::Json(_)));
    assert_eq!(ends.next.iter().filter(passed).count(), 15);
    assert_eq!(ends.next[15..], [const { Some(Returned::Elsewhere) }; 4]);
}

async fn a_purged_id_without_a_time_is_not_a_success_and_hides_no_other(bench: Bench) {
    let foreign: TaskId =
        format!("{}/f47ac10b-58cc-4372-a567-0e02b2c3d479", bench.queue).parse().unwrap();
    let task = job().id(foreign.clone()).into_submission().unwrap();
    bench.submit(0, std::slice::from_ref(&task)).await;
    let good = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert_eq!(lease.id, foreign);
    assert!(bench.fail(0, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
    succeed_long_ago(&bench, &good, &worker, 2).await;

    let long = ms(1_000_000);
    assert_eq!(bench.at(9).purge(&bench.queue, keep(0, long), long).await.unwrap().tasks, 1);
    assert_eq!(state_of(&bench, &foreign, 1).await, TaskState::Forgotten);
    assert_eq!(state_of(&bench, &good, 2).await, TaskState::Success);
}

async fn a_client_that_waits_again_is_registered_once(bench: Bench) {
    let id = bench.add(0, job()).await;
    for client in ["c", "cc", "c", "cc", "c"] {
        end(&bench, &id, client).await;
    }
    assert_eq!(bench.field("waiters", &id.stored()).await.as_deref(), Some("c,cc"));
}

async fn the_first_of_too_many_waiters_is_removed(bench: Bench) {
    let id = bench.add(0, job()).await;
    let clients: Vec<String> =
        ["a", "b", "c", "d"].map(|completion| completion.repeat(12_000)).into();
    for client in &clients {
        end(&bench, &id, client).await;
    }
    end(&bench, &id, &clients[3]).await;
    assert_eq!(bench.field("waiters", &id.stored()).await, Some(clients[1..].join(",")));
}

async fn without_a_client_it_only_reads(bench: Bench) {
    let id = bench.add(0, job()).await;
    let before = bench.dump().await;
    assert_eq!(bench.now().state_of(&id, None).await.unwrap(), TaskState::Ready);
    bench.assert_unchanged(&before).await;
}

async fn the_completion_message_of_an_end_arrives(bench: Bench) {
    let id = bench.add(0, job()).await;
    end(&bench, &id, "c").await;
    let (completion_listener, queue) = (bench.now().blocking("completions"), bench.queue.clone());
    let waiting = tokio::spawn(async move {
        completion_listener.wait_for_completions(&queue, "c", ms(20_000)).await
    });
    bench.at(0).cancel(&id).await.unwrap();
    let completions = waiting.await.unwrap().unwrap();
    assert_eq!(completions, [(id, TaskState::Cancelled)]);
}

async fn completion_messages_are_taken_together(bench: Bench) {
    let tasks = jobs(5);
    bench.submit(0, &tasks).await;
    for task in &tasks {
        end(&bench, task.id(), "c").await;
    }
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 5).await.leases(&worker);
    let reports: Vec<_> = leases.iter().map(done).collect();
    assert!(bench.complete(0, &reports).await.is_empty());
    let completion_listener = bench.now().blocking("completions");
    let completions =
        completion_listener.wait_for_completions(&bench.queue, "c", ms(20_000)).await.unwrap();
    let expected: Vec<_> = ids_of(&tasks).into_iter().map(|id| (id, TaskState::Success)).collect();
    assert_eq!(completions, expected);
    assert_eq!(bench.field("waiters", &tasks[0].id().stored()).await, None);
    assert!(
        completion_listener
            .wait_for_completions(&bench.queue, "c", ms(1))
            .await
            .unwrap()
            .is_empty()
    );
}

on_both![
    a_client_waits_for_a_live_task,
    a_wait_for_an_ended_task_returns_at_once,
    a_success_is_known_as_long_as_its_result,
    a_large_result_is_not_passed_through_the_script,
    the_submitter_always_knows_of_a_success,
    a_lost_call_is_not_a_success,
    a_slot_knows_which_calls_it_has_lost,
    a_late_call_at_another_server_does_not_prove_an_earlier_one,
    a_redis_that_restarted_empty_knows_no_success,
    a_task_that_may_have_been_purged_is_not_a_success,
    only_successes_of_the_other_tasks_are_returned,
    results_that_are_too_large_together_are_not_all_returned,
    a_purged_id_without_a_time_is_not_a_success_and_hides_no_other,
    a_client_that_waits_again_is_registered_once,
    the_first_of_too_many_waiters_is_removed,
    without_a_client_it_only_reads,
    the_completion_message_of_an_end_arrives,
    completion_messages_are_taken_together,
];
