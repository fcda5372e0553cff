//! Pauses of a task's name, a lane or a named limit, by an operator or by a task that asks for one.

use optimus_core::{
    Gate, Lease, ShutScope, TaskState,
    broker::{Failure, FailureOutcome, Shutting},
};

use crate::{
    acts::{Grants, done, failed, ids_of, ms},
    bench::{Bench, START},
    jobs::{Fragile, job, jobs, ready},
    lanes::lane,
    limits::{at_most, named},
};
use optimus_core::Task as _;

async fn a_paused_name_or_lane_starts_nothing_until_it_is_resumed(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let of_lane = ready(job()).in_lane(lane("a", 1));
    let tasks = [ready(Fragile.call()), of_lane, ready(job())];
    let ids = ids_of(&tasks);
    bench.submit(0, &tasks).await;
    let gates = [Gate::Task("fragile".into()), Gate::Lane("a".into())];
    for gate in &gates {
        assert!(bench.at(1).pause_gate(&bench.queue, gate, "ann", "an outage").await.unwrap());
    }
    let claimed = bench.claim(2, &worker, 1, 128).await;
    assert_eq!(claimed.ids(), ids[2..], "only those of that name and lane are paused");
    assert!(claimed.next_due.is_none() && !claimed.more);
    assert_eq!(bench.state(&ids[0]).await, TaskState::Blocked);
    bench.assert_sound().await;

    let seen = bench.now().limits(&bench.queue, 9).await.unwrap();
    assert_eq!(seen.iter().map(|seen| &seen.gate).collect::<Vec<_>>(), [&gates[1], &gates[0]]);
    let shut = seen[0].shut.as_ref().expect("it is paused");
    assert_eq!((&*shut.by, &*shut.why, shut.until), ("ann", "an outage", None));
    assert_eq!(shut.since.timestamp_millis(), i64::try_from(START + 1).unwrap());

    bench.answer_wakeup().await;
    bench.at(3).resume_gate(&bench.queue, &gates[0]).await.unwrap();
    assert!(bench.answer_wakeup().await);
    assert_eq!(bench.claim(4, &worker, 2, 128).await.ids(), ids[..1]);
    bench.at(5).resume_gate(&bench.queue, &gates[1]).await.unwrap();
    assert_eq!(bench.claim(6, &worker, 3, 128).await.ids(), ids[1..2]);
    bench.assert_no_limits_left().await;
    assert_eq!(bench.now().limits(&bench.queue, 9).await.unwrap(), []);
}

async fn the_pause_of_a_queue_has_who_when_and_why(bench: Bench) {
    bench.submit(0, &jobs(1)).await;
    bench
        .at(1)
        .pause_gate(&bench.queue, &Gate::Queue, "ann\nb", "a move\nto Redis 8")
        .await
        .unwrap();
    bench.at(9).pause(&bench.queue).await.unwrap();
    let seen = bench.now().limit(&bench.queue, &Gate::Queue).await.unwrap().expect("it is paused");
    let shut = seen.shut.expect("it is paused");
    assert_eq!(shut.since.timestamp_millis(), i64::try_from(START + 1).unwrap(), "the first");
    assert_eq!((&*shut.by, shut.until), ("", None));
    bench.at(10).resume(&bench.queue).await.unwrap();
    assert_eq!(bench.now().limit(&bench.queue, &Gate::Queue).await.unwrap(), None);
}

fn shutting(lease: &Lease, scope: ShutScope, wait: u64) -> Failure {
    let shut = Some(Shutting { scope, wait: ms(wait), why: "429; a:b".into() });
    Failure { shut, ..failed(lease, FailureOutcome::Retry(ms(wait))) }
}

async fn a_task_can_pause_its_own_limit_for_a_while(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    let tenant = ids_of(&bench.add_limited(0, 3, &[at_most("a", 9)]).await);
    let other = ids_of(&bench.add_limited(0, 3, &[at_most("b", 9)]).await);
    let lease = bench.take(0, &worker, 1).await;
    bench.fail(10, &[shutting(&lease, ShutScope::Limit, 30_000)]).await;
    let claimed = bench.claim(11, &worker, 2, 128).await;
    assert_eq!(claimed.ids(), other, "the other tenant continues");
    assert_eq!(claimed.next_due, Some(ms(29_999)));
    let reason: String = bench.raw(redis::cmd("GET").arg(bench.key("shut:limit:a"))).await;
    assert_eq!(reason, format!("{} {}\n429; a:b", START + 10, lease.id));
    bench.assert_sound().await;
    assert_eq!(bench.claim(30_009, &worker, 3, 128).await.ids(), []);
    // This claim makes the retry ready, too.
    let mut ids = bench.claim(30_010, &worker, 4, 128).await.ids();
    ids.extend(bench.claim(30_010, &worker, 5, 128).await.ids());
    ids.sort();
    let mut expected = tenant.clone();
    expected.sort();
    assert_eq!(ids, expected);
    assert_eq!(bench.names().await.iter().find(|name| *name == "shut"), None, "nothing is left");
}

async fn a_pause_that_a_task_asks_for_shortens_no_other(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.add_limited(0, 4, &[at_most("a", 9)]).await;
    let leases = bench.claim(0, &worker, 1, 3).await.leases(&worker);
    bench.fail(0, &[shutting(&leases[0], ShutScope::Limit, 900)]).await;
    bench.fail(1, &[shutting(&leases[1], ShutScope::Limit, 9)]).await;
    assert_eq!(bench.score("shut", "limit:a").await, Some(START + 900));
    bench.at(2).pause_gate(&bench.queue, &named("a"), "ann", "").await.unwrap();
    bench.fail(3, &[shutting(&leases[2], ShutScope::Limit, 9)]).await;
    assert_eq!(bench.exact_score("shut", "limit:a").await.as_deref(), Some("inf"));
    assert_eq!(bench.claim(1_000, &worker, 2, 128).await.ids(), []);
    bench.assert_sound().await;
}

async fn a_task_can_pause_its_lane_its_name_or_its_queue(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let in_lane = |key: &str| ready(job()).in_lane(lane(key, 2));
    let tasks = [in_lane("a"), in_lane("a"), in_lane("b"), ready(Fragile.call())];
    let ids = ids_of(&tasks);
    bench.submit(0, &tasks).await;
    let lease = bench.take(0, &worker, 1).await;
    bench.fail(0, &[shutting(&lease, ShutScope::Lane, 1_000)]).await;
    let next = bench.take(1, &worker, 2).await;
    assert_eq!(next.id, ids[2]);
    bench.fail(1, &[shutting(&next, ShutScope::Task, 500)]).await;
    let next = bench.take(2, &worker, 3).await;
    assert_eq!(next.id, ids[3]);
    bench.submit(3, &[ready(Fragile.call())]).await;
    bench.fail(3, &[shutting(&next, ShutScope::Queue, 100)]).await;
    let claimed = bench.claim(4, &worker, 4, 128).await;
    assert_eq!((claimed.ids().len(), claimed.next_due), (0, Some(ms(99))));
    assert_eq!(bench.claim(103, &worker, 5, 128).await.ids().len(), 2, "the retry is due, too");
    bench.assert_sound().await;
}

async fn a_queue_paused_by_a_report_lets_held_tasks_end(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.submit(0, &jobs(3)).await;
    let leases = bench.claim(0, &worker, 1, 2).await.leases(&worker);
    bench.fail(0, &[shutting(&leases[0], ShutScope::Queue, 100)]).await;
    assert_eq!(bench.complete(1, &[done(&leases[1])]).await, [0; 0]);
    assert_eq!(bench.claim(2, &worker, 2, 128).await.ids(), []);
    bench.assert_sound().await;
}

async fn an_operator_ends_the_pause_of_a_queue_that_a_task_has_asked_for(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.submit(0, &jobs(3)).await;
    let lease = bench.take(0, &worker, 1).await;
    bench.fail(0, &[shutting(&lease, ShutScope::Queue, 600_000)]).await;
    assert_eq!(bench.claim(1, &worker, 2, 128).await.ids(), []);
    bench.at(2).pause_gate(&bench.queue, &Gate::Queue, "ann", "").await.unwrap();
    bench.answer_wakeup().await;
    bench.at(3).resume(&bench.queue).await.unwrap();
    assert!(bench.answer_wakeup().await);
    assert_eq!(bench.claim(4, &worker, 3, 128).await.ids().len(), 2, "the third is in retry");
    assert_eq!(bench.now().limit(&bench.queue, &Gate::Queue).await.unwrap(), None);
    bench.assert_sound().await;
}

on_both![
    an_operator_ends_the_pause_of_a_queue_that_a_task_has_asked_for,
    a_paused_name_or_lane_starts_nothing_until_it_is_resumed,
    the_pause_of_a_queue_has_who_when_and_why,
    a_task_can_pause_its_own_limit_for_a_while,
    a_pause_that_a_task_asks_for_shortens_no_other,
    a_task_can_pause_its_lane_its_name_or_its_queue,
    a_queue_paused_by_a_report_lets_held_tasks_end,
];
