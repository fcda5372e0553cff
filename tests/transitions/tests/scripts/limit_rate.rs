//! Rates: how many tasks of a gate start in a period, over all workers.

use optimus_core::{
    Due, Gate, Limit, Rate, TaskState, WorkerId,
    broker::{FailureOutcome, Give},
};

use crate::{
    acts::{Grants, done, failed, given, ids_of, ms},
    bench::Bench,
    jobs::{job, jobs},
    limits::{a_second, at_most, named, one_in_10_s},
};

async fn tasks_start_at_their_rate_after_a_burst_and_the_others_wait_in_order(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let ids = ids_of(&bench.add_limited(0, 5, &[a_second("r", 10, 2)]).await);
    let claimed = bench.claim(0, &worker, 1, 128).await;
    assert_eq!(claimed.ids(), ids[..2]);
    assert!(!claimed.more, "no task can start now");
    assert_eq!(claimed.next_due, Some(ms(100)));
    for id in &ids[2..] {
        assert_eq!(bench.state(id).await, TaskState::Blocked);
    }
    assert_eq!(bench.now().counts(&bench.queue).await.unwrap().blocked, 3);
    bench.assert_sound().await;
    assert_eq!(bench.claim(99, &worker, 2, 128).await.ids(), []);
    assert_eq!(bench.claim(100, &worker, 3, 128).await.ids(), ids[2..3]);
    assert_eq!(bench.claim(101, &worker, 4, 128).await.ids(), []);
    let claimed = bench.claim(400, &worker, 5, 128).await;
    assert_eq!(claimed.ids(), ids[3..], "unused tokens are kept up to the burst");
    bench.assert_no_limits_left().await;
}

async fn a_gate_that_has_all_its_tokens_again_is_forgotten(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    for (seq, name) in (1..).zip(["a", "b", "c"]) {
        bench.add_limited(0, 1, &[a_second(name, 1, 1)]).await;
        assert_eq!(bench.claim(0, &worker, seq, 1).await.ids().len(), 1);
    }
    assert!(bench.score("spent", "limit:a").await.is_some());
    bench.add_limited(1_000, 2, &[a_second("b", 1, 1)]).await;
    bench.add_limited(1_000, 1, &[a_second("d", 1, 1)]).await;
    assert_eq!(bench.claim(1_000, &worker, 4, 3).await.ids().len(), 2);
    let left = ["a", "b", "c"].map(|name| format!("limit:{name}"));
    let left = [0, 1, 2].map(|at| bench.score("spent", &left[at]));
    let [a, b, c] = futures_util::future::join_all(left).await.try_into().expect("three");
    assert!((a, c) == (None, None) && b.is_some(), "only the tokens of b and d are spent");
    bench.assert_sound().await;
}

async fn a_repeated_claim_takes_no_second_token(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    let ids = ids_of(&bench.add_limited(0, 2, &[one_in_10_s("r")]).await);
    assert_eq!(bench.claim(0, &worker, 1, 1).await.ids(), ids[..1]);
    let before = bench.dump().await;
    assert_eq!(bench.claim(1, &worker, 1, 1).await.ids(), ids[..1]);
    bench.assert_unchanged(&before).await;
    assert_eq!(bench.claim(10_000, &worker, 2, 1).await.ids(), ids[1..]);
}

async fn a_task_takes_the_tokens_of_all_its_limits_or_none(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let wide = a_second("all", 10, 1);
    let first = ids_of(&bench.add_limited(0, 1, &[a_second("a", 1, 1), wide.clone()]).await);
    let second = ids_of(&bench.add_limited(0, 2, &[a_second("b", 1, 1), wide]).await);
    let b = format!("limit:{}", "b");
    assert_eq!(bench.claim(0, &worker, 1, 128).await.ids(), first);
    assert_eq!(bench.score("spent", &b).await, None, "the token of b is not spent");
    assert_eq!(bench.claim(100, &worker, 2, 128).await.ids(), second[..1]);
    let spent = bench.score("spent", "limit:all").await;
    assert_eq!(bench.claim(200, &worker, 3, 128).await.ids(), []);
    let left = bench.score("spent", "limit:all").await;
    assert!(left.is_none() || left == spent, "the token of all is not spent");
    bench.assert_sound().await;
    assert_eq!(bench.claim(1_100, &worker, 4, 128).await.ids(), second[1..]);
    bench.assert_no_limits_left().await;
}

async fn each_attempt_takes_a_token(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    let ids = ids_of(&bench.add_limited(0, 1, &[one_in_10_s("r")]).await);
    let lease = bench.take(0, &worker, 1).await;
    bench.fail(1, &[failed(&lease, FailureOutcome::Retry(ms(10)))]).await;
    // The first of these claims makes the task ready.
    for (at, seq) in [(11, 2), (11, 3), (9_999, 4)] {
        assert_eq!(bench.claim(at, &worker, seq, 1).await.ids(), []);
    }
    assert_eq!(bench.state(&ids[0]).await, TaskState::Blocked);
    let lease = bench.take(10_000, &worker, 5).await;
    bench.release(10_001, &[given(&lease, Give::Interrupted)]).await;
    assert_eq!(bench.claim(19_999, &worker, 6, 1).await.ids(), []);
    assert_eq!(bench.take(20_000, &worker, 7).await.id, ids[0]);
    bench.assert_sound().await;
}

async fn a_task_that_is_given_back_before_it_begins_uses_no_token(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    let ids = ids_of(&bench.add_limited(0, 3, &[one_in_10_s("r"), a_second("s", 1, 2)]).await);
    // The others begin to wait, and the first one still comes before them.
    for (at, seq) in [(0, 1), (5, 2), (10, 3)] {
        let claimed = bench.claim(at, &worker, seq, 9).await;
        assert_eq!(claimed.ids(), ids[..1]);
        bench.release(at + 1, &[given(&claimed.leases(&worker)[0], Give::Head)]).await;
    }
    assert_eq!(bench.claim(20, &worker, 4, 9).await.ids(), ids[..1]);
    assert_eq!(bench.claim(10_019, &worker, 5, 9).await.ids(), []);
    assert_eq!(bench.claim(10_020, &worker, 6, 9).await.ids(), ids[1..2]);
    bench.assert_sound().await;
}

async fn a_task_of_a_limited_queue_that_is_given_back_leaves_its_token(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    let tasks = jobs(2);
    bench.submit(0, &tasks).await;
    let limit = Limit::new().rate(Rate::per_minute(6));
    bench.at(0).set_limit(&bench.queue, &Gate::Queue, Some(&limit)).await.unwrap();
    for (at, seq) in [(0, 1), (5, 2)] {
        let claimed = bench.claim(at, &worker, seq, 9).await;
        assert_eq!(claimed.ids(), ids_of(&tasks)[..1]);
        bench.release(at + 1, &[given(&claimed.leases(&worker)[0], Give::Head)]).await;
    }
    bench.assert_sound().await;
}

async fn a_task_that_is_cancelled_because_nobody_started_it_leaves_its_token(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    let ids = ids_of(&bench.add_limited(0, 3, &[one_in_10_s("r")]).await);
    let outcomes = [FailureOutcome::Unstarted, FailureOutcome::Cancelled];
    for (at, (seq, outcome)) in (0..).zip((1..).zip(outcomes)) {
        let claimed = bench.claim(10 * at, &worker, seq, 9).await.leases(&worker);
        assert_eq!((claimed.len(), &claimed[0].id), (1, &ids[usize::try_from(at).unwrap()]));
        assert!(bench.fail(10 * at + 1, &[failed(&claimed[0], outcome)]).await.is_empty());
        assert_eq!(bench.state(&claimed[0].id).await, TaskState::Cancelled, "{outcome:?}");
    }
    assert_eq!(bench.claim(20, &worker, 3, 9).await.ids(), [], "the second one used its token");
    bench.assert_sound().await;
}

async fn a_clock_that_is_set_back_keeps_no_gate_shut(bench: Bench) {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let worker = bench.worker_for(DAY, "w", ms(DAY)).await;
    let limits = [a_second("r", 1, 2)];
    bench.add_limited(DAY, 1, &limits).await;
    assert_eq!(bench.claim(DAY, &worker, 1, 128).await.ids().len(), 1);
    let ids = ids_of(&bench.add_limited(0, 2, &limits).await);
    assert_eq!(bench.claim(0, &worker, 2, 128).await.ids(), [], "it has no tokens then");
    assert_eq!(bench.claim(1_000, &worker, 3, 128).await.ids(), ids[..1]);
    assert_eq!(bench.claim(2_000, &worker, 4, 128).await.ids(), ids[1..]);
}

async fn a_limit_of_the_queue_leaves_its_tasks_in_the_ready_list(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let tasks = jobs(9);
    let ids = ids_of(&tasks);
    bench.submit(0, &tasks).await;
    let limit = Limit::new().rate(Rate::per_second(10)).burst(2);
    bench.at(0).set_limit(&bench.queue, &Gate::Queue, Some(&limit)).await.unwrap();
    let claimed = bench.claim(0, &worker, 1, 128).await;
    assert_eq!((claimed.ids(), claimed.more), (ids[..2].to_vec(), false));
    assert_eq!(claimed.next_due, Some(ms(100)));
    assert_eq!(bench.ready_list().await.len(), 7);
    assert_eq!(bench.claim(150, &worker, 2, 128).await.ids(), ids[2..3]);
    bench.at(150).set_limit(&bench.queue, &Gate::Queue, None).await.unwrap();
    assert_eq!(bench.claim(150, &worker, 3, 128).await.ids(), ids[3..]);
    bench.assert_no_limits_left().await;
}

/// A task that is due much later says nothing about those that are ready.
async fn a_limit_of_the_queue_opens_before_a_task_that_is_due_later(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let tasks = jobs(3);
    let ids = ids_of(&tasks);
    bench.submit(0, &tasks).await;
    bench.add(0, job().due(Due::In(ms(3_600_000)))).await;
    let limit = Limit::new().rate(Rate::per_second(10)).burst(2);
    bench.at(0).set_limit(&bench.queue, &Gate::Queue, Some(&limit)).await.unwrap();
    let claimed = bench.claim(0, &worker, 1, 128).await;
    assert_eq!((claimed.ids(), claimed.next_due), (ids[..2].to_vec(), Some(ms(100))));
    assert_eq!(bench.claim(100, &worker, 2, 128).await.ids(), ids[2..]);
    bench.assert_sound().await;
}

async fn what_is_set_at_run_time_wins_until_it_is_removed(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let ids = ids_of(&bench.add_limited(0, 6, &[one_in_10_s("r")]).await);
    assert_eq!(bench.claim(0, &worker, 1, 128).await.ids(), ids[..1]);
    let faster = Limit::new().rate(Rate::per_second(1)).burst(2);
    bench.answer_wakeup().await;
    bench.at(1).set_limit(&bench.queue, &named("r"), Some(&faster)).await.unwrap();
    assert!(bench.answer_wakeup().await, "a worker is woken at once");
    // The tokens of a gate are never further away than its whole burst.
    assert_eq!(bench.claim(1, &worker, 2, 128).await.ids(), []);
    assert_eq!(bench.claim(1_001, &worker, 3, 128).await.ids(), ids[1..2]);
    bench.at(1_001).set_limit(&bench.queue, &named("r"), None).await.unwrap();
    assert_eq!(bench.claim(2_000, &worker, 4, 128).await.ids(), []);
    let seen = bench.now().limit(&bench.queue, &named("r")).await.unwrap().unwrap();
    let brought = one_in_10_s("r").limit.burst(1);
    assert_eq!((seen.is_set, seen.limit, seen.waiting), (false, brought, 4));
    bench.assert_sound().await;
}

async fn tasks_behind_shut_gates_start_at_once(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    for gate in 0..40 {
        bench.add_limited(0, 10, &[one_in_10_s(&gate.to_string())]).await;
    }
    let tasks = jobs(60);
    bench.submit(0, &tasks).await;
    let (mut grants, mut seq) = (Vec::new(), 0);
    while grants.len() < 100 {
        seq += 1;
        assert!(seq < 9, "each claim passes 128 tasks");
        grants.extend(bench.claim(1, &worker, seq, 128).await.ids());
    }
    assert!(ids_of(&tasks).iter().all(|id| grants.contains(id)));
    let before = bench.dump().await;
    assert_eq!(bench.claim(2, &worker, 50, 128).await.ids(), []);
    let looked = bench.changes(&before).await;
    assert!(looked.iter().all(|name| name == "meta"), "no task is passed again: {looked:?}");
    bench.assert_sound().await;
}

async fn a_submitted_task_waits_behind_those_that_wait(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    let limits = [one_in_10_s("r")];
    let mut ids = ids_of(&bench.add_limited(0, 2, &limits).await);
    assert_eq!(bench.claim(0, &worker, 1, 128).await.ids(), ids[..1]);
    ids.extend(ids_of(&bench.add_limited(5, 2, &limits).await));
    assert_eq!(bench.ready_list().await, [""; 0], "no claim has to pass them");
    assert_eq!(bench.state(&ids[3]).await, TaskState::Blocked);
    bench.assert_sound().await;
    for (seq, id) in (2..).zip(&ids[1..]) {
        assert_eq!(bench.take((seq - 1) * 10_000, &worker, seq).await.id, *id);
    }
    bench.assert_no_limits_left().await;
}

/// Every window of a rate with `burst` has at most `burst - 1` tasks more than the rate allows.
fn assert_windows(starts: &[u64], interval: u64, burst: u64, what: &str) {
    for (first, from) in starts.iter().enumerate() {
        for (last, to) in starts.iter().enumerate().skip(first) {
            let bound = burst - 1 + (to - from) / interval + 1;
            let started = (last - first + 1) as u64;
            assert!(started <= bound, "{what}: {started} from {from} to {to} ms");
        }
    }
}

async fn no_window_of_twenty_limits_under_one_is_above_its_bound(bench: Bench) {
    let queue_limit = Limit::new().rate(Rate::per_second(500)).burst(5);
    bench.at(0).set_limit(&bench.queue, &Gate::Queue, Some(&queue_limit)).await.unwrap();
    let mut workers = Vec::new();
    for name in 0..16 {
        workers.push((bench.worker(0, &format!("w{name}")).await, 0));
    }
    let mut of = std::collections::HashMap::new();
    for gate in 0..20 {
        let limits = [a_second(&gate.to_string(), 100, 1), at_most("in all", 64)];
        let tasks = bench.add_limited(0, 60, &limits).await;
        of.extend(ids_of(&tasks).into_iter().map(|id| (id, gate)));
    }
    let mut starts = vec![Vec::new(); 20];
    let mut all = Vec::new();
    let (mut at, mut turn) = (0, 0_usize);
    while at < 1_000 {
        at += [0, 1, 1, 3, 7][turn % 5];
        turn += 1;
        let chosen = turn * 7 % 16;
        let (worker, seq): &mut (WorkerId, u64) = &mut workers[chosen];
        *seq += 1;
        let claimed = bench.claim(at, worker, *seq, 1 + turn % 9).await;
        for id in claimed.ids() {
            starts[of[&id]].push(at);
            all.push(at);
        }
        let reports: Vec<_> = claimed.leases(worker).iter().map(done).collect();
        if !reports.is_empty() {
            bench.complete(at, &reports).await;
        }
    }
    assert_windows(&all, 2, 5, "the queue");
    for (gate, starts) in starts.iter().enumerate() {
        assert_windows(starts, 10, 1, &format!("gate {gate}"));
        assert!(starts.len() >= 15, "gate {gate} has its share: {}", starts.len());
    }
    assert!(all.len() > 400, "the queue's limit is used: {}", all.len());
    let left = bench.names().await;
    assert!(!left.iter().any(|name| name == "permits" || name.starts_with("busy:")), "{left:?}");
    bench.assert_sound().await;
}

on_both![
    a_gate_that_has_all_its_tokens_again_is_forgotten,
    tasks_start_at_their_rate_after_a_burst_and_the_others_wait_in_order,
    a_repeated_claim_takes_no_second_token,
    a_task_takes_the_tokens_of_all_its_limits_or_none,
    each_attempt_takes_a_token,
    a_task_that_is_given_back_before_it_begins_uses_no_token,
    a_task_of_a_limited_queue_that_is_given_back_leaves_its_token,
    a_task_that_is_cancelled_because_nobody_started_it_leaves_its_token,
    a_clock_that_is_set_back_keeps_no_gate_shut,
    a_limit_of_the_queue_leaves_its_tasks_in_the_ready_list,
    a_limit_of_the_queue_opens_before_a_task_that_is_due_later,
    what_is_set_at_run_time_wins_until_it_is_removed,
    tasks_behind_shut_gates_start_at_once,
    a_submitted_task_waits_behind_those_that_wait,
    no_window_of_twenty_limits_under_one_is_above_its_bound,
];
