//! `max_working`: a permit is taken with the task, and given back with it.

use optimus_core::{
    Due, Lease, TaskState,
    broker::{FailureOutcome, Give},
};

use crate::{
    acts::{Grants, LEASE, done, failed, given, ids_of, ms},
    after::after,
    bench::{Bench, START},
    jobs::{job, jobs},
    limits::{at_most, named},
};

async fn as_many_tasks_are_working_as_a_limit_allows(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let mut ids = ids_of(&bench.add_limited(0, 5, &[at_most("m", 2)]).await);
    let claimed = bench.claim(0, &worker, 1, 128).await;
    assert_eq!(claimed.ids(), ids[..2]);
    assert!(!claimed.more && claimed.next_due.is_none(), "an end opens the gate");
    let seen = bench.now().limit(&bench.queue, &named("m")).await.unwrap().unwrap();
    assert_eq!((seen.working, seen.waiting, seen.next), (2, 3, None));
    let mut held = claimed.leases(&worker);
    for seq in 2..=4 {
        bench.answer_wakeup().await;
        bench.complete(seq, &[done(&held.remove(0))]).await;
        assert!(bench.answer_wakeup().await, "another worker may be free");
        bench.assert_sound().await;
        let claimed = bench.claim(seq, &worker, seq, 128).await;
        assert_eq!(claimed.ids(), ids[2..3]);
        held.extend(claimed.leases(&worker));
        ids.remove(2);
    }
    bench.complete(9, &held.iter().map(done).collect::<Vec<_>>()).await;
    bench.assert_no_limits_left().await;
}

/// Each transition out of Working gives the permit back, and lets the next task start.
async fn each_transition_out_of_working_gives_the_permit_back(bench: Bench) {
    for (at, way) in (0..).step_by(1_000).zip(["retry", "dead", "cancelled", "snooze", "misfit"]) {
        let worker = bench.worker(at, way).await;
        bench.add_limited(at, 2, &[at_most(way, 1)]).await;
        let first = bench.take(at, &worker, 1).await;
        assert_eq!(bench.claim(at, &worker, 2, 128).await.ids(), [], "{way}");
        leave(&bench, at + 1, &first, way).await;
        assert_eq!(bench.field("permits", &first.id.stored()).await, None, "{way}");
        bench.assert_sound().await;
        let second = bench.claim(at + 1, &worker, 3, 1).await.leases(&worker);
        bench.complete(at + 2, &[done(&second[0])]).await;
        bench.now().delete_all(&bench.queue, &[&first.id]).await.unwrap();
        bench.assert_no_limits_left().await;
    }
}

async fn leave(bench: &Bench, at: u64, lease: &Lease, way: &str) {
    let later = ms(500_000);
    match way {
        "retry" => drop(bench.fail(at, &[failed(lease, FailureOutcome::Retry(later))]).await),
        "dead" => drop(bench.fail(at, &[failed(lease, FailureOutcome::Dead)]).await),
        "cancelled" => {
            bench.at(at).cancel(&lease.id).await.unwrap();
            bench.fail(at, &[failed(lease, FailureOutcome::Dead)]).await;
        }
        "snooze" => drop(bench.release(at, &[given(lease, Give::Snooze(later))]).await),
        _ => drop(bench.release(at, &[given(lease, Give::Misfit(later))]).await),
    }
}

async fn the_permits_of_a_lost_worker_are_given_back(bench: Bench) {
    let lost = bench.worker(0, "lost").await;
    let ids = ids_of(&bench.add_limited(0, 3, &[at_most("m", 2)]).await);
    assert_eq!(bench.claim(0, &lost, 1, 128).await.ids(), ids[..2]);
    let worker = bench.worker(0, "w").await;
    for at in [5_000, 10_000] {
        bench.at(at).renew(&bench.queue, &worker, LEASE).await.unwrap();
    }
    assert_eq!(bench.claim(10_001, &worker, 1, 128).await.ids(), []);
    let reaped = bench.at(15_001).reap(&bench.queue, &worker, LEASE, 128).await.unwrap();
    assert_eq!(reaped.tasks, 2);
    bench.assert_sound().await;
    let claimed = bench.claim(15_002, &worker, 2, 128).await;
    assert_eq!(claimed.ids().len(), 2, "two permits are free again");
    bench.assert_sound().await;
}

async fn a_stale_report_gives_no_permit_back(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.add_limited(0, 2, &[at_most("m", 1)]).await;
    let first = bench.take(0, &worker, 1).await;
    bench.complete(1, &[done(&first)]).await;
    bench.take(2, &worker, 2).await;
    let before = bench.dump().await;
    assert_eq!(bench.complete(3, &[done(&first)]).await, [0]);
    bench.assert_unchanged(&before).await;
}

async fn a_wider_limit_lets_more_start_and_a_narrower_one_takes_nothing_back(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.add_limited(0, 4, &[at_most("m", 1)]).await;
    let mut held = bench.claim(0, &worker, 1, 128).await.leases(&worker);
    let set = |most| at_most("m", most).limit;
    bench.at(1).set_limit(&bench.queue, &named("m"), Some(&set(3))).await.unwrap();
    held.extend(bench.claim(1, &worker, 2, 128).await.leases(&worker));
    assert_eq!(held.len(), 3);
    bench.at(2).set_limit(&bench.queue, &named("m"), Some(&set(2))).await.unwrap();
    for seq in 3..5 {
        assert_eq!(bench.claim(seq, &worker, seq, 128).await.ids(), [], "{} are held", held.len());
        bench.complete(seq, &[done(&held.remove(0))]).await;
    }
    assert_eq!(bench.claim(9, &worker, 9, 128).await.ids().len(), 1);
    bench.assert_sound().await;
}

async fn a_full_store_drains_tasks_with_limits(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.add_limited(0, 9, &[at_most("m", 2)]).await;
    bench.submit(0, &jobs(3)).await;
    bench.set_full(true).await;
    let mut ended = 0;
    for seq in 1..=12 {
        let claimed = bench.claim(seq, &worker, seq, 3).await;
        let reports: Vec<_> = claimed.leases(&worker).iter().map(done).collect();
        ended += reports.len();
        if !reports.is_empty() {
            assert_eq!(bench.complete(seq, &reports).await, [0; 0]);
        }
    }
    bench.set_full(false).await;
    assert_eq!(ended, 12);
    bench.assert_no_limits_left().await;
}

#[tokio::test]
async fn full_embedded() {
    a_full_store_drains_tasks_with_limits(Bench::embedded()).await;
}

#[tokio::test]
async fn full_redis() {
    a_full_store_drains_tasks_with_limits(Bench::own_redis().await).await;
}

async fn a_task_of_a_lane_keeps_its_place_while_it_waits_for_a_gate(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let limits = vec![at_most("m", 1)];
    let tasks: Vec<_> = jobs(4)
        .into_iter()
        .map(|task| task.in_lane(crate::lanes::lane("a", 1)).limited_by(limits.clone()))
        .collect();
    bench.add_limited(0, 1, &limits).await;
    bench.submit(0, &tasks).await;
    let ids = ids_of(&tasks);
    let held = bench.take(0, &worker, 1).await;
    assert_eq!(bench.claim(1, &worker, 2, 128).await.ids(), []);
    assert_eq!(bench.state(&ids[0]).await, TaskState::Blocked);
    bench.assert_sound().await;
    bench.complete(2, &[done(&held)]).await;
    for (seq, id) in (3..).zip(&ids) {
        let lease = bench.take(seq, &worker, seq).await;
        assert_eq!(lease.id, *id);
        let report = crate::lanes::done_in(&lease, &crate::lanes::lane("a", 1));
        bench.complete(seq, &[report]).await;
    }
    bench.assert_no_limits_left().await;
}

/// The freed task is due much later, and the end also frees a permit.
async fn an_end_that_frees_a_delayed_task_lets_the_next_of_its_limit_start(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let limited = bench.add_limited(0, 2, &[at_most("m", 1)]).await;
    let ids = ids_of(&limited);
    let later = job().due(Due::In(ms(500_000)));
    let waits = bench.add_after(0, later, after(&ids[0])).await;
    let first = bench.take(0, &worker, 1).await;
    assert_eq!(bench.claim(1, &worker, 2, 128).await.ids(), []);
    bench.complete(2, &[done(&first)]).await;
    assert_eq!(bench.state(&waits).await, TaskState::Delayed);
    bench.assert_sound().await;
    assert_eq!(bench.claim(3, &worker, 3, 128).await.ids(), ids[1..]);
}

/// Earlier releases have left such times.
async fn an_end_repairs_a_time_that_is_too_late_for_its_gate(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let ids = ids_of(&bench.add_limited(0, 3, &[at_most("m", 2)]).await);
    let held = bench.claim(0, &worker, 1, 128).await.leases(&worker);
    bench.complete(1, &[done(&held[0])]).await;
    let due = (START + 500_000).to_string();
    let () = bench.raw(redis::cmd("HSET").arg(bench.key("meta")).arg("due").arg(due)).await;
    assert_eq!(bench.claim(2, &worker, 2, 128).await.ids(), []);
    bench.complete(3, &[done(&held[1])]).await;
    bench.assert_sound().await;
    assert_eq!(bench.claim(4, &worker, 3, 128).await.ids(), ids[2..]);
}

on_both![
    an_end_that_frees_a_delayed_task_lets_the_next_of_its_limit_start,
    an_end_repairs_a_time_that_is_too_late_for_its_gate,
    as_many_tasks_are_working_as_a_limit_allows,
    each_transition_out_of_working_gives_the_permit_back,
    the_permits_of_a_lost_worker_are_given_back,
    a_stale_report_gives_no_permit_back,
    a_wider_limit_lets_more_start_and_a_narrower_one_takes_nothing_back,
    a_task_of_a_lane_keeps_its_place_while_it_waits_for_a_gate,
];
