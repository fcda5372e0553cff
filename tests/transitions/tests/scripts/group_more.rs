//! Groups that grow, break off, are cancelled or forgotten, or have members in other queues.

use optimus_core::{
    Member, MemberResult,
    PrerequisiteFailure::{Cancel, Run, Wait},
    TaskState,
    broker::{Completion, Enroll, Enrolled, FailureOutcome},
};

use crate::{
    acts::{Grants, failed, ms},
    bench::{Bench, START},
    group_acts::{DEAD_AGE_MS, KEEP_MS, counted, handle, new_group, value, worker},
};

async fn a_running_group_takes_more_members_until_it_ends(bench: Bench) {
    bench.worker(0, "w").await;
    let group = bench.grouped(1, Wait).await;
    let more = bench.enroll(1, &group, "by 0", 2).await;
    let added =
        |first, total, is_new| Enrolled::Added { first, total, is_new, posted: false, born: START };
    assert_eq!(more, added(1, 3, true));
    assert_eq!(bench.enroll(2, &group, "by 0", 2).await, added(1, 3, false), "the same again");
    bench.succeed(3, 1, &group, 0, 1).await;
    assert_eq!(bench.ended(&group).await, None);
    let tasks: Vec<_> = (1..3).map(|index| bench.member(&group, index, Wait)).collect();
    bench.submit(4, &tasks).await;
    bench.succeed(5, 2, &group, 1, 2).await;
    assert_eq!(bench.ended(&group).await, Some(TaskState::Success));
    assert_eq!(bench.enroll(6, &group, "late", 1).await, Enrolled::Ended(TaskState::Success));
    assert_eq!(bench.enroll(7, &group, "by 0", 2).await, added(1, 3, false));
}

async fn other_calls_under_the_name_of_an_addition_are_refused(bench: Bench) {
    let group = new_group(&bench);
    let queues = std::slice::from_ref(&bench.queue);
    let of = |digest, count| Enroll {
        operation: "0",
        count,
        queues,
        seal: true,
        keep: Some(ms(KEEP_MS)),
        on_failure: Run,
        digest,
        submit: "",
        is_later: false,
    };
    let added = |is_new| Enrolled::Added { first: 0, total: 2, is_new, posted: false, born: START };
    assert_eq!(bench.at(0).enroll(&group, of("2.a", 2)).await.unwrap(), added(true));
    assert_eq!(bench.at(1).enroll(&group, of("2.a", 2)).await.unwrap(), added(false));
    let before = bench.dump().await;
    assert_eq!(bench.at(2).enroll(&group, of("3.b", 3)).await.unwrap(), Enrolled::Other);
    bench.assert_unchanged(&before).await;
    assert_eq!(bench.now().group(&group).await.unwrap().unwrap().on_member_failure, Run);
}

async fn a_group_that_gets_more_members_is_kept_for_an_hour_after_an_addition(bench: Bench) {
    const HOUR_MS: u64 = 3_600_000;
    let group = new_group(&bench);
    let of = |operation, seal, is_later| Enroll {
        operation,
        count: 2,
        queues: std::slice::from_ref(&bench.queue),
        seal,
        keep: Some(ms(1)),
        on_failure: Wait,
        digest: "",
        submit: "",
        is_later,
    };
    let more = async |at: u64, operation, seal| {
        bench.at(at).enroll(&group, of(operation, seal, true)).await.unwrap()
    };
    let added =
        |first, total| Enrolled::Added { first, total, is_new: true, posted: false, born: START };
    assert_eq!(bench.at(0).enroll(&group, of("0", false, false)).await.unwrap(), added(0, 2));
    bench.purge_groups(HOUR_MS - 1, DEAD_AGE_MS).await;
    assert_eq!(more(HOUR_MS - 1, "1", false).await, added(2, 4));
    bench.purge_groups(2 * HOUR_MS - 1, DEAD_AGE_MS).await;
    // Without the group, the next members would have the positions of the first ones.
    let before = bench.dump().await;
    assert_eq!(more(2 * HOUR_MS, "2", true).await, Enrolled::Gone);
    bench.assert_unchanged(&before).await;
}

async fn a_submit_whose_answer_was_lost_knows_that_it_has_made_the_group(bench: Bench) {
    let group = new_group(&bench);
    let queues = std::slice::from_ref(&bench.queue);
    let (on_failure, keep) = (Wait, Some(ms(KEEP_MS)));
    let of = |submit| Enroll {
        operation: "0",
        count: 2,
        queues,
        seal: true,
        keep,
        on_failure,
        digest: "",
        submit,
        is_later: false,
    };
    let added = |is_new| Enrolled::Added { first: 0, total: 2, is_new, posted: false, born: START };
    assert_eq!(bench.at(0).enroll(&group, of("a")).await.unwrap(), added(true));
    let before = bench.dump().await;
    assert_eq!(bench.at(1).enroll(&group, of("a")).await.unwrap(), added(true));
    bench.assert_unchanged(&before).await;
    assert_eq!(bench.at(2).enroll(&group, of("b")).await.unwrap(), added(false));
}

async fn a_group_that_is_removed_is_forgotten_and_tasks_that_wait_for_it_are_cancelled(
    bench: Bench,
) {
    bench.worker(0, "w").await;
    let group = bench.grouped(2, Wait).await;
    let callback = bench.callback(&group, Wait).await;
    bench.succeed(1, 1, &group, 0, 1).await;
    assert!(bench.at(2).forget_group(&group).await.unwrap());
    bench.relay_all(3).await;
    assert_eq!(bench.state(&callback).await, TaskState::Cancelled);
    assert!(bench.now().group(&group).await.unwrap().is_none());
    assert_eq!(bench.results(&group, 1).await, [MemberResult::Pending]);
    assert!(!bench.at(4).forget_group(&group).await.unwrap());
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_group_that_is_not_sealed_waits_for_more(bench: Bench) {
    bench.worker(0, "w").await;
    let group = new_group(&bench);
    let callback = bench.callback(&group, Cancel).await;
    bench.enroll(0, &group, "1", 1).await;
    bench.submit(0, &[bench.member(&group, 0, Wait)]).await;
    bench.succeed(1, 1, &group, 0, 1).await;
    assert_eq!(bench.state(&callback).await, TaskState::Blocked);
    let sealed = bench.enroll_or_seal(2, &group, "seal", 0, true).await;
    assert_eq!(
        sealed,
        Enrolled::Added { first: 1, total: 1, is_new: true, posted: true, born: START }
    );
    bench.relay_all(3).await;
    assert_eq!(bench.state(&callback).await, TaskState::Ready);
}

/// The client dies after half of its members. Another client submits the same group again.
async fn an_interrupted_submit_continues_with_the_same_members(bench: Bench) {
    bench.worker(0, "w").await;
    let group = new_group(&bench);
    bench.enroll_or_seal(0, &group, "all", 4, true).await;
    let tasks: Vec<_> = (0..4).map(|index| bench.member(&group, index, Wait)).collect();
    bench.submit(0, &tasks[..2]).await;
    bench.succeed(1, 1, &group, 0, 1).await;
    let again = bench.enroll_or_seal(2, &group, "all", 4, true).await;
    assert_eq!(
        again,
        Enrolled::Added { first: 0, total: 4, is_new: false, posted: false, born: START }
    );
    let ended = bench.results(&group, 4).await;
    let left: Vec<_> = tasks
        .into_iter()
        .zip(ended)
        .filter(|(_, end)| *end == MemberResult::Pending)
        .map(|(task, _)| task)
        .collect();
    assert_eq!(left.len(), 3);
    bench.submit(3, &left[1..]).await;
    bench.succeed(4, 2, &group, 1, 3).await;
    assert_eq!(bench.ended(&group).await, Some(TaskState::Success));
}

async fn a_group_is_cancelled_as_a_unit(bench: Bench) {
    bench.worker(0, "w").await;
    let group = bench.grouped(3, Run).await;
    let callback = bench.callback(&group, Cancel).await;
    let lease = bench.take(1, &worker(), 1).await;
    let (found, posted) = bench.at(2).disband(&group).await.unwrap().expect("it is known");
    assert!(posted && found.ended == Some(TaskState::Cancelled));
    assert_eq!(found.queues, std::slice::from_ref(&bench.queue));
    let ids: Vec<_> = (0..3).map(|index| Member::id(&group, &bench.queue, index)).collect();
    bench.at(3).cancel_all(&bench.queue, &ids.iter().collect::<Vec<_>>()).await.unwrap();
    bench.relay_all(4).await;
    assert_eq!(bench.state(&callback).await, TaskState::Cancelled);
    // An addition at the same time comes too late.
    assert_eq!(bench.enroll(5, &group, "late", 1).await, Enrolled::Ended(TaskState::Cancelled));
    bench.complete(6, &[counted(&lease, &group, 0, "0")]).await;
    bench.relay_all(7).await;
    assert_eq!(bench.progress(&group).await, [3, 0, 0, 0, 0]);
    let (again, posted) = bench.at(8).disband(&group).await.unwrap().expect("it is known");
    assert!(!posted && again == bench.now().group(&group).await.unwrap().unwrap());
    bench.assert_nobody_waits().await;
}

async fn a_repeated_addition_gets_no_positions_once_its_group_is_cancelled(bench: Bench) {
    bench.worker(0, "w").await;
    let [disbanded, failed] = [bench.grouped(2, Cancel).await, bench.grouped(2, Cancel).await];
    bench.at(1).disband(&disbanded).await.unwrap();
    bench.at(1).cancel(&Member::id(&failed, &bench.queue, 1)).await.unwrap();
    bench.relay_all(2).await;
    let before = bench.dump().await;
    for group in [disbanded, failed] {
        let again = bench.enroll_or_seal(3, &group, "all", 2, true).await;
        assert_eq!(again, Enrolled::Ended(TaskState::Cancelled));
    }
    bench.assert_unchanged(&before).await;
}

async fn members_of_other_queues_are_counted_by_effects(bench: Bench) {
    let there = bench.sibling("there");
    there.worker(0, "w").await;
    bench.worker(0, "w").await;
    let group = new_group(&bench);
    bench.enroll_or_seal(0, &group, "all", 3, true).await;
    let callback = bench.callback(&group, Cancel).await;
    let tasks: Vec<_> = (0..3).map(|index| there.member(&group, index, Run)).collect();
    there.submit(0, &tasks).await;
    assert_eq!(there.field("meta", "needs").await.as_deref(), Some("5"));
    let leases = there.claim(1, &worker(), 1, 3).await.leases(&worker());
    let large = format!("\"{}\"", "x y".repeat(10_000));
    let large_one = Completion {
        result: Some((large.clone().into(), ms(KEEP_MS))),
        ..counted(&leases[1], &group, 1, "")
    };
    there.complete(2, &[counted(&leases[0], &group, 0, "\"a b\""), large_one]).await;
    there.fail(2, &[failed(&leases[2], FailureOutcome::Dead)]).await;
    let effects = there.now().outgoing(&there.queue).await.unwrap().remove(0);
    assert!(effects.effects.iter().all(|effect| effect.len() < 1_000), "{effects:?}");
    let whole = there.now().with_results(&effects).await.unwrap();
    bench.at(3).apply(&whole).await.unwrap();
    let before = bench.dump().await;
    // Another relay does the same.
    bench.at(4).apply(&whole).await.unwrap();
    bench.assert_unchanged(&before).await;
    there.relay_all(5).await;
    bench.relay_all(5).await;
    assert_eq!(bench.progress(&group).await, [3, 3, 1, 0, 0]);
    assert_eq!(bench.state(&callback).await, TaskState::Ready);
    let ends = [value("\"a b\""), value(&large), MemberResult::Failed(TaskState::Dead)];
    assert_eq!(bench.results(&group, 3).await, ends);
    there.assert_nobody_waits().await;
}

async fn a_callback_of_another_queue_gets_the_results(bench: Bench) {
    let there = bench.sibling("there");
    there.worker(0, "w").await;
    bench.worker(0, "w").await;
    let group = bench.grouped(2, Wait).await;
    there.callback(&group, Cancel).await;
    there.relay_all(1).await;
    bench.succeed(2, 1, &group, 0, 2).await;
    bench.relay_all(3).await;
    assert_eq!(there.arguments(4, 1).await, handle(&group, 2, 0, 0));
    there.assert_nobody_waits().await;
}

async fn a_thousand_members_are_counted_a_call_at_a_time(bench: Bench) {
    bench.worker(0, "w").await;
    let group = bench.grouped(1_000, Wait).await;
    let callback = bench.callback(&group, Cancel).await;
    for (seq, first) in (0..1_000).step_by(100).enumerate() {
        bench.succeed(1, seq as u64 + 1, &group, first, 100).await;
    }
    assert_eq!(bench.state(&callback).await, TaskState::Ready);
    let expected: Vec<_> = (0..1_000).map(|index| value(&index.to_string())).collect();
    assert_eq!(bench.results(&group, 1_000).await, expected);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn an_old_group_is_removed_and_tasks_that_wait_learn_of_it(bench: Bench) {
    bench.worker(0, "w").await;
    let group = new_group(&bench);
    let callback = bench.callback(&group, Cancel).await;
    bench.enroll(0, &group, "broken off", 2).await;
    bench.purge_groups(KEEP_MS - 1, DEAD_AGE_MS).await;
    assert!(bench.now().group(&group).await.unwrap().is_some());
    bench.purge_groups(KEEP_MS, DEAD_AGE_MS).await;
    bench.relay_all(KEEP_MS).await;
    assert_eq!(bench.now().group(&group).await.unwrap(), None);
    assert_eq!(bench.state(&callback).await, TaskState::Cancelled);
    let names = bench.names().await;
    assert!(!names.iter().any(|name| name.starts_with("group") || name.starts_with("results")));
}

async fn a_group_is_kept_until_its_members_have_ended(bench: Bench) {
    bench.worker(0, "w").await;
    let group = bench.grouped(40, Wait).await;
    let callback = bench.callback(&group, Cancel).await;
    bench.succeed(1, 1, &group, 0, 38).await;
    let (every, mut at) = (DEAD_AGE_MS, KEEP_MS);
    for _ in 0..9 {
        bench.purge_groups(at, DEAD_AGE_MS).await;
        bench.purge_groups(at + every - 1, DEAD_AGE_MS).await;
        at += every;
    }
    assert_eq!(bench.progress(&group).await, [40, 38, 0, 0, 0]);
    bench.worker(at, "w").await;
    bench.succeed(at, 2, &group, 38, 2).await;
    assert_eq!(bench.state(&callback).await, TaskState::Ready);
}

async fn a_group_that_lacks_a_member_is_kept_as_long_as_a_dead_task(bench: Bench) {
    bench.worker(0, "w").await;
    let group = new_group(&bench);
    bench.enroll_or_seal(0, &group, "all", 40, true).await;
    let callback = bench.callback(&group, Cancel).await;
    let stored: Vec<_> = (0..39).map(|index| bench.member(&group, index, Wait)).collect();
    bench.submit(0, &stored).await;
    bench.purge_groups(KEEP_MS, DEAD_AGE_MS).await;
    bench.purge_groups(KEEP_MS + DEAD_AGE_MS - 1, DEAD_AGE_MS).await;
    assert_eq!(bench.progress(&group).await, [40, 0, 0, 0, 0]);
    bench.purge_groups(KEEP_MS + DEAD_AGE_MS, DEAD_AGE_MS).await;
    bench.relay_all(KEEP_MS + DEAD_AGE_MS).await;
    assert_eq!(bench.now().group(&group).await.unwrap(), None);
    assert_eq!(bench.state(&callback).await, TaskState::Cancelled);
}

async fn a_member_that_was_deleted_counts_as_cancelled_under_run(bench: Bench) {
    bench.worker(0, "w").await;
    let group = bench.grouped(1, Run).await;
    let id = Member::id(&group, &bench.queue, 0);
    bench.at(1).delete_all(&bench.queue, &[&id]).await.unwrap();
    bench.relay_all(2).await;
    assert_eq!(bench.progress(&group).await, [1, 1, 0, 1, 0]);
    assert_eq!(bench.ended(&group).await, Some(TaskState::Success));
}

async fn a_group_that_waits_for_a_deleted_member_is_cancelled(bench: Bench) {
    bench.worker(0, "w").await;
    let group = bench.grouped(2, Wait).await;
    let callback = bench.callback(&group, Cancel).await;
    let lease = bench.take(1, &worker(), 1).await;
    bench.fail(1, &[failed(&lease, FailureOutcome::Dead)]).await;
    bench.relay_all(2).await;
    assert_eq!(bench.ended(&group).await, None, "it can be requeued");
    bench.at(3).delete_all(&bench.queue, &[&lease.id]).await.unwrap();
    bench.relay_all(4).await;
    assert_eq!(bench.ended(&group).await, Some(TaskState::Cancelled));
    assert_eq!(bench.state(&callback).await, TaskState::Cancelled);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn a_position_that_a_group_does_not_have_never_counts(bench: Bench) {
    bench.worker(0, "w").await;
    let group = bench.grouped(3, Wait).await;
    let others: Vec<_> = [3, 4].map(|index| bench.member(&group, index, Wait)).into();
    bench.submit(0, &others).await;
    let leases = bench.claim(1, &worker(), 1, 5).await.leases(&worker());
    let report = |i: u32| {
        let id = optimus_core::Member::id(&group, &bench.queue, i);
        let lease = leases.iter().find(|lease| lease.id == id).expect("it is claimed");
        counted(lease, &group, i, "1")
    };
    assert!(bench.complete(2, &[report(3)]).await.is_empty());
    assert_eq!(bench.progress(&group).await, [3, 0, 0, 0, 0]);
    assert!(bench.complete(3, &[report(0), report(1), report(4)]).await.is_empty());
    assert_eq!(bench.progress(&group).await, [3, 2, 0, 0, 0]);
    assert!(bench.complete(4, &[report(2)]).await.is_empty());
    assert_eq!(bench.ended(&group).await, Some(TaskState::Success));
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

/// One relay carries both effects in one call.
async fn a_question_after_the_last_member_is_answered(bench: Bench) {
    let there = bench.sibling("there");
    there.worker(0, "w").await;
    let group = new_group(&bench);
    bench.enroll_or_seal(0, &group, "all", 1, true).await;
    there.submit(0, &[there.member(&group, 0, Wait)]).await;
    let lease = there.take(1, &worker(), 1).await;
    there.complete(1, &[counted(&lease, &group, 0, "1")]).await;
    let callback = there.callback(&group, Cancel).await;
    let effects = there.now().outgoing(&there.queue).await.unwrap();
    assert_eq!(effects.iter().map(|one| one.effects.len()).sum::<usize>(), 2);
    there.relay_all(2).await;
    bench.relay_all(3).await;
    assert_eq!(there.state(&callback).await, TaskState::Ready);
}

on_both![
    a_running_group_takes_more_members_until_it_ends,
    other_calls_under_the_name_of_an_addition_are_refused,
    a_group_that_gets_more_members_is_kept_for_an_hour_after_an_addition,
    a_submit_whose_answer_was_lost_knows_that_it_has_made_the_group,
    a_group_that_is_removed_is_forgotten_and_tasks_that_wait_for_it_are_cancelled,
    a_group_that_is_not_sealed_waits_for_more,
    an_interrupted_submit_continues_with_the_same_members,
    a_group_is_cancelled_as_a_unit,
    a_repeated_addition_gets_no_positions_once_its_group_is_cancelled,
    members_of_other_queues_are_counted_by_effects,
    a_callback_of_another_queue_gets_the_results,
    a_thousand_members_are_counted_a_call_at_a_time,
    an_old_group_is_removed_and_tasks_that_wait_learn_of_it,
    a_group_is_kept_until_its_members_have_ended,
    a_group_that_lacks_a_member_is_kept_as_long_as_a_dead_task,
    a_member_that_was_deleted_counts_as_cancelled_under_run,
    a_group_that_waits_for_a_deleted_member_is_cancelled,
    a_position_that_a_group_does_not_have_never_counts,
    a_question_after_the_last_member_is_answered,
];
