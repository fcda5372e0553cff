//! Tasks that take the result of a task: when they get it, and what a worker reads.

use optimus_core::{
    After, BLOB_BYTES_MIN, Prerequisite, PrerequisiteFailure, Submission, TaskId, TaskRecord,
    TaskState, WorkerId,
    broker::{Completion, FailureOutcome, Outgoing},
};

use crate::{
    acts::{done, failed, ms},
    after::{REMEMBERED_MS, after, or},
    bench::Bench,
    jobs::{job, job_of, ready_at},
};

fn worker() -> WorkerId {
    WorkerId::from_stored("w")
}

/// A task with the argument `7`, which takes the result of another one as its second argument.
fn taker(at: u64, after: After) -> Submission {
    ready_at(at, job_of("\"7\"")).waiting_for(after.taking("]]"))
}

/// A report of success with a result, which is remembered.
fn returned(lease: &optimus_core::Lease, result: &str) -> Completion {
    let keep = ms(REMEMBERED_MS);
    Completion { result: Some((result.into(), keep)), outcome_ttl: Some(keep), ..done(lease) }
}

async fn submit(bench: &Bench, at: u64, task: Submission) -> TaskId {
    let id = task.id().clone();
    bench.submit(at, &[task]).await;
    id
}

/// Ends the next task of the queue, and returns this.
async fn succeed(bench: &Bench, at: u64, seq: u64, result: &str) -> TaskId {
    let lease = bench.take(at, &worker(), seq).await;
    bench.complete(at, &[returned(&lease, result)]).await;
    lease.id
}

/// Claims the next task, and returns the arguments that its worker finds.
async fn arguments(bench: &Bench, at: u64, seq: u64) -> String {
    let mut claimed = bench.claim(at, &worker(), seq, 1).await;
    let grant = claimed.grants.pop().expect("a task is ready");
    let record = TaskRecord::decode(grant.record).expect("a record");
    let bytes = if record.has_blob {
        bench.now().blobs(&bench.queue, &[&grant.id]).await.unwrap().pop().flatten().unwrap()
    } else {
        record.payload
    };
    String::from_utf8(bytes).unwrap()
}

const BEFORE: &str = "\"7\"";

async fn a_task_gets_the_result_of_the_task_before_it(bench: Bench) {
    bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    let second = submit(&bench, 1, taker(1, after(&first))).await;
    assert_eq!(bench.state(&second).await, TaskState::Blocked);
    assert_eq!(bench.field("meta", "needs").await.as_deref(), Some("5"));
    succeed(&bench, 2, 1, "{\"n\":12345678901234567890,\"l\":[]}").await;
    let expected = format!("{BEFORE}{{\"n\":12345678901234567890,\"l\":[]}}]]");
    assert_eq!(arguments(&bench, 3, 2).await, expected);
    bench.assert_nobody_waits().await;
}

async fn a_task_that_comes_later_gets_the_result_too(bench: Bench) {
    bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    succeed(&bench, 1, 1, "1").await;
    submit(&bench, 2, taker(2, after(&first))).await;
    bench.relay_all(3).await;
    assert_eq!(arguments(&bench, 4, 2).await, format!("{BEFORE}1]]"));
    bench.assert_nobody_waits().await;
}

async fn a_task_that_returns_nothing_hands_on_null(bench: Bench) {
    bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    submit(&bench, 0, taker(0, after(&first))).await;
    let lease = bench.take(1, &worker(), 1).await;
    bench.complete(1, &[Completion { outcome_ttl: Some(ms(9)), ..done(&lease) }]).await;
    assert_eq!(arguments(&bench, 2, 2).await, format!("{BEFORE}null]]"));
}

async fn a_result_that_makes_the_arguments_large_goes_apart_from_the_record(bench: Bench) {
    bench.worker(0, "w").await;
    for (seq, bytes) in [(1, BLOB_BYTES_MIN), (3, 100_000)] {
        let first = bench.add(0, job()).await;
        submit(&bench, 0, taker(0, after(&first))).await;
        let result = format!("\"{}\"", "x".repeat(bytes));
        succeed(&bench, 1, seq, &result).await;
        bench.relay_all(2).await;
        assert_eq!(arguments(&bench, 3, seq + 1).await, format!("{BEFORE}{result}]]"));
    }
    bench.assert_nobody_waits().await;
}

async fn arguments_that_are_large_before_get_the_result_too(bench: Bench) {
    bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    let large = "x".repeat(2 * BLOB_BYTES_MIN);
    let task = ready_at(0, job_of(format!("\"{large}\""))).waiting_for(after(&first).taking("]"));
    submit(&bench, 0, task).await;
    succeed(&bench, 1, 1, "[1]").await;
    assert_eq!(arguments(&bench, 2, 2).await, format!("\"{large}\"[1]]"));
}

async fn a_result_reaches_a_task_of_another_queue(bench: Bench) {
    let there = bench.sibling("there");
    there.worker(0, "w").await;
    bench.worker(0, "w").await;
    for (seq, bytes) in [(1, 10), (2, 300_000)] {
        let first = there.add(0, job().queue(&there.queue)).await;
        submit(&bench, 1, taker(1, after(&first))).await;
        bench.relay_all(2).await;
        let result = format!("\"ü{}\"", "x y".repeat(bytes));
        succeed(&there, 3, seq, &result).await;
        let outbox = there.now().outgoing(&there.queue).await.unwrap();
        assert!(outbox.iter().flat_map(|one| &one.effects).all(|effect| effect.len() < 100_000));
        there.relay_all(4).await;
        assert_eq!(arguments(&bench, 5, seq).await, format!("{BEFORE}{result}]]"));
    }
    bench.assert_nobody_waits().await;
}

async fn effects_that_come_twice_hand_on_once(bench: Bench) {
    let there = bench.sibling("there");
    there.worker(0, "w").await;
    bench.worker(0, "w").await;
    let first = there.add(0, job().queue(&there.queue)).await;
    let mut both = after(&first);
    both.prerequisites.push(Prerequisite::Task(TaskId::new(bench.queue.clone())));
    let second = submit(&bench, 1, taker(1, both)).await;
    bench.relay_all(2).await;
    succeed(&there, 3, 1, "1").await;
    let met = there.now().outgoing(&there.queue).await.unwrap().remove(0);
    bench.at(4).apply(&met).await.unwrap();
    let before = bench.dump().await;
    bench.at(5).apply(&met).await.unwrap();
    bench.assert_unchanged(&before).await;
    // The task asks again, because an answer can be lost. Its result is there, and not taken twice.
    bench.at(200_000).reask(&bench.queue).await.unwrap();
    bench.relay_all(200_000).await;
    let record = bench.field("tasks", &second.stored()).await.unwrap();
    assert!(record.ends_with(&format!("{BEFORE}1]]")), "{record}");
}

async fn a_lost_answer_is_asked_for_again_and_still_has_the_result(bench: Bench) {
    let there = bench.sibling("there");
    there.worker(0, "w").await;
    bench.worker_for(0, "w", ms(600_000)).await;
    let first = there.add(0, job().queue(&there.queue)).await;
    submit(&bench, 1, taker(1, after(&first))).await;
    bench.relay_all(2).await;
    succeed(&there, 3, 1, "1").await;
    let lost = there.now().outgoing(&there.queue).await.unwrap().remove(0);
    there.now().relayed(&lost, u64::MAX >> 12).await.unwrap();
    bench.relay_all(70_000).await;
    assert_eq!(arguments(&bench, 70_001, 1).await, format!("{BEFORE}1]]"));
    bench.assert_nobody_waits().await;
}

async fn a_result_that_is_gone_counts_as_a_forgotten_task(bench: Bench) {
    let there = bench.sibling("there");
    there.worker(0, "w").await;
    bench.worker(0, "w").await;
    let first = there.add(0, job().queue(&there.queue)).await;
    succeed(&there, 1, 1, &format!("\"{}\"", "x".repeat(50_000))).await;
    for kind in ["outcome", "result"] {
        let key = there.key(&format!("{kind}:{}", first.stored()));
        let _: () = there.raw(redis::cmd("UNLINK").arg(key)).await;
    }
    let wait = or(PrerequisiteFailure::Cancel, after(&first));
    let second = submit(&bench, 2, taker(2, wait)).await;
    bench.relay_all(3).await;
    assert_eq!(bench.state(&second).await, TaskState::Cancelled);
}

/// A relay may carry both ends in one call.
async fn a_task_that_gets_a_result_and_ends_counts_with_its_result(bench: Bench) {
    let there = bench.sibling("there");
    there.worker(0, "w").await;
    let first = there.add(0, job().queue(&there.queue)).await;
    let other = there.add(1, job().queue(&there.queue)).await;
    let mut both = or(PrerequisiteFailure::Cancel, after(&first));
    both.prerequisites.push(Prerequisite::Task(other));
    let second = submit(&bench, 2, taker(2, both)).await;
    let beside = bench.add(2, job_of(format!("\"{}\"", "x".repeat(9_000)))).await;
    bench.at(2).cancel(&beside).await.unwrap();
    let (id, source) = (second.stored(), there.queue.clone());
    let result = format!("\"{}\"", "x".repeat(9_000));
    let effects = vec![format!("1 met {id}z ={result}"), format!("2 ended {id}1 dead")];
    let outgoing = Outgoing { source, target: bench.queue.clone(), effects };
    bench.at(4).apply(&outgoing).await.unwrap();
    assert_eq!(bench.state(&second).await, TaskState::Cancelled);
    bench.assert_sound().await;
}

async fn a_requeued_task_runs_with_the_same_input(bench: Bench) {
    bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    let second = submit(&bench, 0, taker(0, after(&first))).await;
    succeed(&bench, 1, 1, "1").await;
    let lease = bench.take(2, &worker(), 2).await;
    bench.fail(3, &[failed(&lease, FailureOutcome::Dead)]).await;
    bench.at(4).requeue(&second).await.unwrap();
    assert_eq!(arguments(&bench, 5, 3).await, format!("{BEFORE}1]]"));
}

async fn a_requeue_of_a_task_that_ended_while_it_waited_still_gets_the_result(bench: Bench) {
    bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    let second = submit(&bench, 0, taker(0, after(&first))).await;
    bench.at(1).cancel(&second).await.unwrap();
    succeed(&bench, 2, 1, "1").await;
    bench.at(3).requeue(&second).await.unwrap();
    bench.relay_all(4).await;
    assert_eq!(arguments(&bench, 5, 2).await, format!("{BEFORE}1]]"));
    bench.assert_nobody_waits().await;
}

async fn a_task_that_runs_although_its_prerequisite_died_gets_null(bench: Bench) {
    bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    submit(&bench, 0, taker(0, or(PrerequisiteFailure::Run, after(&first)))).await;
    let lease = bench.take(1, &worker(), 1).await;
    bench.fail(1, &[failed(&lease, FailureOutcome::Dead)]).await;
    bench.relay_all(2).await;
    assert_eq!(arguments(&bench, 3, 2).await, format!("{BEFORE}null]]"));
}

async fn many_that_take_one_large_result_all_get_it(bench: Bench) {
    bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    let takers: Vec<_> = (0..150).map(|_| taker(0, after(&first))).collect();
    bench.submit(0, &takers).await;
    let result = format!("\"{}\"", "x".repeat(200_000));
    succeed(&bench, 1, 1, &result).await;
    bench.relay_all(2).await;
    for seq in 2..152 {
        assert_eq!(arguments(&bench, 3, seq).await.len(), result.len() + BEFORE.len() + 2);
    }
    bench.assert_nobody_waits().await;
}

on_both![
    a_task_that_gets_a_result_and_ends_counts_with_its_result,
    a_task_gets_the_result_of_the_task_before_it,
    a_task_that_comes_later_gets_the_result_too,
    a_task_that_returns_nothing_hands_on_null,
    a_result_that_makes_the_arguments_large_goes_apart_from_the_record,
    arguments_that_are_large_before_get_the_result_too,
    a_result_reaches_a_task_of_another_queue,
    effects_that_come_twice_hand_on_once,
    a_lost_answer_is_asked_for_again_and_still_has_the_result,
    a_result_that_is_gone_counts_as_a_forgotten_task,
    a_requeued_task_runs_with_the_same_input,
    a_requeue_of_a_task_that_ended_while_it_waited_still_gets_the_result,
    a_task_that_runs_although_its_prerequisite_died_gets_null,
    many_that_take_one_large_result_all_get_it,
];
