//! Groups: how members are counted, once each, and when the tasks that wait for a group continue.

use optimus_core::{
    Member, MemberResult,
    PrerequisiteFailure::{Cancel, Run, Wait},
    TaskState,
    broker::{Enrolled, FailureOutcome},
};

use crate::{
    acts::{Grants, failed, ms},
    after::after,
    bench::{Bench, START},
    group_acts::{counted, handle, new_group, value, worker},
    jobs::job,
};

async fn a_task_continues_once_all_members_have_succeeded(bench: Bench) {
    bench.worker(0, "w").await;
    let group = bench.grouped(3, Wait).await;
    let callback = bench.callback(&group, Cancel).await;
    assert_eq!(bench.field("meta", "needs").await.as_deref(), Some("5"));
    bench.succeed(1, 1, &group, 0, 2).await;
    assert_eq!(bench.state(&callback).await, TaskState::Blocked);
    assert_eq!(bench.progress(&group).await, [3, 2, 0, 0, 0]);
    bench.succeed(2, 2, &group, 2, 1).await;
    assert_eq!(bench.ended(&group).await, Some(TaskState::Success));
    assert_eq!(bench.arguments(3, 3).await, handle(&group, 3, 0, 0));
    assert_eq!(
        bench.results(&group, 4).await,
        [value("0"), value("1"), value("2"), MemberResult::Pending]
    );
    bench.assert_nobody_waits().await;
}

async fn a_callback_that_comes_last_continues_too(bench: Bench) {
    bench.worker(0, "w").await;
    let group = bench.grouped(2, Wait).await;
    bench.succeed(1, 1, &group, 0, 2).await;
    bench.callback(&group, Cancel).await;
    bench.relay_all(2).await;
    assert_eq!(bench.arguments(3, 2).await, handle(&group, 2, 0, 0));
    let plain = bench.add_after(4, job(), after(&group)).await;
    assert_eq!(bench.state(&plain).await, TaskState::Ready);
}

async fn an_empty_group_ends_at_once(bench: Bench) {
    bench.worker(0, "w").await;
    let group = new_group(&bench);
    let callback = bench.callback(&group, Cancel).await;
    let answer = bench.enroll_or_seal(1, &group, "all", 0, true).await;
    assert_eq!(
        answer,
        Enrolled::Added { first: 0, total: 0, is_new: true, posted: true, born: START + 1 }
    );
    bench.relay_all(2).await;
    assert_eq!(bench.state(&callback).await, TaskState::Ready);
    assert_eq!(bench.arguments(3, 1).await, handle(&group, 0, 0, 0));
}

async fn a_member_that_is_reported_twice_counts_once(bench: Bench) {
    bench.worker(0, "w").await;
    let group = bench.grouped(4, Wait).await;
    let callback = bench.callback(&group, Cancel).await;
    let lease = bench.take(1, &worker(), 1).await;
    let report = counted(&lease, &group, 0, "0");
    assert!(bench.complete(2, std::slice::from_ref(&report)).await.is_empty());
    assert_eq!(bench.complete(3, std::slice::from_ref(&report)).await, [0]);
    // Its client died, and submits it again. It runs again, and counts once.
    bench.submit(4, &[bench.member(&group, 0, Wait)]).await;
    let leases = bench.claim(5, &worker(), 2, 4).await.leases(&worker());
    let again = leases.iter().find(|one| one.id == lease.id).expect("it is stored again");
    let others: Vec<_> = leases.iter().filter(|one| one.id != lease.id).collect();
    let another = counted(others[0], &group, 1, "1");
    let reports = [counted(again, &group, 0, "7"), another.clone(), another];
    assert_eq!(bench.complete(6, &reports).await, [2]);
    assert_eq!(bench.progress(&group).await, [4, 2, 0, 0, 0]);
    assert_eq!(bench.state(&callback).await, TaskState::Blocked);
    let rest = [counted(others[1], &group, 2, "2"), counted(others[2], &group, 3, "3")];
    assert!(bench.complete(8, &rest).await.is_empty());
    assert_eq!(bench.progress(&group).await, [4, 4, 0, 0, 0]);
    assert_eq!(bench.state(&callback).await, TaskState::Ready);
}

async fn the_report_of_a_fenced_zombie_does_not_count(bench: Bench) {
    bench.worker(0, "w").await;
    let other = bench.worker_for(0, "v", ms(600_000)).await;
    let group = bench.grouped(1, Wait).await;
    let zombie = bench.take(1, &worker(), 1).await;
    for at in [7_000, 14_000, 20_000] {
        bench.at(at).renew(&bench.queue, &other, ms(600_000)).await.unwrap();
    }
    bench.at(20_001).reap(&bench.queue, &other, ms(15_000), 9).await.unwrap();
    let lease = bench.take(20_002, &other, 1).await;
    assert_eq!(bench.complete(20_003, &[counted(&zombie, &group, 0, "1")]).await, [0]);
    assert_eq!(bench.progress(&group).await, [1, 0, 0, 0, 0]);
    assert!(bench.complete(20_004, &[counted(&lease, &group, 0, "2")]).await.is_empty());
    assert_eq!(bench.results(&group, 1).await, [value("2")]);
}

async fn members_of_a_call_with_stale_reports_count_alone(bench: Bench) {
    bench.worker(0, "w").await;
    let group = bench.grouped(3, Wait).await;
    let leases = bench.claim(1, &worker(), 1, 3).await.leases(&worker());
    let report = |i: usize| counted(&leases[i], &group, u32::try_from(i).unwrap(), "1");
    assert!(bench.complete(2, &[report(1)]).await.is_empty());
    assert_eq!(bench.complete(3, &[report(0), report(1), report(2)]).await, [1]);
    assert_eq!(bench.progress(&group).await, [3, 3, 0, 0, 0]);
    assert_eq!(bench.ended(&group).await, Some(TaskState::Success));
}

async fn a_group_waits_for_the_requeue_of_a_dead_member(bench: Bench) {
    bench.worker(0, "w").await;
    let group = bench.grouped(2, Wait).await;
    let callback = bench.callback(&group, Cancel).await;
    for seq in [1, 2] {
        let lease = bench.take(seq, &worker(), seq).await;
        bench.fail(seq, &[failed(&lease, FailureOutcome::Dead)]).await;
        bench.relay_all(seq).await;
        assert_eq!(bench.progress(&group).await, [2, 0, 0, 0, 1]);
        if seq == 1 {
            bench.at(2).requeue(&lease.id).await.unwrap();
            // The other member is first in the list.
            bench.at(2).cancel(&Member::id(&group, &bench.queue, 1)).await.unwrap();
            bench.at(2).requeue(&Member::id(&group, &bench.queue, 1)).await.unwrap();
            bench.relay_all(2).await;
            assert_eq!(bench.progress(&group).await, [2, 0, 0, 0, 2]);
            let one = Member::id(&group, &bench.queue, 1);
            let claimed = bench.claim(2, &worker(), 9, 2).await;
            let leases = claimed.leases(&worker());
            let other = leases.iter().find(|lease| lease.id == one).expect("it is ready");
            bench.complete(2, &[counted(other, &group, 1, "1")]).await;
            let first = leases.iter().find(|lease| lease.id != one).expect("it is ready");
            bench.complete(2, &[counted(first, &group, 0, "0")]).await;
            break;
        }
    }
    assert_eq!(bench.progress(&group).await, [2, 2, 0, 0, 0]);
    assert_eq!(bench.state(&callback).await, TaskState::Ready);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_failed_member_counts_under_run(bench: Bench) {
    bench.worker(0, "w").await;
    let group = bench.grouped(3, Run).await;
    bench.callback(&group, Cancel).await;
    let lease = bench.take(1, &worker(), 1).await;
    bench.fail(1, &[failed(&lease, FailureOutcome::Dead)]).await;
    bench.at(1).cancel(&Member::id(&group, &bench.queue, 2)).await.unwrap();
    bench.relay_all(2).await;
    assert_eq!(bench.progress(&group).await, [3, 2, 1, 1, 0]);
    bench.succeed(3, 2, &group, 1, 1).await;
    assert_eq!(bench.arguments(4, 3).await, handle(&group, 3, 1, 1));
    let ends = [
        MemberResult::Failed(TaskState::Dead),
        value("1"),
        MemberResult::Failed(TaskState::Cancelled),
    ];
    assert_eq!(bench.results(&group, 3).await, ends);
    // An operator requeues it after the callback has the results.
    bench.at(5).requeue(&lease.id).await.unwrap();
    bench.succeed(6, 4, &group, 0, 1).await;
    assert_eq!(bench.results(&group, 3).await, ends);
    assert_eq!(bench.progress(&group).await, [3, 3, 1, 1, 0]);
    bench.assert_nobody_waits().await;
}

async fn a_failed_member_cancels_the_group_under_cancel(bench: Bench) {
    bench.worker(0, "w").await;
    let group = bench.grouped(2, Cancel).await;
    let callback = bench.callback(&group, Cancel).await;
    let lease = bench.take(1, &worker(), 1).await;
    bench.fail(1, &[failed(&lease, FailureOutcome::Dead)]).await;
    bench.relay_all(2).await;
    assert_eq!(bench.ended(&group).await, Some(TaskState::Cancelled));
    assert_eq!(bench.state(&callback).await, TaskState::Cancelled);
    // What ends later changes nothing.
    bench.at(3).requeue(&lease.id).await.unwrap();
    let claimed = bench.claim(4, &worker(), 2, 2).await.leases(&worker());
    let reports: Vec<_> = claimed.iter().map(|lease| counted(lease, &group, 0, "0")).collect();
    bench.complete(5, &reports).await;
    bench.relay_all(6).await;
    assert_eq!(bench.state(&callback).await, TaskState::Cancelled);
    assert_eq!(bench.enroll(7, &group, "late", 1).await, Enrolled::Ended(TaskState::Cancelled));
    bench.assert_nobody_waits().await;
}

on_both![
    a_task_continues_once_all_members_have_succeeded,
    a_callback_that_comes_last_continues_too,
    an_empty_group_ends_at_once,
    a_member_that_is_reported_twice_counts_once,
    the_report_of_a_fenced_zombie_does_not_count,
    members_of_a_call_with_stale_reports_count_alone,
    a_group_waits_for_the_requeue_of_a_dead_member,
    a_failed_member_counts_under_run,
    a_failed_member_cancels_the_group_under_cancel,
];
