//! A task that costs more than a gate has: the gate keeps its tokens for the oldest that waits.

use optimus_core::{
    Gate, Limit, Rate, Submission, TaskState, WorkerId,
    broker::{Cancelled, Deleted},
};

use crate::{
    acts::{Grants, ids_of, ms},
    bench::Bench,
    jobs::{job, ready_at},
    limits::{a_second, at_most, one_in_10_s},
};

/// Tasks of one rate, 10/s with a burst of 5. Those of each kind wait apart from the others.
fn costing(at: u64, cost: u32, kind: &str) -> Submission {
    let limits = vec![a_second("r", 10, 5), at_most(kind, 99)];
    ready_at(at, job().cost(cost)).limited_by(limits)
}

fn cheap(at: u64, count: usize) -> Vec<Submission> {
    let mut tasks: Vec<Submission> = (0..count).map(|_| costing(at, 1, "cheap")).collect();
    tasks.sort_by_key(|task| task.id().stored());
    tasks
}

/// Returns a worker whose first claim has used all tokens.
async fn without_tokens(bench: &Bench) -> WorkerId {
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    bench.submit(0, &cheap(0, 5)).await;
    assert_eq!(bench.claim(0, &worker, 1, 128).await.ids().len(), 5);
    worker
}

async fn a_task_that_costs_much_starts_before_younger_ones_that_cost_little(bench: Bench) {
    let worker = without_tokens(&bench).await;
    let dear = costing(1, 5, "dear");
    bench.submit(1, std::slice::from_ref(&dear)).await;
    let younger = cheap(2, 4);
    bench.submit(2, &younger).await;
    let mut started = Vec::new();
    for (seq, at) in (2..).zip((3..=903).step_by(50)) {
        // A task of another kind comes before each token.
        bench.submit(at, &[costing(at, 1, &format!("kind {at}"))]).await;
        let claimed = bench.claim(at, &worker, seq, 128).await;
        started.extend(claimed.ids().into_iter().map(|id| (at, id)));
        bench.assert_sound().await;
    }
    assert_eq!(started[0], (503, dear.id().clone()));
    let then: Vec<_> = started[1..].iter().map(|(_, id)| id.clone()).collect();
    assert_eq!(then, ids_of(&younger), "one for each token, in their order");
}

async fn a_claim_of_one_task_keeps_the_tokens_too(bench: Bench) {
    let worker = without_tokens(&bench).await;
    let dear = costing(1, 5, "dear");
    bench.submit(1, std::slice::from_ref(&dear)).await;
    bench.submit(2, &cheap(2, 4)).await;
    for (seq, at) in (2..).zip((100..500).step_by(50)) {
        let claimed = bench.claim(at, &worker, seq, 1).await;
        assert_eq!(claimed.ids(), [], "at {at} ms");
        assert!(!claimed.more, "no task can start now");
    }
    assert_eq!(bench.take(500, &worker, 50).await.id, *dear.id());
    bench.assert_sound().await;
}

async fn a_task_of_a_higher_priority_uses_tokens_that_are_kept(bench: Bench) {
    let worker = without_tokens(&bench).await;
    bench.submit(1, &[costing(1, 5, "dear")]).await;
    assert_eq!(bench.claim(1, &worker, 2, 128).await.ids(), []);
    let limits = vec![a_second("r", 10, 5), at_most("urgent", 99)];
    let urgent = ready_at(300, job().priority(1)).limited_by(limits);
    bench.submit(300, std::slice::from_ref(&urgent)).await;
    assert_eq!(bench.claim(300, &worker, 3, 128).await.ids(), [urgent.id().clone()]);
    bench.assert_sound().await;
}

async fn tokens_are_not_kept_for_a_task_that_is_cancelled(bench: Bench) {
    no_tokens_are_kept_for_a_task_that_is_gone(bench, false).await;
}

async fn tokens_are_not_kept_for_a_task_that_is_deleted(bench: Bench) {
    no_tokens_are_kept_for_a_task_that_is_gone(bench, true).await;
}

async fn no_tokens_are_kept_for_a_task_that_is_gone(bench: Bench, is_deleted: bool) {
    let worker = without_tokens(&bench).await;
    let (dear, younger) = (costing(1, 5, "dear"), cheap(2, 4));
    bench.submit(1, std::slice::from_ref(&dear)).await;
    bench.submit(2, &younger).await;
    assert_eq!(bench.claim(300, &worker, 2, 128).await.ids(), []);
    bench.answer_wakeup().await;
    let broker = bench.at(301);
    if is_deleted {
        let deleted = broker.delete_all(&bench.queue, &[dear.id()]).await.unwrap();
        assert_eq!(deleted, [Deleted::Done]);
    } else {
        assert_eq!(broker.cancel(dear.id()).await.unwrap(), Cancelled::Done);
    }
    assert!(bench.answer_wakeup().await, "a worker learns that it may claim");
    bench.assert_sound().await;
    let claimed = bench.claim(302, &worker, 3, 128).await;
    assert_eq!(claimed.ids(), ids_of(&younger)[..3]);
    assert_eq!(claimed.next_due, Some(ms(98)), "the next token");
    bench.assert_sound().await;
}

/// A claim of one task looks at one of two gates that are open. Tasks of the one use tokens of the
/// other.
async fn an_open_gate_that_a_claim_does_not_look_at_keeps_its_tokens_too(bench: Bench) {
    let worker = without_tokens(&bench).await;
    let dear = costing(1, 5, "dear");
    bench.submit(1, std::slice::from_ref(&dear)).await;
    let (both, mut seq) = ([a_second("a", 10, 1), a_second("r", 10, 5)], 1);
    for at in (1..=901).step_by(20) {
        bench.add_limited(at, 2, &both).await;
        for _ in 0..9 {
            seq += 1;
            let claimed = bench.claim(at, &worker, seq, 1).await;
            if claimed.ids().contains(dear.id()) {
                return bench.assert_sound().await;
            }
            if claimed.ids().is_empty() && !claimed.more {
                break;
            }
        }
    }
    panic!("the task has not started");
}

/// As after a deploy that raises the rate of a limit. An older task that has brought the lower rate
/// delays the others by a whole burst at most.
async fn a_task_that_has_brought_a_slower_rate_does_not_make_the_others_as_slow(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    let old = ids_of(&bench.add_limited(0, 2, &[one_in_10_s("r"), at_most("old", 9)]).await);
    assert_eq!(bench.claim(0, &worker, 1, 128).await.ids(), old[..1]);
    let mut started = 0;
    for (seq, at) in (2..).zip((100..=3_000).step_by(100)) {
        bench.submit(at, &[costing(at, 1, "new")]).await;
        started += bench.claim(at, &worker, seq, 128).await.ids().len();
        bench.assert_sound().await;
    }
    assert!(started >= 25, "{started} of 30 started");
}

/// Its second class of a gate is one that a claim of one task does not read at first.
async fn tokens_are_kept_for_the_second_class_of_a_gate_whose_first_waits_for_a_permit(
    bench: Bench,
) {
    let worker = without_tokens(&bench).await;
    let first = bench.add_limited(1, 1, &[a_second("r", 10, 5), at_most("x", 1)]).await;
    bench.submit(2, &[costing(2, 5, "dear")]).await;
    assert_eq!(bench.claim(2, &worker, 2, 128).await.ids(), []);
    let holds = ids_of(&bench.add_limited(5, 1, &[at_most("x", 1)]).await);
    assert_eq!(bench.claim(5, &worker, 3, 128).await.ids(), holds);
    bench.submit(90, &[costing(90, 1, "new")]).await;
    assert_eq!(bench.claim(101, &worker, 4, 1).await.ids(), []);
    assert_eq!(bench.state(first[0].id()).await, TaskState::Blocked);
    bench.assert_sound().await;
}

/// The claim does not read all tasks of the first class.
async fn tokens_are_not_kept_from_older_tasks(bench: Bench) {
    let worker = without_tokens(&bench).await;
    let older = cheap(1, 2);
    bench.submit(1, &older).await;
    bench.submit(2, &[costing(2, 5, "dear")]).await;
    assert_eq!(bench.claim(2, &worker, 2, 128).await.ids(), []);
    let claimed = bench.claim(500, &worker, 3, 2).await;
    assert_eq!(claimed.ids(), ids_of(&older)[..1]);
    assert!(claimed.more, "the second one may start");
    assert_eq!(bench.claim(500, &worker, 4, 2).await.ids(), ids_of(&older)[1..]);
    bench.assert_sound().await;
}

/// With the queue's limit, only one gate after the other lets a task through.
async fn the_rate_of_a_queue_lets_each_limit_have_its_turn(bench: Bench) {
    let worker = bench.worker_for(0, "w", ms(600_000)).await;
    let dear = |at| ready_at(at, job().cost(5)).limited_by(vec![a_second("z", 10, 5)]);
    let (first, last) = (dear(0), dear(1));
    bench.submit(1, &[first, last.clone()]).await;
    bench.add_limited(2, 120, &[a_second("k", 100, 1)]).await;
    assert_eq!(bench.claim(3, &worker, 1, 128).await.ids().len(), 2);
    let limit = Limit::new().rate(Rate::per_second(10)).burst(5);
    bench.at(4).set_limit(&bench.queue, &Gate::Queue, Some(&limit)).await.unwrap();
    let mut seq = 1;
    for at in (100..5_000).step_by(50) {
        for _ in 0..8 {
            seq += 1;
            let claimed = bench.claim(at, &worker, seq, 2).await;
            if claimed.ids().contains(last.id()) {
                return bench.assert_sound().await;
            }
            if claimed.ids().is_empty() && !claimed.more {
                break;
            }
        }
    }
    panic!("the task has not started in 5 s");
}

on_both![
    tokens_are_not_kept_from_older_tasks,
    tokens_are_kept_for_the_second_class_of_a_gate_whose_first_waits_for_a_permit,
    the_rate_of_a_queue_lets_each_limit_have_its_turn,
    an_open_gate_that_a_claim_does_not_look_at_keeps_its_tokens_too,
    a_task_that_has_brought_a_slower_rate_does_not_make_the_others_as_slow,
    a_task_that_costs_much_starts_before_younger_ones_that_cost_little,
    a_claim_of_one_task_keeps_the_tokens_too,
    a_task_of_a_higher_priority_uses_tokens_that_are_kept,
    tokens_are_not_kept_for_a_task_that_is_cancelled,
    tokens_are_not_kept_for_a_task_that_is_deleted,
];
