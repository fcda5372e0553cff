//! Calls of one task in a queue with limits, as of a worker with one slot. They take and give back
//! the same as other calls.

use optimus_core::{Submission, TaskLimit, TaskState};

use crate::{
    acts::{Grants, done, ids_of, ms},
    bench::Bench,
    jobs::{job, ready_at},
    limits::{a_second, at_most, named},
};

/// With so many entries, the keys with permits become tables.
const TABLE_FROM: usize = 16;

async fn tasks_that_are_claimed_one_by_one_start_at_their_rate(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let ids = ids_of(&bench.add_limited(0, 6, &[a_second("r", 10, 3)]).await);
    for (seq, id) in (1..).zip(&ids[..3]) {
        assert_eq!(bench.take(0, &worker, seq).await.id, *id);
    }
    let spent = bench.score("spent", "limit:r").await;
    let claimed = bench.claim(0, &worker, 4, 1).await;
    assert_eq!((claimed.ids(), claimed.next_due), (vec![], Some(ms(100))));
    assert_eq!(bench.score("spent", "limit:r").await, spent, "a refusal takes no token");
    assert_eq!(bench.claim(100, &worker, 5, 1).await.ids(), ids[3..4]);
    bench.assert_sound().await;
}

/// Nothing waits at the gate when it opens, so the claim takes the short way.
async fn a_gate_opens_at_its_time_and_not_a_ms_earlier(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    for (seq, (name, opens, starts)) in (1..).step_by(2).zip([("a", 99, 0), ("b", 100, 1)]) {
        let limit = [a_second(name, 10, 1)];
        bench.add_limited(0, 1, &limit).await;
        bench.take(0, &worker, seq).await;
        bench.add_limited(0, 1, &limit).await;
        let claimed = bench.claim(opens, &worker, seq + 1, 1).await;
        assert_eq!(claimed.ids().len(), starts, "after {opens} ms");
        bench.restore(&crate::dump::Dump::new()).await;
        bench.worker(0, "w").await;
    }
}

async fn a_task_takes_as_many_tokens_as_it_costs(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let costly = |cost| -> Submission {
        ready_at(0, job().cost(cost)).limited_by(vec![a_second("r", 1, 4)])
    };
    for (seq, (cost, spent_s)) in (1..).zip([(1, 1), (2, 3), (9, 4)]) {
        bench.submit(0, &[costly(cost)]).await;
        let claimed = bench.claim(0, &worker, seq, 1).await;
        let is_started = claimed.ids().len() == 1;
        assert_eq!(is_started, cost < 9, "a cost of {cost}");
        if is_started {
            let full_at = bench.score("spent", "limit:r").await.expect("tokens are spent");
            assert_eq!(full_at, (crate::bench::START + spent_s * 1000) * 1000);
        }
    }
    bench.assert_sound().await;
}

async fn a_clock_that_is_set_back_keeps_no_gate_shut_for_a_claim_of_one(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    let limit = [a_second("r", 10, 2)];
    bench.add_limited(0, 1, &limit).await;
    bench.take(400_000, &worker, 1).await;
    bench.add_limited(0, 2, &limit).await;
    let ids = bench.claim(0, &worker, 2, 1).await.ids();
    assert_eq!(ids.len(), 0, "as if all tokens were spent just now");
    assert_eq!(bench.claim(100, &worker, 3, 1).await.ids().len(), 1);
}

async fn one_by_one_as_many_tasks_are_working_as_a_limit_allows(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let ids = ids_of(&bench.add_limited(0, 4, &[at_most("m", 2)]).await);
    let mut held = Vec::new();
    for seq in 1..=2 {
        held.push(bench.take(0, &worker, seq).await);
        assert_eq!(
            bench.field("permits", &held[0].id.stored()).await.as_deref(),
            Some("limit:m\n")
        );
    }
    assert_eq!(bench.field("waiters", "#permits").await.as_deref(), Some("1"));
    bench.complete(1, &[done(&held.remove(0))]).await;
    let seen = bench.now().limit(&bench.queue, &named("m")).await.unwrap().unwrap();
    assert_eq!((seen.working, seen.waiting), (1, 0), "nobody waits, so it gives its permit back");
    held.push(bench.take(1, &worker, 3).await);
    assert_eq!(bench.claim(1, &worker, 4, 1).await.ids(), []);
    assert_eq!(bench.state(&ids[3]).await, TaskState::Blocked);
    bench.assert_sound().await;
    bench.complete(2, &[done(&held.remove(0))]).await;
    assert_eq!(bench.take(2, &worker, 5).await.id, ids[3], "the end of another opens the gate");
    bench.complete(3, &[done(&held.remove(0))]).await;
    assert_eq!(bench.claim(3, &worker, 6, 1).await.ids(), []);
}

/// The short way handles neither several gates nor escaped names.
async fn a_claim_of_one_passes_each_gate_of_its_task(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let two = [at_most("a", 9), at_most("b", 1)];
    let lane = |name: &str| TaskLimit {
        gate: optimus_core::Gate::Lane(name.into()),
        limit: at_most("", 1).limit,
    };
    for (seq, limits) in (1..).step_by(2).zip([&two[..], &[lane("\"x\\\"")], &[lane("é]")]]) {
        let ids = ids_of(&bench.add_limited(0, 2, limits).await);
        assert_eq!(bench.take(0, &worker, seq).await.id, ids[0], "{limits:?}");
        assert_eq!(bench.claim(0, &worker, seq + 1, 1).await.ids(), [], "{limits:?}");
        let permits = bench.field("permits", &ids[0].stored()).await.expect("it has permits");
        let expected: String = limits.iter().map(|one| one.gate.stored() + "\n").collect();
        assert_eq!(permits, expected);
    }
    bench.assert_sound().await;
}

async fn a_task_without_limits_needs_no_permit_in_a_queue_with_limits(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.add_limited(0, 1, &[at_most("m", 1)]).await;
    let limited = bench.take(0, &worker, 1).await;
    // Its arguments look like the header of a task with a limit.
    let text = r#"{"v":3,"g":["0:0:1:limit:m"]}"#;
    bench.submit(0, &[ready_at(0, crate::jobs::job_of(text))]).await;
    let free = bench.take(0, &worker, 2).await;
    assert_eq!(bench.field("permits", &free.id.stored()).await, None);
    bench.complete(1, &[done(&free)]).await;
    bench.assert_sound().await;
    bench.complete(2, &[done(&limited)]).await;
    bench.assert_no_limits_left().await;
}

async fn many_permits_that_are_taken_one_by_one_are_all_given_back(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    bench.add_limited(0, 2 * TABLE_FROM, &[at_most("m", 1_000)]).await;
    let mut held = Vec::new();
    for seq in (1..).take(2 * TABLE_FROM) {
        held.push(bench.take(0, &worker, seq).await);
    }
    bench.assert_sound().await;
    for lease in &held {
        bench.complete(1, &[done(lease)]).await;
    }
    bench.assert_no_limits_left().await;
}

async fn a_submitted_task_joins_those_that_wait_for_its_limit(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let limit = [at_most("m", 1)];
    bench.add_limited(0, 2, &limit).await;
    bench.take(0, &worker, 1).await;
    assert_eq!(bench.claim(0, &worker, 2, 1).await.ids(), []);
    let later = ids_of(&bench.add_limited(1, 1, &limit).await);
    assert_eq!(bench.state(&later[0]).await, TaskState::Blocked);
    let other = ids_of(&bench.add_limited(1, 1, &[at_most("n", 1)]).await);
    assert_eq!(bench.state(&other[0]).await, TaskState::Ready);
    bench.assert_sound().await;
}

on_both![
    tasks_that_are_claimed_one_by_one_start_at_their_rate,
    a_gate_opens_at_its_time_and_not_a_ms_earlier,
    a_task_takes_as_many_tokens_as_it_costs,
    a_clock_that_is_set_back_keeps_no_gate_shut_for_a_claim_of_one,
    one_by_one_as_many_tasks_are_working_as_a_limit_allows,
    a_claim_of_one_passes_each_gate_of_its_task,
    a_task_without_limits_needs_no_permit_in_a_queue_with_limits,
    many_permits_that_are_taken_one_by_one_are_all_given_back,
    a_submitted_task_joins_those_that_wait_for_its_limit,
];
