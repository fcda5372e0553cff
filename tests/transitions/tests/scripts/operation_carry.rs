//! `operation_add`, `operation_carry`, `operation_decide`, `operation_adopt`: who carries an
//! operation on, and what was changed in its last batch.

use optimus_core::{
    Due, Lane, TaskId, TaskState,
    broker::{
        Act, BrokerError, Changed, CountedTask, FailureOutcome, Held, Mark, OperationBatch, Refusal,
    },
};
use redis::cmd;

use crate::{
    acts::{failed, ms, refusal},
    bench::{Bench, START},
    jobs::job,
};

pub(crate) async fn add(bench: &Bench, at: u64, id: &str, keep: usize) -> Result<u64, BrokerError> {
    bench.at(at).operation_add(&bench.queue, id, ("{}", "as counted"), keep).await
}

pub(crate) fn held<'a>(fence: u64, lease: u64, from: &'a str, to: &'a str) -> Held<'a> {
    let (lease, matched, progress) = (ms(lease), Some(5), "{\"done\":1}");
    Held { fence, lease, from, to, matched, progress, reached: None, counted: &[] }
}

/// Lets an operation be counted.
pub(crate) async fn counted(bench: &Bench, at: u64, id: &str) {
    let (fence, _) = bench.at(at).operation_take(&bench.queue, id, ms(9)).await.unwrap();
    let tasks = [(1, b"some".to_vec()), (2, b"more".to_vec())];
    let held = Held { counted: &tasks, ..held(fence, 0, "counting", "counted") };
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
    let found = bench.at(9_000 + day).operation(queue, "a").await.unwrap().unwrap();
    assert_eq!(found.why, "as counted", "the confirm has no reason of its own");
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

async fn operations_that_match_no_task_leave_first(bench: Bench) {
    let queue = &bench.queue;
    add(&bench, 0, "useful", 3).await.unwrap();
    counted(&bench, 1, "useful").await;
    for (at, id) in [(2, "a"), (3, "b")] {
        add(&bench, at, id, 3).await.unwrap();
        bench.at(at).operation_cancel(queue, id).await.unwrap();
    }
    for (at, id) in [(4, "c"), (5, "d")] {
        add(&bench, at, id, 3).await.unwrap();
    }
    let found = bench.at(6).operations(queue, 9).await.unwrap();
    assert_eq!(found.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), ["d", "c", "useful"]);
    add(&bench, 6, "e", 3).await.unwrap();
    let found = bench.at(6).operation_counted(queue, "useful", 1).await.unwrap();
    assert_eq!(found, None, "what it has counted leaves with it");
    assert_eq!(bench.fsck().await, [""; 0]);
}

fn batch(fence: u64, number: u64, states: &[TaskState]) -> OperationBatch<'_> {
    OperationBatch { operation: "a", fence, number, states, until_ms: START + 999 }
}

/// Returns a task that was counted and has never ended nor failed.
fn waits(id: &TaskId) -> CountedTask {
    CountedTask { id: id.clone(), mark: Mark::failed(0) }
}

/// Returns a task that was counted, and had ended at that time.
fn ended(id: &TaskId, at: u64) -> CountedTask {
    CountedTask { id: id.clone(), mark: Mark::ended(START + at) }
}

/// Returns whether each task was changed.
async fn operate(
    bench: &Bench,
    act: Act,
    batch: OperationBatch<'_>,
    tasks: &[CountedTask],
) -> Result<Vec<bool>, BrokerError> {
    let done = bench.at(1_000).operate(act, &bench.queue, batch, tasks).await?.0;
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

async fn counted_tasks_leave_as_they_are_reached_and_when_it_is_over(bench: Bench) {
    let (queue, day) = (&bench.queue, 86_400_000);
    for id in ["a", "b", "c"] {
        add(&bench, 0, id, 9).await.unwrap();
        counted(&bench, 1, id).await;
    }
    let left = async |id, number| bench.at(2).operation_counted(queue, id, number).await.unwrap();
    assert_eq!(left("a", 1).await.as_deref(), Some(&b"some"[..]));
    let expires = async |id: &str| bench.raw::<i64>(cmd("PTTL").arg(bench.key(id))).await;
    let kept = expires("counted:a").await;
    assert!(kept > day, "nobody has confirmed it, and {kept} ms are left");
    bench.at(2).operation_confirm(queue, "a", 5, "").await.unwrap();
    assert_eq!(expires("counted:a").await, -1, "it goes on, however late");
    let (fence, _) = bench.at(3).operation_take(queue, "a", ms(9)).await.unwrap();
    let reached = Held { reached: Some(1), ..held(fence, 9, "running", "running") };
    for _ in 0..2 {
        bench.at(4).operation_carry(queue, "a", reached).await.unwrap();
    }
    assert_eq!(left("a", 1).await, None);
    assert_eq!(left("a", 2).await.as_deref(), Some(&b"more"[..]));
    bench.at(5).operation_carry(queue, "a", held(fence, 0, "running", "done")).await.unwrap();
    bench.at(5).operation_cancel(queue, "b").await.unwrap();
    // Nobody could say what was counted.
    let () = bench.raw(cmd("DEL").arg(bench.key("counted:c"))).await;
    let lost = bench.at(5).operation_confirm(queue, "c", 5, "").await;
    assert_eq!(refusal(lost), Refusal::Forgotten);
    for id in ["a", "b"] {
        assert_eq!(left(id, 2).await, None, "{id} is over");
    }
    assert_eq!(bench.fsck().await, [""; 0]);
}

async fn a_batch_changes_only_what_was_counted_and_another_carrier_counts_it(bench: Bench) {
    let ids = [dies(&bench, 10, 1).await, dies(&bench, 20, 2).await, dies(&bench, 30, 3).await];
    // The last one has died once more since it was counted.
    let tasks = [ended(&ids[0], 10), ended(&ids[1], 20), ended(&ids[2], 29)];
    let dead = batch(7, 1, &[TaskState::Dead]);
    let done = operate(&bench, Act::Requeue, dead, &tasks).await.unwrap();
    assert_eq!(done, [true, true, false]);
    // A repeat changes nothing, also if the first one dies again.
    let worker = bench.worker(40, "w").await;
    let lease = bench.take(40, &worker, 4).await;
    assert_eq!(lease.id, ids[0]);
    assert!(bench.fail(40, &[failed(&lease, FailureOutcome::Dead)]).await.is_empty());
    assert_eq!(operate(&bench, Act::Requeue, dead, &tasks).await.unwrap(), [false; 3]);
    // The next carrier learns how many were changed in the batch that is not counted.
    let queue = &bench.queue;
    assert_eq!(bench.at(50).operation_adopt(queue, "a", 8, 1).await.unwrap(), 2);
    assert_eq!(bench.at(50).operation_adopt(queue, "a", 8, 2).await.unwrap(), 0);
    let before = bench.dump().await;
    for act in [Act::Requeue, Act::Delete, Act::Cancel, Act::RunNow] {
        let stale = operate(&bench, act, batch(7, 9, &[TaskState::Dead]), &tasks).await;
        assert_eq!(refusal(stale.map(drop)), Refusal::Stale, "{act:?}");
    }
    let stale = bench.at(50).operation_adopt(queue, "a", 7, 9).await;
    assert_eq!(refusal(stale.map(drop)), Refusal::Stale);
    bench.assert_unchanged(&before).await;
    let tasks = [ended(&ids[0], 10), ended(&ids[1], 20), ended(&ids[2], 30)];
    let dead = batch(8, 3, &[TaskState::Dead]);
    let done = operate(&bench, Act::Delete, dead, &tasks).await.unwrap();
    assert_eq!(done, [false, false, true]);
}

async fn a_waiting_task_that_has_failed_since_it_was_counted_stays(bench: Bench) {
    let ids = [bench.add(0, job()).await, bench.add(1, job()).await];
    let tasks = [waits(&ids[0]), waits(&ids[1])];
    let worker = bench.worker(2, "w").await;
    let lease = bench.take(2, &worker, 1).await;
    let retry = failed(&lease, FailureOutcome::Retry(ms(900_000)));
    assert!(bench.fail(3, &[retry]).await.is_empty());
    let before = bench.dump().await;
    let states = [TaskState::Retry, TaskState::Ready, TaskState::Delayed];
    for act in [Act::Cancel, Act::Delete, Act::RunNow] {
        let done = operate(&bench, act, batch(7, 1, &states), &tasks[..1]).await.unwrap();
        assert_eq!(done, [false], "{act:?}");
    }
    bench.assert_unchanged(&before).await;
    let done = operate(&bench, Act::Delete, batch(7, 2, &states), &tasks).await.unwrap();
    assert_eq!(done, [false, true]);
    let failed = CountedTask { id: ids[0].clone(), mark: Mark::failed(START + 3) };
    let done = operate(&bench, Act::Delete, batch(7, 3, &states), &[failed]).await.unwrap();
    assert_eq!(done, [true], "one that was counted after the failure does not");
}

async fn a_blocked_task_is_none_that_is_ready(bench: Bench) {
    let first = bench.add(0, job().lane("one")).await;
    let second = bench.add(1, job().lane("one")).await;
    let tasks = [waits(&first), waits(&second)];
    for (number, act) in [(1, Act::Cancel), (2, Act::Delete)] {
        let before = bench.dump().await;
        let blocked = batch(7, number, &[TaskState::Blocked]);
        assert_eq!(operate(&bench, act, blocked, &tasks[..1]).await.unwrap(), [false]);
        let ready = batch(7, number, &[TaskState::Ready]);
        assert_eq!(operate(&bench, act, ready, &tasks[1..]).await.unwrap(), [false]);
        bench.assert_unchanged(&before).await;
    }
    let both = batch(7, 3, &[TaskState::Blocked, TaskState::Ready]);
    assert_eq!(operate(&bench, Act::Delete, both, &tasks).await.unwrap(), [true; 2]);
}

async fn a_requeue_that_is_rejected_hides_no_other(bench: Bench) {
    let first = dies(&bench, 10, 1).await;
    let rejected = bench.add(20, job().biz_id("a")).await;
    die(&bench, 20, 2).await;
    let last = dies(&bench, 30, 3).await;
    let tasks = [ended(&first, 10), ended(&rejected, 20), ended(&last, 30)];
    let mark = bench.key("biz:job:a");
    let () = bench.raw(cmd("DEL").arg(&mark)).await;
    let () = bench.raw(cmd("RPUSH").arg(&mark).arg("of another program")).await;
    let dead = batch(7, 1, &[TaskState::Dead]);
    let done = bench.at(1_000).operate(Act::Requeue, &bench.queue, dead, &tasks).await.unwrap().0;
    let [Changed::Done, Changed::Refused(why), Changed::Done] = &done[..] else {
        panic!("{done:?}");
    };
    assert!(matches!(why, BrokerError::Rejected(_)), "{why}");
    assert_eq!(bench.at(1_001).operation_adopt(&bench.queue, "a", 8, 1).await.unwrap(), 2);
}

async fn an_operation_makes_no_task_due_twice(bench: Bench) {
    let id = bench.add(0, job().due(Due::In(ms(900_000)))).await;
    let tasks = [waits(&id)];
    let first = batch(7, 1, &[TaskState::Delayed]);
    assert_eq!(operate(&bench, Act::RunNow, first, &tasks).await.unwrap(), [true]);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0], "the next claim looks for it");
    // No claim has moved it yet when another carrier counts it, and comes back to it.
    assert_eq!(bench.at(1_000).operation_adopt(&bench.queue, "a", 8, 1).await.unwrap(), 1);
    let second = batch(8, 2, &[TaskState::Delayed]);
    assert_eq!(operate(&bench, Act::RunNow, second, &tasks).await.unwrap(), [false]);
    let worker = bench.worker(1_001, "w").await;
    assert_eq!(bench.take(1_001, &worker, 1).await.id, id, "it is due");
}

async fn a_batch_delays_tasks_that_were_cancelled_before_they_were_due(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let retried = bench.add(0, job()).await;
    let lease = bench.take(0, &worker, 1).await;
    let again = FailureOutcome::Retry(ms(2_000));
    assert!(bench.fail(0, &[failed(&lease, again)]).await.is_empty());
    let due = |at| job().due(Due::In(ms(at)));
    let in_lane = bench.add_call_in(0, &Lane::new("a"), due(3_000)).await;
    let [delayed, past] = [bench.add(0, due(4_000)).await, bench.add(0, due(8)).await];
    let ids = [&retried, &in_lane, &delayed, &past];
    bench.at(5).cancel_all(&bench.queue, &ids).await.unwrap();
    let is_sound = async || bench.fsck().await.iter().all(|one| !one.contains("tries"));
    assert!(is_sound().await);
    let tasks = ids.map(|id| ended(id, 5));
    let cancelled = batch(7, 1, &[TaskState::Cancelled]);
    assert_eq!(operate(&bench, Act::Requeue, cancelled, &tasks).await.unwrap(), [true; 4]);
    for (id, state, at_ms) in [
        (&retried, TaskState::Delayed, Some(START + 2_000)),
        (&in_lane, TaskState::Delayed, Some(START + 3_000)),
        (&delayed, TaskState::Delayed, Some(START + 4_000)),
        (&past, TaskState::Ready, None),
    ] {
        let found = bench.now().inspect(id).await.unwrap();
        assert_eq!((found.state, found.at_ms, found.tries), (state, at_ms, (0, 0, 0)));
    }
    bench.assert_lane("a", &[]).await;
    for (seq, at, id) in
        [(2, 1_999, &past), (3, 2_000, &retried), (4, 3_000, &in_lane), (5, 4_000, &delayed)]
    {
        let claimed = bench.claim(at, &worker, seq, 9).await;
        assert_eq!(claimed.grants.iter().map(|grant| &grant.id).collect::<Vec<_>>(), [id]);
    }
    assert!(is_sound().await);
}

async fn a_batch_leaves_tasks_that_are_in_another_state(bench: Bench) {
    let ready = bench.add(0, job()).await;
    let later = bench.add(0, job().due(Due::In(ms(900_000)))).await;
    let tasks = [waits(&ready), waits(&later)];
    let as_ready = batch(7, 1, &[TaskState::Ready]);
    let as_delayed = batch(7, 2, &[TaskState::Delayed]);
    let before = bench.dump().await;
    let wrong = batch(7, 1, &[TaskState::Retry]);
    for act in [Act::Cancel, Act::Delete, Act::RunNow] {
        let done = operate(&bench, act, wrong, &tasks).await.unwrap();
        assert_eq!(done, [false; 2], "{act:?}");
    }
    bench.assert_unchanged(&before).await;
    assert_eq!(operate(&bench, Act::RunNow, as_delayed, &tasks).await.unwrap(), [false, true]);
    let stale = operate(&bench, Act::Cancel, as_ready, &tasks).await;
    assert_eq!(refusal(stale.map(drop)), Refusal::Stale, "an earlier batch");
    assert_eq!(operate(&bench, Act::Cancel, as_delayed, &tasks).await.unwrap(), [false, true]);
    assert_eq!(bench.at(1_000).operation_adopt(&bench.queue, "a", 7, 2).await.unwrap(), 2);
    assert_eq!(bench.state(&later).await, TaskState::Cancelled);
}

on_both![
    one_carrier_at_a_time_has_the_lease_and_a_later_one_a_larger_fence,
    a_confirm_needs_the_number_and_a_cancel_keeps_what_was_done,
    a_count_that_is_a_day_old_is_confirmed_no_more,
    the_oldest_operations_leave_unless_they_are_under_way,
    operations_that_match_no_task_leave_first,
    counted_tasks_leave_as_they_are_reached_and_when_it_is_over,
    a_batch_changes_only_what_was_counted_and_another_carrier_counts_it,
    a_waiting_task_that_has_failed_since_it_was_counted_stays,
    a_blocked_task_is_none_that_is_ready,
    a_batch_delays_tasks_that_were_cancelled_before_they_were_due,
    a_batch_leaves_tasks_that_are_in_another_state,
    an_operation_makes_no_task_due_twice,
    a_requeue_that_is_rejected_hides_no_other,
];
