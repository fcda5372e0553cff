//! A clock that is set back: gates, runs, permits outside tasks and pauses wait no longer than they
//! would by the present clock. The first heartbeat moves their times.

use optimus_core::{
    Gate, Limit, ShutScope, TaskState, WorkerId,
    broker::{Failure, FailureOutcome, Shutting},
};
use redis::cmd;

use crate::{
    acts::{Grants, LEASE, failed, ids_of, ms},
    bench::{Bench, START},
    gathers::many_of,
    limits::{a_second, named},
};

/// How far the clock is set back.
const HOUR: u64 = 3_600_000;

/// More gates than two calls move.
const MANY: u64 = 1_100;

async fn renew(bench: &Bench, at: u64, worker: &WorkerId) {
    bench.at(at).renew(&bench.queue, worker, ms(90_000)).await.expect("the worker is registered");
}

async fn tasks_that_wait_for_a_rate_start_by_the_present_clock(bench: Bench) {
    let worker = bench.worker_for(HOUR, "w", ms(2 * HOUR)).await;
    let limits = [a_second("r", 1, 1)];
    let mut ids = ids_of(&bench.add_limited(HOUR, 3, &limits).await);
    assert_eq!(bench.claim(HOUR, &worker, 1, 128).await.ids(), ids[..1]);
    assert_eq!(bench.score("gates", "limit:r").await, Some(START + HOUR + 1_000));
    ids.extend(ids_of(&bench.add_limited(0, 1, &limits).await));
    bench.answer_wakeup().await;
    renew(&bench, 5, &worker).await;
    assert!(bench.answer_wakeup().await, "the worker that waits for the old time is woken");
    bench.assert_sound().await;
    let claimed = bench.claim(6, &worker, 2, 128).await;
    assert_eq!((claimed.ids(), claimed.next_due), (vec![], Some(ms(1_000))));
    // By the present clock, the task that came last waits since the earliest time.
    for (seq, at) in (3..).zip([3, 1, 2]) {
        let claimed = bench.claim((seq - 2) * 1_000 + 6, &worker, seq, 128).await;
        assert_eq!(claimed.ids(), ids[at..=at]);
    }
    bench.assert_no_limits_left().await;
}

async fn calls_that_run_together_start_by_the_present_clock(bench: Bench) {
    let worker = bench.worker_for(HOUR, "w", ms(2 * HOUR)).await;
    let first = bench.add_gathered(HOUR, &many_of("a")).await;
    bench.claim(HOUR + 1, &worker, 1, 9).await;
    let second = bench.add_gathered(0, &many_of("a")).await;
    assert_eq!(bench.due_run("a").await, Some(HOUR + 10_000));
    renew(&bench, 5, &worker).await;
    assert_eq!(bench.due_run("a").await, Some(5));
    bench.assert_sound().await;
    let mut run: Vec<_> = bench.run_of(6, &worker, 2).await.into_iter().map(|one| one.id).collect();
    run.sort_by_key(|id| *id != first);
    assert_eq!(run, [first, second]);
    // A run that begins after the step waits for its whole time.
    bench.add_gathered(7, &many_of("b")).await;
    renew(&bench, 8, &worker).await;
    assert_eq!(bench.due_run("b").await, Some(10_007));
}

async fn permits_outside_tasks_end_by_the_present_clock(bench: Bench) {
    let worker = bench.worker(HOUR, "w").await;
    let limit = Limit::new().max_working(3);
    bench.at(HOUR).set_limit(&bench.queue, &named("x"), Some(&limit)).await.unwrap();
    for (at, name, lease) in [(HOUR, "dead", 60_000), (0, "live", 20_000), (0, "long", 50_000)] {
        let granted = bench.at(at).acquire(&bench.queue, &named("x"), 1, name, ms(lease)).await;
        granted.expect("it is answered");
    }
    renew(&bench, 5, &worker).await;
    for (name, ends) in [("dead", 60_005), ("live", 20_000), ("long", 30_005)] {
        let loan = format!("limit:x\n{name}");
        assert_eq!(bench.score("loans", &loan).await, Some(START + ends), "{name}");
    }
    bench.assert_sound().await;
}

async fn a_pause_that_a_task_asked_for_ends_by_the_present_clock(bench: Bench) {
    let worker = bench.worker_for(HOUR, "w", ms(2 * HOUR)).await;
    let ids = ids_of(&bench.add_limited(HOUR, 2, &[a_second("r", 100, 9)]).await);
    let lease = bench.take(HOUR, &worker, 1).await;
    let shut = Some(Shutting { scope: ShutScope::Limit, wait: ms(60_000), why: "429".into() });
    let failure = Failure { shut, ..failed(&lease, FailureOutcome::Retry(ms(2 * HOUR))) };
    bench.fail(HOUR, &[failure]).await;
    let paused = Gate::Task("other".into());
    bench.at(HOUR).pause_gate(&bench.queue, &paused, "ann", "why").await.unwrap();
    assert_eq!(bench.claim(HOUR, &worker, 2, 9).await.ids(), []);
    renew(&bench, 0, &worker).await;
    assert_eq!(bench.score("shut", "limit:r").await, Some(START + 60_000));
    assert_eq!(bench.exact_score("shut", "task:other").await.as_deref(), Some("inf"));
    assert_eq!(bench.claim(1, &worker, 3, 9).await.ids(), []);
    assert_eq!(bench.state(&ids[1]).await, TaskState::Blocked);
    bench.assert_sound().await;
    assert_eq!(bench.claim(60_000, &worker, 4, 9).await.ids(), ids[1..]);
}

async fn every_call_that_watches_leases_moves_them(bench: Bench) {
    let worker = bench.worker_for(HOUR, "w", ms(2 * HOUR)).await;
    for way in ["register", "reap", "renew"] {
        renew(&bench, HOUR, &worker).await;
        let run = bench.add_gathered(HOUR, &many_of(way)).await;
        match way {
            "register" => drop(bench.worker(3, "other").await),
            "reap" => drop(bench.at(3).reap(&bench.queue, &worker, LEASE, 9).await.unwrap()),
            _ => renew(&bench, 3, &worker).await,
        }
        assert_eq!(bench.due_run(way).await, Some(3), "{way}");
        bench.at(3).cancel(&run).await.unwrap();
    }
}

async fn a_worker_that_comes_after_all_others_moves_them(bench: Bench) {
    let worker = bench.worker(HOUR, "w").await;
    bench.add_gathered(HOUR, &many_of("a")).await;
    bench.at(HOUR).leave(&bench.queue, &worker).await.unwrap();
    bench.worker(3, "w2").await;
    assert_eq!(bench.due_run("a").await, Some(3));
}

async fn a_call_moves_a_part_and_the_next_ones_the_rest(bench: Bench) {
    let worker = bench.worker(HOUR, "w").await;
    for gate in 0..MANY {
        let key = bench.key("gates");
        let _: u64 = bench.raw(cmd("ZADD").arg(key).arg(START + HOUR + gate).arg(gate)).await;
    }
    let left = async || {
        let key = bench.key("gates");
        bench.raw::<u64>(cmd("ZCOUNT").arg(key).arg(START + HOUR).arg("inf")).await
    };
    for (at, expected) in [(1, 600), (2, 100), (3, 0)] {
        renew(&bench, at, &worker).await;
        assert_eq!(left().await, expected);
        let next = (expected > 0).then(|| (START + HOUR + expected).to_string());
        assert_eq!(bench.field("meta", "back").await, next);
    }
    let before = bench.dump().await;
    renew(&bench, 4, &worker).await;
    assert_eq!(bench.changes(&before).await, ["meta", "workers"]);
}

async fn a_small_step_moves_leases_alone(bench: Bench) {
    let worker = bench.worker(1_000, "w").await;
    bench.add_gathered(1_000, &many_of("a")).await;
    renew(&bench, 1, &worker).await;
    assert_eq!(bench.due_run("a").await, Some(11_000));
    renew(&bench, 1_001, &worker).await;
    renew(&bench, 1, &worker).await;
    assert_eq!(bench.due_run("a").await, Some(1));
}

on_both![
    tasks_that_wait_for_a_rate_start_by_the_present_clock,
    calls_that_run_together_start_by_the_present_clock,
    permits_outside_tasks_end_by_the_present_clock,
    a_pause_that_a_task_asked_for_ends_by_the_present_clock,
    every_call_that_watches_leases_moves_them,
    a_worker_that_comes_after_all_others_moves_them,
    a_call_moves_a_part_and_the_next_ones_the_rest,
    a_small_step_moves_leases_alone,
];
