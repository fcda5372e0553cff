//! Tasks that wait for tasks of other queues: outboxes, relays that die or come late, and stores
//! that lose their last writes.

use optimus_core::{
    After, Prerequisite, PrerequisiteFailure, TaskId, TaskState,
    broker::{Cancelled, FailureOutcome},
};
use redis::cmd;

use crate::{
    acts::{Grants, done, failed},
    after::{after, done_as, keyed, or, remembered},
    bench::Bench,
    jobs::job,
};

/// Two queues, each with a worker. The first has the prerequisites.
async fn two(bench: Bench) -> (Bench, Bench) {
    let there = bench.sibling("there");
    bench.worker(0, "w").await;
    there.worker(0, "w").await;
    (there, bench)
}

fn there_is(bench: &Bench) -> optimus_core::Call<crate::jobs::Job> {
    job().queue(&bench.queue)
}

/// Ends the next task of the queue with success.
async fn succeed(bench: &Bench, at: u64, seq: u64) -> TaskId {
    let lease = bench.take(at, &optimus_core::WorkerId::from_stored("w"), seq).await;
    bench.complete(at, &[done(&lease)]).await;
    lease.id
}

async fn next(bench: &Bench, at: u64, seq: u64) -> Vec<TaskId> {
    bench.run_all(at, &optimus_core::WorkerId::from_stored("w"), seq).await
}

async fn a_task_waits_for_one_of_another_queue(bench: Bench) {
    let (there, here) = two(bench).await;
    let first = there.add(0, there_is(&there)).await;
    let second = here.add_after(1, job(), after(&first)).await;
    assert_eq!(here.state(&second).await, TaskState::Blocked);
    assert!(here.now().outboxes(std::slice::from_ref(&here.queue)).await.unwrap()[0]);
    here.relay_all(2).await;
    assert_eq!(
        there.field("ties", &first.stored()).await,
        Some(format!("{}0@default", second.stored()))
    );
    assert_eq!(there.field("meta", "needs").await.as_deref(), Some("4"));
    assert_eq!(succeed(&there, 3, 1).await, first);
    assert_eq!(here.state(&second).await, TaskState::Blocked, "no relay has run yet");
    there.relay_all(4).await;
    assert_eq!(next(&here, 5, 1).await, [second]);
    here.assert_nobody_waits().await;
    there.assert_nobody_waits().await;
}

const HOUR_MS: u64 = 3_600_000;

async fn a_tie_whose_drop_was_lost_ends_after_some_hours(bench: Bench) {
    let (there, here) = two(bench).await;
    let first = there.add(0, there_is(&there)).await;
    let waits = here.add_after(0, job(), after(&first)).await;
    let gone = here.add_after(0, job(), after(&first)).await;
    here.relay_all(1).await;
    // The effect of the cancel is lost.
    here.at(2).cancel(&gone).await.unwrap();
    let () = here.raw(cmd("DEL").arg(here.key("outbox:there")).arg(here.key("outboxes"))).await;
    there.relay(HOUR_MS).await;
    let ties = async || there.field("ties", &first.stored()).await.unwrap_or_default();
    assert_eq!(ties().await.split(' ').count(), 2, "it is not asked yet");
    there.relay(3 * HOUR_MS + 1).await;
    assert_eq!(ties().await, format!("{}0@default", waits.stored()));
    // The other one still waits, and learns of the end.
    there.worker(3 * HOUR_MS + 2, "w").await;
    assert_eq!(succeed(&there, 3 * HOUR_MS + 2, 1).await, first);
    there.relay_all(3 * HOUR_MS + 3).await;
    assert_eq!(here.state(&waits).await, TaskState::Ready);
    there.relay(3 * HOUR_MS + 4).await;
    assert!(!there.names().await.contains(&"asked".to_owned()), "nothing is left");
}

async fn a_task_that_was_never_submitted_leaves_no_tie(bench: Bench) {
    let (there, here) = two(bench).await;
    let never = keyed(&there, "never");
    let waits = here.add_after(0, job(), After::new([never])).await;
    here.relay_all(1).await;
    assert_eq!(there.field("ties", "job:never").await.map(|tie| tie.len()), Some(31));
    // Its queue is gone, with the task and the outbox.
    let names = here.names().await;
    for name in names {
        let () = here.raw(cmd("DEL").arg(here.key(&name))).await;
    }
    there.relay(3 * HOUR_MS + 2).await;
    assert_eq!(there.field("ties", "job:never").await, None);
    there.assert_nobody_waits().await;
    drop(waits);
}

async fn an_earlier_success_is_found(bench: Bench) {
    let (there, here) = two(bench).await;
    let worker = optimus_core::WorkerId::from_stored("w");
    let first = there.add(0, there_is(&there).biz_id("a b")).await;
    let lease = there.take(1, &worker, 1).await;
    there.complete(2, &[remembered(done_as(&lease, "a b"))]).await;
    let wait = After::new([keyed(&there, "a b"), Prerequisite::Task(first)]);
    let second = here.add_after(3, job(), wait).await;
    // One turn also carries the answer, because the other queue may have no worker.
    here.relay(4).await;
    assert_eq!(next(&here, 5, 1).await, [second]);
    here.assert_nobody_waits().await;
    there.assert_nobody_waits().await;
}

async fn the_answers_of_a_hundred_queues_come_at_once(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let mut wait = Vec::new();
    for queue in 0..100 {
        let there = bench.sibling(&format!("there{queue}"));
        there.worker(0, "w").await;
        let first = there.add(0, there_is(&there)).await;
        succeed(&there, 1, 1).await;
        wait.push(Prerequisite::Task(first));
    }
    let waits = wait.chunks(25).map(|some| After::new(some.to_vec()));
    let mut ids = Vec::new();
    for wait in waits {
        ids.push(bench.add_after(2, job(), wait).await);
    }
    while bench.relay(3).await.more {}
    let mut started = bench.run_all(4, &worker, 1).await;
    started.sort();
    ids.sort();
    assert_eq!(started, ids);
}

async fn late_and_repeated_relays_change_nothing(bench: Bench) {
    let (there, here) = two(bench).await;
    let first = there.add(0, there_is(&there)).await;
    let second = here.add_after(1, job(), after(&first)).await;
    let asks = here.now().outgoing(&here.queue).await.unwrap().remove(0);
    let applied = there.at(2).apply(&asks).await.unwrap();
    let before = there.dump().await;
    assert_eq!(there.at(3).apply(&asks).await.unwrap().last, applied.last);
    there.assert_unchanged(&before).await;
    here.now().relayed(&asks, applied.last).await.unwrap();
    succeed(&there, 4, 1).await;
    let met = there.now().outgoing(&there.queue).await.unwrap().remove(0);
    here.at(5).apply(&met).await.unwrap();
    assert_eq!(next(&here, 6, 1).await, std::slice::from_ref(&second));
    let before = here.dump().await;
    here.at(7).apply(&met).await.unwrap();
    here.assert_unchanged(&before).await;
    // A relay that slept asks after everything has ended.
    there.at(8).apply(&asks).await.unwrap();
    there.relay_all(9).await;
    there.assert_nobody_waits().await;
}

/// A relay that read the outbox before others were posted.
async fn a_late_relay_of_fewer_effects_changes_nothing(bench: Bench) {
    let (there, here) = two(bench).await;
    for _ in 0..2 {
        let first = there.add(0, there_is(&there)).await;
        here.add_after(1, job(), after(&first)).await;
    }
    let asks = here.now().outgoing(&here.queue).await.unwrap().remove(0);
    assert_eq!(asks.effects.len(), 2);
    there.at(2).apply(&asks).await.unwrap();
    succeed(&there, 3, 1).await;
    let before = there.dump().await;
    let mut fewer = asks.clone();
    fewer.effects.truncate(1);
    let applied = there.at(4).apply(&fewer).await.unwrap();
    there.assert_unchanged(&before).await;
    assert!(asks.effects[1].starts_with(&applied.last.to_string()), "both are applied");
}

async fn ends_elsewhere_are_answered_by_policy(bench: Bench) {
    use PrerequisiteFailure::{Cancel, Run, Wait};
    let (there, here) = two(bench).await;
    let worker = optimus_core::WorkerId::from_stored("w");
    let first = there.add(0, there_is(&there)).await;
    let mut ids = Vec::new();
    for policy in [Wait, Cancel, Run] {
        ids.push(here.add_after(0, job(), or(policy, after(&first))).await);
    }
    here.relay_all(1).await;
    let lease = there.take(2, &worker, 1).await;
    there.fail(3, &[failed(&lease, FailureOutcome::Dead)]).await;
    there.relay_all(4).await;
    for (id, state) in ids.iter().zip([TaskState::Blocked, TaskState::Cancelled, TaskState::Ready])
    {
        assert_eq!(here.state(id).await, state);
    }
    // The tasks that no longer wait have said so.
    here.relay_all(5).await;
    let tie = format!("{}0@default", ids[0].stored());
    assert_eq!(there.field("ties", &first.stored()).await, Some(tie));
    // A task that asks later learns of it.
    let later = here.add_after(6, job(), or(Cancel, after(&first))).await;
    here.relay_all(7).await;
    assert_eq!(here.state(&later).await, TaskState::Cancelled);
    assert_eq!((here.fsck_of_tasks().await, there.fsck_of_tasks().await), (vec![], vec![]));
}

async fn a_cancelled_task_no_longer_waits_elsewhere(bench: Bench) {
    let (there, here) = two(bench).await;
    let first = there.add(0, there_is(&there)).await;
    let second = here.add_after(0, job(), after(&first)).await;
    here.relay_all(1).await;
    assert_eq!(here.at(2).cancel(&second).await.unwrap(), Cancelled::Done);
    here.relay_all(3).await;
    there.assert_nobody_waits().await;
    // It asks again if it is requeued.
    here.at(4).requeue(&second).await.unwrap();
    assert_eq!(here.state(&second).await, TaskState::Blocked);
    here.relay_all(5).await;
    succeed(&there, 6, 1).await;
    there.relay_all(7).await;
    assert_eq!(next(&here, 8, 1).await, [second]);
    here.assert_nobody_waits().await;
}

async fn a_lost_question_or_answer_is_asked_for_again(bench: Bench) {
    let (there, here) = two(bench).await;
    let first = there.add(0, there_is(&there)).await;
    let second = here.add_after(0, job(), after(&first)).await;
    // A failover of this queue loses the question.
    let _: u64 = here.raw(cmd("DEL").arg(here.key("outbox:there")).arg(here.key("outboxes"))).await;
    assert_eq!(here.relay(59_999).await.moved, 0);
    assert_eq!(here.relay(60_000).await.moved, 1);
    assert!(there.field("ties", &first.stored()).await.is_some());
    // A failover of the other one loses the answer.
    there.worker(60_001, "w").await;
    there.add(60_001, there_is(&there)).await;
    let lease = there.take(60_001, &optimus_core::WorkerId::from_stored("w"), 1).await;
    there.complete(60_001, &[remembered(done(&lease))]).await;
    let _: u64 =
        there.raw(cmd("DEL").arg(there.key("outbox:default")).arg(there.key("outboxes"))).await;
    assert_eq!(here.relay(119_999).await.moved, 0);
    here.relay_all(120_000).await;
    assert_eq!(here.state(&second).await, TaskState::Ready);
    // The wait between two questions doubles, up to an hour.
    here.assert_nobody_waits().await;
}

async fn questions_become_rare_up_to_one_in_an_hour(bench: Bench) {
    let (there, here) = two(bench).await;
    let first = there.add(0, there_is(&there)).await;
    let second = here.add_after(0, job(), after(&first)).await;
    let mut at = 0;
    let mut waits = Vec::new();
    for _ in 0..9 {
        let due = here.score("asks", &second.stored()).await.unwrap() - crate::bench::START;
        waits.push((due - at) / 60_000);
        at = due;
        here.relay_all(at).await;
    }
    assert_eq!(waits, [1, 1, 2, 4, 8, 16, 32, 60, 60]);
    let tie = there.field("ties", &first.stored()).await;
    assert_eq!(tie, Some(format!("{}0@default", second.stored())), "asked twice is asked once");
}

/// A source that lost its last writes must not use numbers again that the target ignores.
async fn numbers_of_an_outbox_grow_over_a_failover(bench: Bench) {
    let (there, here) = two(bench).await;
    let mut pairs = Vec::new();
    for _ in 0..4 {
        let first = there.add(0, there_is(&there)).await;
        pairs.push((first.clone(), here.add_after(0, job(), after(&first)).await));
    }
    here.relay_all(1).await;
    let snapshot = there.dump().await;
    succeed(&there, 2, 1).await;
    succeed(&there, 2, 2).await;
    there.relay_all(3).await;
    there.restore(&snapshot).await;
    // This time they end in another order.
    let worker = optimus_core::WorkerId::from_stored("w");
    let claimed = there.claim(4, &worker, 1, 4).await;
    for lease in claimed.leases(&worker).iter().rev() {
        there.complete(4, &[done(lease)]).await;
    }
    there.relay_all(5).await;
    for (first, second) in &pairs {
        assert_eq!(there.state(first).await, TaskState::Success);
        assert_eq!(here.state(second).await, TaskState::Ready);
    }
    here.assert_nobody_waits().await;
}

async fn a_queue_for_whose_tasks_others_wait_is_not_retired(bench: Bench) {
    let (there, here) = two(bench).await;
    let wait = After::new([keyed(&there, "o-1")]);
    let second = here.add_after(0, job(), wait).await;
    here.relay_all(1).await;
    there.at(2).leave(&there.queue, &optimus_core::WorkerId::from_stored("w")).await.unwrap();
    assert!(!there.at(9_000_000).retire(&there.queue, std::time::Duration::ZERO).await.unwrap());
    here.at(3).cancel(&second).await.unwrap();
    here.relay_all(4).await;
    assert!(there.at(9_000_000).retire(&there.queue, std::time::Duration::ZERO).await.unwrap());
}

on_both![
    a_task_waits_for_one_of_another_queue,
    a_tie_whose_drop_was_lost_ends_after_some_hours,
    a_task_that_was_never_submitted_leaves_no_tie,
    an_earlier_success_is_found,
    the_answers_of_a_hundred_queues_come_at_once,
    late_and_repeated_relays_change_nothing,
    a_late_relay_of_fewer_effects_changes_nothing,
    ends_elsewhere_are_answered_by_policy,
    a_cancelled_task_no_longer_waits_elsewhere,
    a_lost_question_or_answer_is_asked_for_again,
    questions_become_rare_up_to_one_in_an_hour,
    numbers_of_an_outbox_grow_over_a_failover,
    a_queue_for_whose_tasks_others_wait_is_not_retired,
];
