//! Groups whose members are submitted again, by other clients or later: each member runs once.

use optimus_core::{
    Member,
    PrerequisiteFailure::{Run, Wait},
    Submission, TaskId, TaskState,
    broker::{Enrolled, Receipt, Trace},
};
use redis::cmd;

use crate::{
    acts::{Grants, done, ids_of},
    after::remembered,
    bench::{Bench, START},
    group_acts::{counted, new_group, worker},
    jobs::{job, ready_at},
};

/// Enrols members as a client does that submits them now; returns when the group was made.
async fn enrolled(bench: &Bench, at: u64, group: &TaskId, count: u32) -> u64 {
    match bench.enroll_or_seal(at, group, "all", count, true).await {
        Enrolled::Added { born, .. } => born,
        other => panic!("{other:?}"),
    }
}

/// The members as a client submits them.
fn members(queue: &Bench, group: &TaskId, count: u32, born: u64) -> Vec<Submission> {
    let member = |index| queue.member(group, index, Wait).again(Trace::Member { born });
    (0..count).map(member).collect()
}

/// Submits tasks, and returns how many of them are stored. The others are not.
async fn submit(bench: &Bench, at: u64, tasks: &[Submission]) -> usize {
    let receipts = bench.submit(at, tasks).await;
    for (task, receipt) in tasks.iter().zip(&receipts) {
        let own = Receipt::Duplicate(task.id().clone());
        assert!(*receipt == Receipt::Created || *receipt == own, "{receipt:?}");
    }
    receipts.iter().filter(|receipt| **receipt == Receipt::Created).count()
}

/// Ends the members with these positions.
async fn end(bench: &Bench, at: u64, seq: u64, group: &TaskId, indexes: &[u32]) {
    let mut leases = Vec::new();
    for seq in 100 * seq.. {
        match bench.claim(at, &worker(), seq, 128).await.leases(&worker()) {
            none if none.is_empty() => break,
            some => leases.extend(some),
        }
    }
    let mut reports = Vec::new();
    for index in indexes {
        let id = Member::id(group, &bench.queue, *index);
        let lease = leases.iter().find(|lease| lease.id == id).expect("it is claimed");
        reports.push(counted(lease, group, *index, "1"));
    }
    for reports in reports.chunks(128) {
        assert!(bench.complete(at, reports).await.is_empty());
    }
}

async fn a_member_that_ends_before_it_is_submitted_again_is_not_stored(bench: Bench) {
    bench.worker(0, "w").await;
    let group = new_group(&bench);
    let born = enrolled(&bench, 0, &group, 3).await;
    assert_eq!(submit(&bench, 0, &members(&bench, &group, 3, born)).await, 3);
    // Another client looks, and then a member ends.
    let again = enrolled(&bench, 1, &group, 3).await;
    assert_eq!((born, again), (START, START));
    end(&bench, 2, 1, &group, &[1]).await;
    assert_eq!(submit(&bench, 3, &members(&bench, &group, 3, again)).await, 0);
    assert_eq!(bench.progress(&group).await, [3, 1, 0, 0, 0]);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn the_first_of_two_clients_may_come_last(bench: Bench) {
    let there = bench.sibling("there");
    for queue in [&bench, &there] {
        queue.worker(0, "w").await;
        let group = new_group(&bench);
        let first = enrolled(&bench, 0, &group, 3).await;
        let second = enrolled(&bench, 1, &group, 3).await;
        assert_eq!(submit(queue, 2, &members(queue, &group, 2, second)).await, 2);
        end(queue, 3, 1, &group, &[0, 1]).await;
        assert_eq!(submit(queue, 4, &members(queue, &group, 3, first)).await, 1);
        let last = Member::id(&group, &queue.queue, 2);
        assert_eq!(queue.state(&last).await, TaskState::Ready);
        assert_eq!(queue.now().counts(&queue.queue).await.unwrap().ready, 1);
        assert_eq!(queue.fsck_of_tasks().await, [""; 0]);
    }
}

async fn a_member_of_another_queue_is_not_stored_again_wherever_its_end_is(bench: Bench) {
    let there = bench.sibling("there");
    there.worker(0, "w").await;
    let group = new_group(&bench);
    let born = enrolled(&bench, 0, &group, 100).await;
    let tasks = members(&there, &group, 100, born);
    assert_eq!(submit(&there, 0, &tasks).await, 100);
    let ended: Vec<u32> = (0..100).filter(|index| index % 3 > 0).collect();
    end(&there, 1, 1, &group, &ended).await;
    // Its group has not learned of it.
    assert_eq!(submit(&there, 2, &tasks).await, 0);
    there.relay_all(3).await;
    assert_eq!(bench.progress(&group).await, [100, 66, 0, 0, 0]);
    assert_eq!(submit(&there, 4, &tasks).await, 0);
    assert_eq!(there.fsck_of_tasks().await, [""; 0]);
}

async fn what_a_queue_knows_of_members_elsewhere_is_small_and_passes(bench: Bench) {
    let there = bench.sibling("there");
    there.worker(0, "w").await;
    let group = new_group(&bench);
    let born = enrolled(&bench, 0, &group, 1_000).await;
    submit(&there, 0, &members(&there, &group, 1_000, born)).await;
    end(&there, 1, 1, &group, &(0..1_000).collect::<Vec<_>>()).await;
    let key = there.key(&format!("ran:{}", group.stored()));
    let fields: u64 = there.raw(cmd("HLEN").arg(&key)).await;
    assert_eq!(fields, 1_000_u64.div_ceil(32) + 1);
    let left: i64 = there.raw(cmd("PTTL").arg(&key)).await;
    assert!((1..=86_400_000).contains(&left), "{left}");
    assert_eq!(there.fsck_of_tasks().await, [""; 0]);
}

async fn a_group_under_the_id_of_a_removed_one_has_new_members(bench: Bench) {
    let there = bench.sibling("there");
    for queue in [&bench, &there] {
        queue.worker(0, "w").await;
        let group = new_group(&bench);
        let born = enrolled(&bench, 0, &group, 40).await;
        submit(queue, 0, &members(queue, &group, 40, born)).await;
        end(queue, 1, 1, &group, &(0..40).collect::<Vec<_>>()).await;
        queue.relay_all(2).await;
        bench.at(3).forget_group(&group).await.unwrap();
        let born = enrolled(&bench, 4, &group, 40).await;
        let tasks = members(queue, &group, 40, born);
        assert_eq!(submit(queue, 5, &tasks).await, 40);
        end(queue, 6, 2, &group, &[39]).await;
        enrolled(&bench, 7, &group, 40).await;
        assert_eq!(submit(queue, 7, &tasks).await, 0);
        queue.relay_all(8).await;
        assert_eq!(bench.progress(&group).await, [40, 1, 0, 0, 0]);
    }
}

async fn members_of_a_group_that_has_ended_are_not_stored(bench: Bench) {
    bench.worker(0, "w").await;
    let group = new_group(&bench);
    let born = enrolled(&bench, 0, &group, 2).await;
    bench.at(1).disband(&group).await.unwrap();
    assert_eq!(submit(&bench, 2, &members(&bench, &group, 2, born)).await, 0);
}

async fn a_member_without_success_is_stored_once(bench: Bench) {
    bench.worker(0, "w").await;
    let group = new_group(&bench);
    let born = enrolled(&bench, 0, &group, 2).await;
    let of = |index| bench.member(&group, index, Run).again(Trace::Member { born });
    submit(&bench, 0, &[of(0), of(1)]).await;
    bench.at(1).cancel(&Member::id(&group, &bench.queue, 1)).await.unwrap();
    bench.relay_all(2).await;
    enrolled(&bench, 3, &group, 2).await;
    assert_eq!(submit(&bench, 4, &[of(0), of(1)]).await, 0);
    assert_eq!(bench.progress(&group).await, [2, 1, 0, 1, 0]);
}

async fn a_step_whose_success_is_remembered_is_not_stored_again(bench: Bench) {
    bench.worker(0, "w").await;
    let tasks = [0, 0].map(|at| ready_at(at, job()).again(Trace::Outcome));
    assert_eq!(submit(&bench, 0, &tasks).await, 2);
    let lease = bench.take(1, &worker(), 1).await;
    assert_eq!(vec![lease.id.clone()], ids_of(&tasks[..1]));
    bench.complete(1, &[remembered(done(&lease))]).await;
    let plain = ready_at(2, job());
    let all = [tasks[0].clone(), plain, tasks[1].clone()];
    assert_eq!(submit(&bench, 2, &all).await, 1);
    let lease = bench.take(3, &worker(), 2).await;
    assert_eq!(lease.id, *tasks[1].id());
    bench.complete(3, &[done(&lease)]).await;
}

on_both![
    a_member_that_ends_before_it_is_submitted_again_is_not_stored,
    the_first_of_two_clients_may_come_last,
    a_member_of_another_queue_is_not_stored_again_wherever_its_end_is,
    what_a_queue_knows_of_members_elsewhere_is_small_and_passes,
    a_group_under_the_id_of_a_removed_one_has_new_members,
    members_of_a_group_that_has_ended_are_not_stored,
    a_member_without_success_is_stored_once,
    a_step_whose_success_is_remembered_is_not_stored_again,
];
