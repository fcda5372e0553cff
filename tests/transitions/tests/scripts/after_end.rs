//! Prerequisites that end without success, tasks that give up, and many tasks that wait for one.

use optimus_core::{
    After, Prerequisite, PrerequisiteFailure, Submission, TaskId, TaskState, WorkerId,
    broker::FailureOutcome,
};

use crate::{
    acts::{Grants, done, failed, keep, ms},
    after::{after, keyed, or},
    bench::Bench,
    jobs::{job, ready},
};

use PrerequisiteFailure::{Cancel, Run, Wait};

/// Three tasks that wait for one, each with another policy.
async fn three(bench: &Bench, wait: &After) -> [TaskId; 3] {
    let mut ids = Vec::new();
    for policy in [Wait, Cancel, Run] {
        ids.push(bench.add_after(0, job(), or(policy, wait.clone())).await);
    }
    ids.try_into().expect("three policies")
}

/// The prerequisite may come back.
async fn assert_states(bench: &Bench, ids: &[TaskId; 3]) {
    assert_first(bench, ids, TaskState::Blocked).await;
}

/// The prerequisite can't come back.
async fn assert_void(bench: &Bench, ids: &[TaskId; 3]) {
    assert_first(bench, ids, TaskState::Cancelled).await;
}

async fn assert_first(bench: &Bench, ids: &[TaskId; 3], that_waits: TaskState) {
    bench.relay_all(9).await;
    let expected = [that_waits, TaskState::Cancelled, TaskState::Ready];
    for (id, state) in ids.iter().zip(expected) {
        assert_eq!(bench.state(id).await, state, "{id}");
    }
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn dead(bench: &Bench, worker: &WorkerId, seq: u64) -> TaskId {
    let lease = bench.take(1, worker, seq).await;
    bench.fail(2, &[failed(&lease, FailureOutcome::Dead)]).await;
    lease.id
}

async fn a_dead_prerequisite_is_answered_by_policy(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let first = bench.add(0, job().biz_id("a")).await;
    let by_id = three(&bench, &after(&first)).await;
    let by_key = three(&bench, &After::new([keyed(&bench, "a")])).await;
    dead(&bench, &worker, 1).await;
    for ids in [&by_id, &by_key] {
        assert_states(&bench, ids).await;
    }
    let found = bench.now().inspect(&by_id[1]).await.unwrap();
    let error = found.errors.lines().last().expect("it says why");
    assert!(error.contains(&first.stored()) && error.contains("\"dead\""), "{error}");
    // Tasks that come later learn of it, too.
    assert_states(&bench, &three(&bench, &after(&first)).await).await;
    assert_states(&bench, &three(&bench, &After::new([keyed(&bench, "a")])).await).await;
    // The prerequisite runs again, and the tasks that wait for it continue.
    bench.at(10).requeue(&first).await.unwrap();
    for seq in 2.. {
        if bench.run_as(11, &worker, seq).await.is_empty() {
            break;
        }
    }
    for id in [&by_id[0], &by_key[0]] {
        assert_eq!(bench.state(id).await, TaskState::Success);
    }
    bench.relay_all(12).await;
    bench.assert_nobody_waits().await;
}

async fn every_end_of_a_prerequisite_is_passed_on(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    // Cancelled while it waits.
    let first = bench.add(0, job()).await;
    let ids = three(&bench, &after(&first)).await;
    bench.at(1).cancel(&first).await.unwrap();
    assert_states(&bench, &ids).await;
    bench.at(9).delete_all(&bench.queue, &[&ids[0], &ids[2]]).await.unwrap();
    // Cancelled while it works.
    let first = bench.add(9, job()).await;
    let ids = three(&bench, &after(&first)).await;
    let lease = bench.take(9, &worker, 1).await;
    bench.at(9).cancel(&first).await.unwrap();
    bench.fail(9, &[failed(&lease, FailureOutcome::Retry(ms(5)))]).await;
    assert_states(&bench, &ids).await;
    bench.at(9).delete_all(&bench.queue, &[&ids[0], &ids[2]]).await.unwrap();
    // Deleted. Another task may have its biz id.
    let first = bench.add(9, job().biz_id("a")).await;
    let ids = three(&bench, &after(&first)).await;
    let by_key = three(&bench, &After::new([keyed(&bench, "a")])).await;
    bench.at(9).delete_all(&bench.queue, &[&first]).await.unwrap();
    assert_void(&bench, &ids).await;
    assert_void(&bench, &three(&bench, &after(&first)).await).await;
    assert_states(&bench, &by_key).await;
}

/// A cancel frees the biz id, so the tasks wait for the next one that has it.
async fn the_removal_of_a_cancelled_task_is_not_an_end_of_the_next_one_with_its_biz_id(
    bench: Bench,
) {
    let worker = bench.worker(0, "w").await;
    let old = [bench.add(0, job().biz_id("a")).await, bench.add(0, job().biz_id("b")).await];
    for id in &old {
        bench.at(1).cancel(id).await.unwrap();
    }
    let mut waiting = Vec::new();
    for key in ["a", "b"] {
        waiting.push(three(&bench, &After::new([keyed(&bench, key)])).await);
    }
    bench.at(2).delete_all(&bench.queue, &[&old[0]]).await.unwrap();
    bench.at(2).purge(&bench.queue, keep(0, ms(1_000_000)), ms(1_000_000)).await.unwrap();
    assert_eq!(bench.state(&old[1]).await, TaskState::Forgotten);
    bench.relay_all(3).await;
    for id in waiting.iter().flatten() {
        assert_eq!(bench.state(id).await, TaskState::Blocked);
    }
    // The next one has it.
    bench.add(4, job().biz_id("a")).await;
    dead(&bench, &worker, 1).await;
    assert_states(&bench, &waiting[0]).await;
}

/// An end is passed on later. By that time, another task may have the biz id, or the task may run
/// again.
async fn an_end_of_a_prerequisite_that_runs_again_is_not_passed_on(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let first = bench.add(0, job().biz_id("a")).await;
    bench.add_after(0, job(), or(Cancel, after(&first))).await;
    bench.at(1).cancel(&first).await.unwrap();
    let second = bench.add(1, job().biz_id("a")).await;
    let by_key = three(&bench, &After::new([keyed(&bench, "a")])).await;
    bench.relay_all(2).await;
    for id in &by_key {
        assert_eq!(bench.state(id).await, TaskState::Blocked);
    }
    assert_eq!(dead(&bench, &worker, 1).await, second);
    bench.at(3).requeue(&second).await.unwrap();
    bench.relay_all(4).await;
    for id in &by_key {
        assert_eq!(bench.state(id).await, TaskState::Blocked);
    }
    assert_eq!(dead(&bench, &worker, 2).await, second);
    assert_states(&bench, &by_key).await;
}

async fn a_purged_prerequisite_does_not_come_back(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.add(0, job()).await;
    let first = dead(&bench, &worker, 1).await;
    bench.relay_all(3).await;
    let ids = three(&bench, &after(&first)).await;
    let next = bench.add_after(3, job(), after(&ids[0])).await;
    let keep_none = keep(0, ms(1_000_000));
    bench.at(4).purge(&bench.queue, keep_none, ms(1_000_000)).await.unwrap();
    assert_void(&bench, &ids).await;
    assert_eq!(bench.state(&next).await, TaskState::Cancelled, "and so in turn");
    assert_eq!(bench.state(&first).await, TaskState::Forgotten);
}

async fn tasks_that_wait_for_a_cancelled_one_learn_of_it_one_after_the_other(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let mut ids = vec![bench.add(0, job()).await];
    for _ in 0..5 {
        let last = ids.last().expect("the first");
        ids.push(bench.add_after(0, job(), or(Cancel, after(last))).await);
    }
    dead(&bench, &worker, 1).await;
    bench.relay_all(3).await;
    for id in &ids[1..] {
        assert_eq!(bench.state(id).await, TaskState::Cancelled);
    }
    bench.assert_unmet_kept(5).await;
}

async fn a_task_gives_up_after_its_time(bench: Bench) {
    bench.now().retain(&bench.queue, Some((9, 1 << 20, "*"))).await.unwrap();
    let worker = bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    let mut wait = after(&first);
    wait.give_up_after = Some(ms(1_000));
    let second = bench.add_after(0, job(), wait).await;
    let turn = bench.relay(999).await;
    assert_eq!(turn.next_ask, Some(ms(1)));
    assert_eq!(bench.state(&second).await, TaskState::Blocked);
    bench.relay_all(1_000).await;
    assert_eq!(bench.state(&second).await, TaskState::Dead);
    let found = bench.now().inspect(&second).await.unwrap();
    assert!(found.errors.contains("\"waiting\""), "{:?}", found.errors);
    let (state, day) = (TaskState::Dead, crate::world_history::TODAY);
    let kept = bench.now().history(&bench.queue, (state, day), 0, 9).await.unwrap().entries;
    let (id, died) = (second.stored(), crate::bench::START + 1_000);
    assert!(kept.len() == 1 && kept[0].starts_with(&format!("{id} {died} job 0 {{")), "{kept:?}");
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    // It waits again for as long after a requeue.
    bench.at(2_000).requeue(&second).await.unwrap();
    assert_eq!(bench.score("giveups", &second.stored()).await, Some(crate::bench::START + 3_000));
    assert_eq!(bench.run_all(2_500, &worker, 1).await, [first]);
    assert_eq!(bench.run_all(2_501, &worker, 2).await, [second]);
    bench.assert_nobody_waits().await;
}

async fn a_thousand_tasks_that_wait_for_one_are_released_in_turns(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    let tasks: Vec<Submission> =
        (0..1_000).map(|_| ready(job()).waiting_for(after(&first))).collect();
    bench.submit(0, &tasks).await;
    assert_eq!(bench.field("ties", &first.stored()).await.as_deref(), Some("*"));
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    assert_eq!(bench.run_all(1, &worker, 1).await, [first]);
    let mut released = 0;
    while let Some(effects) = bench.now().outgoing(&bench.queue).await.unwrap().pop() {
        let applied = bench.at(2).apply(&effects).await.unwrap();
        bench.now().relayed(&effects, applied.last).await.unwrap();
        let counts = bench.now().counts(&bench.queue).await.unwrap();
        assert!(counts.ready - released <= 128, "a call releases a limited number");
        released = counts.ready;
        assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    }
    bench.assert_nobody_waits().await;
    let mut seen = std::collections::BTreeSet::new();
    for seq in 2..12 {
        seen.extend(bench.run_all(3, &worker, seq).await);
    }
    assert_eq!(seen.len(), 1_000);
    assert!(bench.claim(4, &worker, 12, 9).await.ids().is_empty(), "each is released once");
}

async fn many_who_wait_for_a_dead_task_learn_of_it_in_several_calls(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    let tasks: Vec<Submission> = (0..600)
        .map(|i| ready(job()).waiting_for(or([Wait, Cancel, Run][i % 3], after(&first))))
        .collect();
    bench.submit(0, &tasks).await;
    dead(&bench, &worker, 1).await;
    bench.relay_all(3).await;
    let counts = bench.now().counts(&bench.queue).await.unwrap();
    assert_eq!((counts.blocked, counts.cancelled, counts.ready), (200, 200, 200));
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    bench.at(4).requeue(&first).await.unwrap();
    let claimed = bench.claim(5, &worker, 2, 128).await;
    let claimed = [claimed, bench.claim(5, &worker, 3, 128).await];
    for claimed in claimed {
        let reports: Vec<_> = claimed.leases(&worker).iter().map(done).collect();
        bench.complete(6, &reports).await;
    }
    bench.relay_all(7).await;
    let counts = bench.now().counts(&bench.queue).await.unwrap();
    assert_eq!((counts.blocked, counts.ready), (0, 200));
}

async fn several_policies_and_prerequisites_meet_in_one_task(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let (first, other) = (bench.add(0, job()).await, bench.add(0, job()).await);
    let both = || [&first, &other].map(|id| Prerequisite::Task(id.clone()));
    let runs = bench.add_after(0, job(), or(Run, After::new(both()))).await;
    let stops = bench.add_after(0, job(), or(Cancel, After::new(both()))).await;
    assert_eq!(dead(&bench, &worker, 1).await, first);
    bench.relay_all(3).await;
    assert_eq!(bench.state(&runs).await, TaskState::Blocked, "it waits for the other");
    assert_eq!(bench.state(&stops).await, TaskState::Cancelled);
    assert_eq!(bench.field("ties", &other.stored()).await, Some(format!("{}1", runs.stored())));
    assert_eq!(bench.run_all(4, &worker, 2).await, [other]);
    assert_eq!(bench.run_all(5, &worker, 3).await, [runs]);
}

impl Bench {
    /// Runs the ready tasks, with the biz id `a` for the reports.
    async fn run_as(&self, at: u64, worker: &WorkerId, seq: u64) -> Vec<TaskId> {
        let claimed = self.claim(at, worker, seq, 128).await;
        let report = |lease| crate::acts::done_biz(lease, "a");
        let reports: Vec<_> = claimed.leases(worker).iter().map(report).collect();
        if !reports.is_empty() {
            self.complete(at, &reports).await;
        }
        claimed.ids()
    }

    /// Fails unless this many tasks ended while they waited, and no task waits.
    async fn assert_unmet_kept(&self, count: u64) {
        let kept: u64 = self.raw(redis::cmd("HLEN").arg(self.key("unmet_ended"))).await;
        let waits: u64 = self.raw(redis::cmd("HLEN").arg(self.key("unmet"))).await;
        let ties: u64 = self.raw(redis::cmd("HLEN").arg(self.key("ties"))).await;
        assert_eq!((kept, waits, ties), (count, 0, 0));
        assert_eq!(self.fsck_of_tasks().await, [""; 0]);
    }
}

on_both![
    a_dead_prerequisite_is_answered_by_policy,
    every_end_of_a_prerequisite_is_passed_on,
    the_removal_of_a_cancelled_task_is_not_an_end_of_the_next_one_with_its_biz_id,
    an_end_of_a_prerequisite_that_runs_again_is_not_passed_on,
    a_purged_prerequisite_does_not_come_back,
    tasks_that_wait_for_a_cancelled_one_learn_of_it_one_after_the_other,
    a_task_gives_up_after_its_time,
    a_thousand_tasks_that_wait_for_one_are_released_in_turns,
    many_who_wait_for_a_dead_task_learn_of_it_in_several_calls,
    several_policies_and_prerequisites_meet_in_one_task,
];
