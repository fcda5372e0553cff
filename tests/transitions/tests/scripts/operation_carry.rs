//! `operation_add`, `operation_carry`, `operation_decide`, `operation_adopt`: who carries an
//! operation on, and what was changed in its last batch.

use optimus_core::{
    Due, TaskId, TaskState,
    broker::{Act, BrokerError, Changed, FailureOutcome, Held, OperationBatch, Refusal},
};
use redis::cmd;

use crate::{
    acts::{failed, ms, refusal},
    bench::{Bench, START},
    jobs::job,
};

async fn add(bench: &Bench, at: u64, id: &str, keep: usize) -> Result<u64, BrokerError> {
    bench.at(at).operation_add(&bench.queue, id, "{}", keep).await
}

fn held<'a>(fence: u64, lease: u64, from: &'a str, to: &'a str) -> Held<'a> {
    Held { fence, lease: ms(lease), from, to, matched: Some(5), progress: "{\"done\":1}" }
}

/// Lets an operation be counted.
async fn counted(bench: &Bench, at: u64, id: &str) {
    let (fence, _) = bench.at(at).operation_take(&bench.queue, id, ms(9)).await.unwrap();
    let held = held(fence, 0, "counting", "counted");
    bench.at(at).operation_carry(&bench.queue, id, held).await.unwrap();
}

async fn one_carrier_at_a_time_has_the_lease_and_a_later_one_a_larger_fence(bench: Bench) {
    let queue = &bench.queue;
    assert_eq!(add(&bench, 0, "a", 9).await.unwrap(), START);
    assert_eq!(add(&bench, 5, "a", 9).await.unwrap(), START, "a repeat");
    let (first, saved) = bench.at(10).operation_take(queue, "a", ms(100)).await.unwrap();
    assert_eq!((saved.state.as_str(), saved.added_ms, saved.matched), ("counting", START, 0));
    let early = bench.at(60).operation_take(queue, "a", ms(100)).await;
    assert!(matches!(&early, Err(BrokerError::Refused(Refusal::Early, left)) if left == "50"));
    let saved = bench.at(60).operation_carry(queue, "a", held(first, 100, "", "")).await.unwrap();
    assert_eq!((saved.progress.as_str(), saved.matched), ("{\"done\":1}", 5));
    assert_eq!(saved.changed_ms, START + 60);
    assert_eq!(bench.at(150).operation_carried(queue).await.unwrap().as_deref(), Some("a"));
    let (second, _) = bench.at(160).operation_take(queue, "a", ms(100)).await.unwrap();
    assert!(second > first);
    let before = bench.dump().await;
    let stale = bench.at(161).operation_carry(queue, "a", held(first, 100, "", "")).await;
    assert_eq!(refusal(stale.map(drop)), Refusal::Stale);
    let absent = bench.at(161).operation_take(queue, "b", ms(100)).await;
    assert_eq!(refusal(absent.map(drop)), Refusal::Absent);
    bench.assert_unchanged(&before).await;
    // A lease that was given back is free at once.
    bench.at(170).operation_carry(queue, "a", held(second, 0, "", "")).await.unwrap();
    bench.at(170).operation_take(queue, "a", ms(100)).await.unwrap();
    // A clock that was set back does not keep it forever.
    let early = bench.at(100).operation_take(queue, "a", ms(100)).await;
    assert_eq!(refusal(early.map(drop)), Refusal::Early);
    assert_eq!(bench.fsck().await, [""; 0]);
}

async fn a_confirm_needs_the_number_and_a_cancel_keeps_what_was_done(bench: Bench) {
    let queue = &bench.queue;
    add(&bench, 0, "a", 9).await.unwrap();
    let early = bench.at(1).operation_confirm(queue, "a", 0, "").await;
    assert_eq!(refusal(early), Refusal::WrongState, "it is not counted yet");
    counted(&bench, 2, "a").await;
    assert_eq!(bench.at(3).operation_carried(queue).await.unwrap(), None);
    let wrong = bench.at(3).operation_confirm(queue, "a", 4, "").await;
    assert!(matches!(&wrong, Err(BrokerError::Refused(Refusal::Stale, found)) if found == "5"));
    let taken = bench.at(3).operation_take(queue, "a", ms(9)).await;
    assert_eq!(refusal(taken.map(drop)), Refusal::WrongState, "nobody has confirmed it");
    bench.at(4).operation_confirm(queue, "a", 5, "why").await.unwrap();
    bench.at(5).operation_confirm(queue, "a", 5, "a repeat").await.unwrap();
    let (fence, saved) = bench.at(6).operation_take(queue, "a", ms(9)).await.unwrap();
    assert_eq!((saved.state.as_str(), saved.why.as_str()), ("running", "why"));
    bench.at(7).operation_cancel(queue, "a").await.unwrap();
    bench.at(7).operation_cancel(queue, "a").await.unwrap();
    // The carrier stores what it has done, and learns of it.
    let saved = bench.at(8).operation_carry(queue, "a", held(fence, 9, "running", "done")).await;
    let saved = saved.unwrap();
    assert_eq!((saved.state.as_str(), saved.progress.as_str()), ("cancelled", "{\"done\":1}"));
    bench
        .at(9)
        .operation_carry(queue, "a", held(fence, 0, "cancelled", "cancelled"))
        .await
        .unwrap();
    assert_eq!(bench.at(9).operation_carried(queue).await.unwrap(), None);
    let late = bench.at(9).operation_confirm(queue, "a", 5, "").await;
    assert_eq!(refusal(late), Refusal::WrongState);
    let found = bench.at(9).operation(queue, "a").await.unwrap().unwrap();
    assert_eq!(found.state, "cancelled");
    assert_eq!(bench.fsck().await, [""; 0]);
}

async fn a_count_that_is_a_day_old_is_confirmed_no_more(bench: Bench) {
    let (queue, day) = (&bench.queue, 86_400_000);
    for id in ["a", "b"] {
        add(&bench, 0, id, 9).await.unwrap();
        counted(&bench, 1_000, id).await;
    }
    bench.at(1_000 + day).operation_confirm(queue, "a", 5, "").await.unwrap();
    bench.at(9_000 + day).operation_confirm(queue, "a", 5, "a repeat").await.unwrap();
    let before = bench.dump().await;
    let late = bench.at(1_001 + day).operation_confirm(queue, "b", 5, "").await;
    assert_eq!(refusal(late), Refusal::Forgotten);
    bench.assert_unchanged(&before).await;
    bench.at(2_000 + day).operation_cancel(queue, "b").await.unwrap();
    assert_eq!(
        bench.at(2_000 + day).operation(queue, "b").await.unwrap().unwrap().state,
        "cancelled"
    );
    assert_eq!(bench.fsck().await, [""; 0]);
}

async fn the_oldest_operations_leave_unless_they_are_under_way(bench: Bench) {
    let queue = &bench.queue;
    for (at, id) in [(0, "a"), (1, "b"), (2, "c")] {
        add(&bench, at, id, 3).await.unwrap();
    }
    assert_eq!(refusal(add(&bench, 3, "d", 3).await.map(drop)), Refusal::WrongState);
    counted(&bench, 4, "b").await;
    add(&bench, 5, "d", 3).await.unwrap();
    let ids = async || {
        let found = bench.at(6).operations(queue, 9).await.unwrap();
        found.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    assert_eq!(ids().await, ["d", "c", "a"]);
    bench.at(6).operation_cancel(queue, "a").await.unwrap();
    add(&bench, 7, "e", 3).await.unwrap();
    assert_eq!(ids().await, ["e", "d", "c"]);
    assert_eq!(bench.fsck().await, [""; 0]);
}

fn batch(fence: u64, number: u64, state: TaskState, until: u64) -> OperationBatch<'static> {
    OperationBatch { operation: "a", fence, number, state, until_ms: START + until }
}

/// Returns whether each task was changed.
async fn operate(
    bench: &Bench,
    act: Act,
    batch: OperationBatch<'_>,
    ids: &[TaskId],
) -> Result<Vec<bool>, BrokerError> {
    let done = bench.at(1_000).operate(act, &bench.queue, batch, ids).await?.0;
    Ok(done.iter().map(|changed| matches!(changed, Changed::Done)).collect())
}

/// Lets a task die.
async fn dies(bench: &Bench, at: u64, seq: u64) -> TaskId {
    let id = bench.add(at, job()).await;
    die(bench, at, seq).await;
    id
}

/// Lets the next task die.
async fn die(bench: &Bench, at: u64, seq: u64) {
    let worker = bench.worker(at, "w").await;
    let lease = bench.take(at, &worker, seq).await;
    assert!(bench.fail(at, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
}

async fn a_batch_changes_only_what_was_there_and_another_carrier_counts_it(bench: Bench) {
    let ids = [dies(&bench, 10, 1).await, dies(&bench, 20, 2).await, dies(&bench, 30, 3).await];
    let dead = batch(7, 1, TaskState::Dead, 20);
    let done = operate(&bench, Act::Requeue, dead, &ids).await.unwrap();
    assert_eq!(done, [true, true, false], "the last one has died after the cut-off");
    // A repeat changes nothing, also if the first one dies again.
    let worker = bench.worker(40, "w").await;
    let lease = bench.take(40, &worker, 4).await;
    assert_eq!(lease.id, ids[0]);
    assert!(bench.fail(40, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
    assert_eq!(operate(&bench, Act::Requeue, dead, &ids).await.unwrap(), [false; 3]);
    // The next carrier learns how many were changed in the batch that is not counted.
    let queue = &bench.queue;
    assert_eq!(bench.at(50).operation_adopt(queue, "a", 8, 1).await.unwrap(), 2);
    assert_eq!(bench.at(50).operation_adopt(queue, "a", 8, 2).await.unwrap(), 0);
    let before = bench.dump().await;
    for act in [Act::Requeue, Act::Delete, Act::Cancel, Act::RunNow] {
        let stale = operate(&bench, act, batch(7, 9, TaskState::Dead, 99), &ids).await;
        assert_eq!(refusal(stale.map(drop)), Refusal::Stale, "{act:?}");
    }
    let stale = bench.at(50).operation_adopt(queue, "a", 7, 9).await;
    assert_eq!(refusal(stale.map(drop)), Refusal::Stale);
    bench.assert_unchanged(&before).await;
    let done = operate(&bench, Act::Delete, batch(8, 3, TaskState::Dead, 35), &ids).await.unwrap();
    assert_eq!(done, [false, false, true]);
}

async fn a_requeue_that_is_rejected_hides_no_other(bench: Bench) {
    let first = dies(&bench, 10, 1).await;
    let rejected = bench.add(20, job().biz_id("a")).await;
    die(&bench, 20, 2).await;
    let ids = [first, rejected, dies(&bench, 30, 3).await];
    let mark = bench.key("biz:job:a");
    let () = bench.raw(cmd("DEL").arg(&mark)).await;
    let () = bench.raw(cmd("RPUSH").arg(&mark).arg("of another program")).await;
    let dead = batch(7, 1, TaskState::Dead, 99);
    let done = bench.at(1_000).operate(Act::Requeue, &bench.queue, dead, &ids).await.unwrap().0;
    let [Changed::Done, Changed::Refused(why), Changed::Done] = &done[..] else {
        panic!("{done:?}");
    };
    assert!(matches!(why, BrokerError::Rejected(_)), "{why}");
    assert_eq!(bench.at(1_001).operation_adopt(&bench.queue, "a", 8, 1).await.unwrap(), 2);
}

async fn an_operation_makes_no_task_due_twice(bench: Bench) {
    let id = bench.add(0, job().due(Due::In(ms(900_000)))).await;
    let ids = [id];
    let first = batch(7, 1, TaskState::Delayed, 999);
    assert_eq!(operate(&bench, Act::RunNow, first, &ids).await.unwrap(), [true]);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0], "the next claim looks for it");
    // No claim has moved it yet when another carrier counts it, and comes back to it.
    assert_eq!(bench.at(1_000).operation_adopt(&bench.queue, "a", 8, 1).await.unwrap(), 1);
    let second = batch(8, 2, TaskState::Delayed, 999);
    assert_eq!(operate(&bench, Act::RunNow, second, &ids).await.unwrap(), [false]);
    let worker = bench.worker(1_001, "w").await;
    assert_eq!(bench.take(1_001, &worker, 1).await.id, ids[0], "it is due");
}

async fn a_batch_leaves_tasks_that_are_in_another_state(bench: Bench) {
    let ready = bench.add(0, job()).await;
    let later = bench.add(0, job().due(Due::In(ms(900_000)))).await;
    let ids = [ready, later.clone()];
    let as_ready = batch(7, 1, TaskState::Ready, 999);
    let as_delayed = batch(7, 2, TaskState::Delayed, 999);
    let before = bench.dump().await;
    let wrong = batch(7, 1, TaskState::Retry, 999);
    for act in [Act::Cancel, Act::Delete, Act::RunNow] {
        let done = operate(&bench, act, wrong, &ids).await.unwrap();
        assert_eq!(done, [false; 2], "{act:?}");
    }
    bench.assert_unchanged(&before).await;
    assert_eq!(operate(&bench, Act::RunNow, as_delayed, &ids).await.unwrap(), [false, true]);
    let stale = operate(&bench, Act::Cancel, as_ready, &ids).await;
    assert_eq!(refusal(stale.map(drop)), Refusal::Stale, "an earlier batch");
    assert_eq!(operate(&bench, Act::Cancel, as_delayed, &ids).await.unwrap(), [false, true]);
    assert_eq!(bench.at(1_000).operation_adopt(&bench.queue, "a", 7, 2).await.unwrap(), 2);
    assert_eq!(bench.state(&later).await, TaskState::Cancelled);
}

on_both![
    one_carrier_at_a_time_has_the_lease_and_a_later_one_a_larger_fence,
    a_confirm_needs_the_number_and_a_cancel_keeps_what_was_done,
    a_count_that_is_a_day_old_is_confirmed_no_more,
    the_oldest_operations_leave_unless_they_are_under_way,
    a_batch_changes_only_what_was_there_and_another_carrier_counts_it,
    a_batch_leaves_tasks_that_are_in_another_state,
    an_operation_makes_no_task_due_twice,
    a_requeue_that_is_rejected_hides_no_other,
];
