//! Ends that no requeue can change, such as that of a cancelled group. The tasks that wait are
//! cancelled in turn, also if their policy is to wait.

use optimus_core::{
    After, Prerequisite,
    PrerequisiteFailure::{Run, Wait},
    TaskId, TaskState,
};

use crate::{
    after::{after, keyed},
    bench::Bench,
    group_acts::{DEAD_AGE_MS, KEEP_MS, new_group},
    jobs::{job, job_of, ready_at},
};

impl Bench {
    /// Creates a group of one task that waits for another group.
    async fn group_after(
        &self,
        former: &TaskId,
        policy: optimus_core::PrerequisiteFailure,
    ) -> TaskId {
        let group = new_group(self);
        self.enroll_or_seal(0, &group, "all", 1, true).await;
        let member = self.member(&group, 0, policy).waiting_for(after(former));
        self.submit(0, &[member]).await;
        group
    }
}

async fn tasks_that_wait_for_a_cancelled_group_are_cancelled_in_turn(bench: Bench) {
    bench.worker(0, "w").await;
    let there = bench.sibling("there");
    there.worker(0, "w").await;
    let group = bench.grouped(1, Wait).await;
    let callback = bench.callback(&group, Wait).await;
    let next = bench.add_after(0, job(), after(&callback)).await;
    let far = there.add_after(0, job().queue(&there.queue), after(&callback)).await;
    bench.at(1).disband(&group).await.unwrap();
    let relay = async |at: u64| {
        for _ in 0..2 {
            there.relay_all(at).await;
            bench.relay_all(at).await;
        }
    };
    relay(2).await;
    let later = bench.add_after(3, job(), after(&callback)).await;
    let far_later = there.add_after(3, job().queue(&there.queue), after(&callback)).await;
    relay(4).await;
    for id in [&callback, &next, &later] {
        assert_eq!(bench.state(id).await, TaskState::Cancelled);
    }
    for id in [&far, &far_later] {
        assert_eq!(there.state(id).await, TaskState::Cancelled);
    }
    let found = bench.now().inspect(&callback).await.unwrap();
    assert!(found.errors.contains("\"state\":\"cancelled\""), "{}", found.errors);
    bench.at(5).requeue(&callback).await.unwrap();
    relay(6).await;
    assert_eq!(bench.state(&callback).await, TaskState::Cancelled);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_group_after_a_cancelled_group_is_cancelled_or_ends_without_its_members(bench: Bench) {
    bench.worker(0, "w").await;
    let group = bench.grouped(1, Wait).await;
    let (waits, runs) =
        (bench.group_after(&group, Wait).await, bench.group_after(&group, Run).await);
    bench.at(1).disband(&group).await.unwrap();
    bench.relay_all(2).await;
    assert_eq!(bench.ended(&waits).await, Some(TaskState::Cancelled));
    assert_eq!(bench.ended(&runs).await, Some(TaskState::Success));
    assert_eq!(bench.progress(&runs).await, [1, 1, 0, 1, 0]);
    assert_eq!(
        bench.results(&runs, 1).await,
        [optimus_core::MemberResult::Failed(TaskState::Cancelled)]
    );
}

/// Another task may have the key later.
async fn a_task_that_waits_by_key_for_a_task_that_was_cancelled_so_still_waits(bench: Bench) {
    bench.worker(0, "w").await;
    let group = bench.grouped(1, Wait).await;
    let first = bench.add_after(0, job().biz_id("a"), after(&group)).await;
    let by_key = bench.add_after(0, job(), After::new([keyed(&bench, "a")])).await;
    bench.at(1).disband(&group).await.unwrap();
    bench.relay_all(2).await;
    assert_eq!(bench.state(&first).await, TaskState::Cancelled);
    assert_eq!(bench.state(&by_key).await, TaskState::Blocked);
}

async fn a_task_whose_result_is_gone_is_cancelled(bench: Bench) {
    bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    let take = |of: &TaskId| After::new([Prerequisite::Task(of.clone())]).taking("]");
    let task = ready_at(0, job_of("[]").queue(&bench.queue)).waiting_for(take(&first));
    bench.submit(0, std::slice::from_ref(&task)).await;
    bench.at(1).delete_all(&bench.queue, &[&first]).await.unwrap();
    bench.relay_all(2).await;
    assert_eq!(bench.state(task.id()).await, TaskState::Cancelled);
}

async fn a_task_that_waits_for_a_group_that_is_no_longer_kept_is_cancelled(bench: Bench) {
    bench.worker(0, "w").await;
    let group = new_group(&bench);
    bench.enroll(0, &group, "never sealed", 1).await;
    let callback = bench.callback(&group, Wait).await;
    bench.purge_groups(KEEP_MS + 1, DEAD_AGE_MS).await;
    bench.relay_all(KEEP_MS + 2).await;
    assert_eq!(bench.state(&callback).await, TaskState::Cancelled);
}

on_both![
    tasks_that_wait_for_a_cancelled_group_are_cancelled_in_turn,
    a_group_after_a_cancelled_group_is_cancelled_or_ends_without_its_members,
    a_task_that_waits_by_key_for_a_task_that_was_cancelled_so_still_waits,
    a_task_whose_result_is_gone_is_cancelled,
    a_task_that_waits_for_a_group_that_is_no_longer_kept_is_cancelled,
];
