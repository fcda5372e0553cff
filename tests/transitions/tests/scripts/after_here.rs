//! Tasks that wait for other tasks of their queue.

use optimus_core::{
    After, Due, Lane, Prerequisite, Submit as _, TaskId, TaskState,
    broker::{Cancelled, FailureOutcome, Receipt},
};

use crate::{
    acts::{Grants, done, failed, ids_of, ms},
    after::{REMEMBERED_MS, after, done_as, keyed, remembered, waiting},
    bench::Bench,
    jobs::{job, ready, ready_at},
    lanes::done_in,
};

async fn a_task_waits_until_its_prerequisite_has_succeeded(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    let second = bench.add_after(1, job(), after(&first)).await;
    assert_eq!(bench.state(&second).await, TaskState::Blocked);
    assert_eq!(bench.now().counts(&bench.queue).await.unwrap().blocked, 1);
    assert_eq!(bench.field("meta", "needs").await.as_deref(), Some("4"));
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    let claimed = bench.claim(2, &worker, 1, 9).await;
    assert_eq!(claimed.ids(), [first]);
    let report = done(&claimed.leases(&worker)[0]);
    assert!(bench.complete(3, std::slice::from_ref(&report)).await.is_empty());
    assert_eq!(bench.state(&second).await, TaskState::Ready);
    bench.assert_nobody_waits().await;
    let before = bench.dump().await;
    assert_eq!(bench.complete(4, &[report]).await, [0], "a repeat is stale");
    bench.assert_unchanged(&before).await;
    assert_eq!(bench.claim(5, &worker, 2, 9).await.ids(), [second]);
}

/// If tasks wait for few, a call looks for these among its successes. Otherwise it looks up each
/// success.
async fn of_many_successes_those_that_are_awaited_free_their_tasks(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    for (seq, awaited) in (1..).zip([1, 3, 6]) {
        let tasks: Vec<_> = (0..6).map(|_| ready(job())).collect();
        let ids = ids_of(&tasks);
        bench.submit(0, &tasks).await;
        let mut waits = Vec::new();
        for id in &ids[6 - awaited..] {
            waits.push(bench.add_after(0, job(), after(id)).await);
        }
        let elsewhere = bench.add_after(0, job(), After::new([keyed(&bench, "never")])).await;
        let done: Vec<_> =
            bench.claim(1, &worker, 2 * seq, 6).await.leases(&worker).iter().map(done).collect();
        assert!(bench.complete(2, &done).await.is_empty());
        for id in &waits {
            assert_eq!(bench.state(id).await, TaskState::Ready, "{awaited} of six are awaited");
        }
        assert_eq!(bench.state(&elsewhere).await, TaskState::Blocked);
        assert_eq!(bench.run_all(3, &worker, 2 * seq + 1).await.len(), awaited);
        bench.at(3).cancel(&elsewhere).await.unwrap();
    }
    bench.assert_nobody_waits().await;
}

async fn tasks_of_one_call_wait_for_each_other(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let [first, second] = [ready(job()), ready(job())];
    let both = After::new([&first, &second].map(|task| Prerequisite::Task(task.id().clone())));
    let third = ready(job()).waiting_for(both);
    let second = second.waiting_for(after(first.id()));
    let ids = [&first, &second, &third].map(|task| task.id().clone());
    bench.submit(0, &[third, first, second]).await;
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    for (seq, id) in (1..).zip(&ids) {
        let claimed = bench.claim(seq, &worker, seq, 9).await;
        assert_eq!(claimed.ids(), std::slice::from_ref(id));
        assert!(bench.complete(seq, &[done(&claimed.leases(&worker)[0])]).await.is_empty());
    }
    bench.assert_nobody_waits().await;
}

/// A task that may exist may have succeeded before the call.
async fn a_prerequisite_of_the_same_call_that_has_succeeded_before_is_met(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let id = TaskId::new(bench.queue.clone());
    let again = || job().id(id.clone()).into_submission().expect("the id is of this queue");
    bench.submit(0, &[again()]).await;
    let lease = bench.take(1, &worker, 1).await;
    assert!(bench.complete(1, &[remembered(done(&lease))]).await.is_empty());
    let second = waiting(job(), after(&id));
    let second_id = second.id().clone();
    bench.submit(2, &[again(), second]).await;
    assert_eq!(bench.state(&second_id).await, TaskState::Ready);
}

async fn a_failed_attempt_of_the_prerequisite_releases_nothing(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    let second = bench.add_after(1, job(), after(&first)).await;
    let lease = bench.take(2, &worker, 1).await;
    bench.fail(3, &[failed(&lease, FailureOutcome::Retry(ms(10)))]).await;
    assert!(bench.claim(4, &worker, 2, 9).await.ids().is_empty());
    assert_eq!(bench.run_all(20, &worker, 3).await, [first]);
    assert_eq!(bench.run_all(21, &worker, 4).await, [second]);
    bench.assert_nobody_waits().await;
}

async fn it_does_not_matter_which_of_two_tasks_comes_first(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let call = |biz_id: &str| job().biz_id(biz_id);
    // Before.
    let second = bench.add_after(0, job(), After::new([keyed(&bench, "o 1:é")])).await;
    assert!(bench.claim(1, &worker, 1, 9).await.ids().is_empty());
    let first = bench.add(2, call("o 1:é")).await;
    let lease = bench.take(3, &worker, 2).await;
    assert_eq!(lease.id, first);
    bench.complete(4, &[remembered(done_as(&lease, "o 1:é"))]).await;
    assert_eq!(bench.run_all(5, &worker, 3).await, [second]);
    // After its end.
    for wait in [keyed(&bench, "o 1:é"), Prerequisite::Task(first)] {
        let later = bench.add_after(6, job(), After::new([wait])).await;
        assert_eq!(bench.state(&later).await, TaskState::Ready);
        bench.at(6).cancel(&later).await.unwrap();
    }
    // In one call, in either order.
    for (at, biz_id) in (7..).zip(["x", "y"]) {
        let mut tasks = vec![
            ready_at(at, call(biz_id)),
            ready_at(at, job()).waiting_for(After::new([keyed(&bench, biz_id)])),
        ];
        let ids = ids_of(&tasks);
        if biz_id == "y" {
            tasks.reverse();
        }
        bench.submit(at, &tasks).await;
        let lease = bench.take(at, &worker, 2 * at).await;
        assert_eq!(lease.id, ids[0]);
        bench.complete(at, &[done_as(&lease, biz_id)]).await;
        assert_eq!(bench.run_all(at, &worker, 2 * at + 1).await, [ids[1].clone()]);
    }
    bench.assert_nobody_waits().await;
}

async fn a_success_is_remembered_for_its_time(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let first = bench.add(0, job().biz_id("a")).await;
    let lease = bench.take(1, &worker, 1).await;
    bench.complete(2, &[remembered(done_as(&lease, "a"))]).await;
    for name in [format!("outcome:{}", first.stored()), "outcome:job:a".into()] {
        let left: u64 = bench.raw(redis::cmd("PTTL").arg(bench.key(&name))).await;
        assert!((REMEMBERED_MS - 60_000..=REMEMBERED_MS).contains(&left), "{name}: {left} ms");
        let kept: String = bench.raw(redis::cmd("GET").arg(bench.key(&name))).await;
        assert!(kept.starts_with(&first.stored()), "{kept}");
    }
}

async fn a_success_that_a_biz_id_or_a_result_shows_counts(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let first = bench.add(0, job().biz_id("a").biz_window(ms(1_000))).await;
    let lease = bench.take(1, &worker, 1).await;
    bench.complete(2, &[done_as(&lease, "a")]).await;
    let by_key = bench.add_after(3, job(), After::new([keyed(&bench, "a")])).await;
    assert_eq!(bench.state(&by_key).await, TaskState::Ready);
    let by_id = bench.add_after(4, job(), after(&first)).await;
    assert_eq!(bench.state(&by_id).await, TaskState::Ready, "it is among the last successes");
    bench.assert_nobody_waits().await;
}

async fn a_task_waits_for_all_its_prerequisites(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let firsts = [ready(job()), ready(job()), ready(job())];
    let ids = ids_of(&firsts);
    bench.submit(0, &firsts).await;
    let wait = After::new(ids.iter().cloned().map(Prerequisite::Task));
    let last = bench.add_after(1, job(), wait).await;
    let one = bench.take(2, &worker, 1).await;
    bench.complete(3, &[done(&one)]).await;
    assert_eq!(bench.state(&last).await, TaskState::Blocked);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    // The other two end in one call.
    assert_eq!(bench.run_all(4, &worker, 2).await.len(), 2);
    assert_eq!(bench.run_all(5, &worker, 3).await, [last]);
    bench.assert_nobody_waits().await;
}

async fn a_task_can_wait_for_thirty_two_others(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let firsts: Vec<_> = (0..32).map(|_| ready(job())).collect();
    let ids = ids_of(&firsts);
    let last = bench.add_after(0, job(), After::new(ids.into_iter().map(Prerequisite::Task))).await;
    bench.submit(1, &firsts).await;
    assert_eq!(bench.claim(2, &worker, 1, 31).await.ids().len(), 31);
    let claimed = bench.claim(2, &worker, 1, 31).await;
    bench.complete(3, &claimed.leases(&worker).iter().map(done).collect::<Vec<_>>()).await;
    assert_eq!(bench.state(&last).await, TaskState::Blocked);
    assert_eq!(bench.run_all(4, &worker, 2).await.len(), 1);
    assert_eq!(bench.run_all(5, &worker, 3).await, [last]);
    bench.assert_nobody_waits().await;
}

async fn the_delay_of_a_task_counts_from_its_submit(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    let late = bench.add_after(0, job().due(Due::In(ms(50))), after(&first)).await;
    let soon = bench.add_after(0, job().due(Due::In(ms(5))), after(&first)).await;
    assert_eq!(bench.state(&late).await, TaskState::Blocked);
    assert_eq!(bench.run_all(10, &worker, 1).await, [first]);
    assert_eq!(bench.state(&late).await, TaskState::Delayed);
    assert_eq!(bench.run_all(11, &worker, 2).await, [soon]);
    assert!(bench.claim(49, &worker, 3, 9).await.ids().is_empty());
    assert_eq!(bench.run_all(50, &worker, 4).await, [late]);
    bench.assert_nobody_waits().await;
}

async fn a_task_joins_its_lane_once_its_prerequisite_has_succeeded(bench: Bench) {
    let (worker, lane) = (bench.worker(0, "w").await, Lane::new("a"));
    // The prerequisite comes behind its dependant in the same lane.
    let first = ready_at(1, job()).in_lane(lane.clone());
    let second = ready_at(0, job()).in_lane(lane.clone()).waiting_for(after(first.id()));
    let (first_id, second_id) = (first.id().clone(), second.id().clone());
    bench.submit(0, &[second]).await;
    bench.submit(1, &[first]).await;
    bench.assert_lane("a", &[(&first_id, -1)]).await;
    let lease = bench.take(2, &worker, 1).await;
    assert_eq!(lease.id, first_id);
    let third = bench.add_in(3, &lane).await;
    bench.complete(4, &[done_in(&lease, &lane)]).await;
    bench.assert_lane("a", &[(&third, -1)]).await;
    let lease = bench.take(5, &worker, 2).await;
    assert_eq!(lease.id, third);
    bench.assert_lane("a", &[(&third, -1), (&second_id, 2)]).await;
    bench.complete(6, &[done_in(&lease, &lane)]).await;
    assert_eq!(bench.take(7, &worker, 3).await.id, second_id);
    bench.assert_nobody_waits().await;
}

async fn a_released_task_keeps_its_priority(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    let plain = bench.add_after(0, job(), after(&first)).await;
    let high = bench.add_after(0, job().priority(5), after(&first)).await;
    assert_eq!(bench.run_all(1, &worker, 1).await, [first]);
    assert_eq!(bench.claim(2, &worker, 2, 9).await.ids(), [high, plain]);
}

async fn a_cancelled_or_deleted_task_is_not_released(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let first = bench.add(0, job()).await;
    let cancelled = bench.add_after(0, job(), after(&first)).await;
    let deleted = bench.add_after(0, job(), after(&first)).await;
    assert_eq!(bench.at(1).cancel(&cancelled).await.unwrap(), Cancelled::Done);
    bench.at(1).delete_all(&bench.queue, &[&deleted]).await.unwrap();
    assert_eq!(bench.field("ties", &first.stored()).await, None);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    assert_eq!(bench.field("meta", "tombstones").await.unwrap_or("0".into()), "0");
    assert_eq!(bench.run_all(2, &worker, 1).await, [first]);
    assert!(bench.claim(3, &worker, 2, 9).await.ids().is_empty());
    assert_eq!(bench.state(&cancelled).await, TaskState::Cancelled);
    // The prerequisite has succeeded, so a requeue need not wait.
    bench.at(4).requeue(&cancelled).await.unwrap();
    assert_eq!(bench.run_all(5, &worker, 3).await, [cancelled]);
    bench.assert_nobody_waits().await;
}

async fn a_requeued_task_waits_again_for_what_is_not_met(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let (first, other) = (bench.add(0, job()).await, bench.add(0, job()).await);
    let both = [&first, &other].map(|id| Prerequisite::Task(id.clone()));
    let second = bench.add_after(0, job(), After::new(both)).await;
    let lease = bench.take(1, &worker, 1).await;
    bench.complete(1, &[done(&lease)]).await;
    bench.at(2).cancel(&second).await.unwrap();
    bench.at(3).requeue(&second).await.unwrap();
    assert_eq!(bench.state(&second).await, TaskState::Blocked);
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
    assert_eq!(bench.run_all(4, &worker, 2).await, [other]);
    let lease = bench.take(5, &worker, 3).await;
    assert_eq!(lease.id, second);
    // It has run, so it does not wait again.
    bench.fail(6, &[failed(&lease, FailureOutcome::Dead)]).await;
    bench.at(7).requeue(&second).await.unwrap();
    assert_eq!(bench.state(&second).await, TaskState::Ready);
    bench.assert_nobody_waits().await;
}

async fn a_task_whose_biz_id_is_taken_does_not_wait(bench: Bench) {
    let first = bench.add(0, job()).await;
    let owner = bench.add(0, job().biz_id("b")).await;
    let tasks = [waiting(job().biz_id("b"), after(&first))];
    assert_eq!(bench.submit(1, &tasks).await, [Receipt::Duplicate(owner)]);
    bench.assert_nobody_waits().await;
    assert_eq!(bench.field("meta", "needs").await, None);
}

async fn a_submit_that_is_sent_again_waits_once(bench: Bench) {
    let first = bench.add(0, job()).await;
    let tasks = [waiting(job(), after(&first))];
    bench.send(1, 9, &tasks).await.unwrap();
    let before = bench.dump().await;
    bench.send(2, 9, &tasks).await.unwrap();
    bench.assert_unchanged(&before).await;
}

async fn blocked_tasks_are_listed_page_by_page(bench: Bench) {
    let first = bench.add_in(0, &Lane::new("a")).await;
    let mut expected = vec![bench.add_in(0, &Lane::new("a")).await];
    for _ in 0..20 {
        expected.push(bench.add_after(0, job(), after(&first)).await);
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = bench.now().list(&bench.queue, TaskState::Blocked, 3, &cursor).await.unwrap();
        seen.extend(page.rows.into_iter().map(|row| row.id));
        if page.next.is_empty() {
            break;
        }
        cursor = page.next;
    }
    seen.sort();
    seen.dedup();
    expected.sort();
    assert_eq!(seen, expected);
}

async fn a_call_may_bring_thousands_of_prerequisites(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let mut firsts = Vec::new();
    for _ in 0..32 {
        firsts.push(bench.add(0, job()).await);
    }
    let wait = After::new(firsts.into_iter().map(Prerequisite::Task));
    let tasks: Vec<_> = (0..300).map(|_| waiting(job(), wait.clone())).collect();
    bench.submit(1, &tasks).await;
    assert_eq!(bench.run_all(2, &worker, 1).await.len(), 32);
    bench.relay_all(3).await;
    let mut started = 0;
    for seq in 2..5 {
        started += bench.run_all(4, &worker, seq).await.len();
    }
    assert_eq!(started, 300);
    bench.assert_nobody_waits().await;
}

on_both![
    a_call_may_bring_thousands_of_prerequisites,
    a_task_waits_until_its_prerequisite_has_succeeded,
    of_many_successes_those_that_are_awaited_free_their_tasks,
    tasks_of_one_call_wait_for_each_other,
    a_prerequisite_of_the_same_call_that_has_succeeded_before_is_met,
    a_failed_attempt_of_the_prerequisite_releases_nothing,
    it_does_not_matter_which_of_two_tasks_comes_first,
    a_success_is_remembered_for_its_time,
    a_success_that_a_biz_id_or_a_result_shows_counts,
    a_task_waits_for_all_its_prerequisites,
    a_task_can_wait_for_thirty_two_others,
    the_delay_of_a_task_counts_from_its_submit,
    a_task_joins_its_lane_once_its_prerequisite_has_succeeded,
    a_released_task_keeps_its_priority,
    a_cancelled_or_deleted_task_is_not_released,
    a_requeued_task_waits_again_for_what_is_not_met,
    a_task_whose_biz_id_is_taken_does_not_wait,
    a_submit_that_is_sent_again_waits_once,
    blocked_tasks_are_listed_page_by_page,
];
