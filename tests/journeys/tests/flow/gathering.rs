//! Gathered calls: how they run together, and how each of them ends.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::common::{
    Bench, Double,
    digests::{
        BAD, HOUR, LoggedWorker, SOON, Three, Way, become_all, brief, done, event, hundred, short,
        submit, three, tries,
    },
    view,
};
use optimus_core::{
    BoxError, CancelAnswer, Context, Done, Due, Layer, Next, Obstacle, Reason, Task, TaskHandle,
    TaskState, group,
};
use optimus_testkit::eventually;

/// Three calls of one user, in these ways.
async fn run_of(bench: &Bench, user: &str, ways: [Way; 3]) -> Vec<TaskHandle<Vec<u64>>> {
    submit(bench, (1..).zip(ways).map(|(number, way)| three(user, number, way))).await
}

on_both! {
    async fn calls_of_one_key_run_together_once_enough_of_them_wait(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let ann = run_of(&bench, "ann", [Way::Plain; 3]).await;
        let bob = submit(&bench, [three("bob", 7, Way::Plain), three("bob", 8, Way::Plain)]).await;
        for handle in &ann {
            assert_eq!(done(handle).await, [1, 2, 3]);
        }
        become_all(&bob, TaskState::Blocked).await;
        assert_eq!(logged.log.lines(), ["ann#1: [1, 2, 3]"]);
        logged.worker.stop().await;
    }

    async fn a_queue_of_gathered_calls_is_explained_by_the_run_that_is_due_first(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let ann = submit(&bench, [three("ann", 1, Way::Plain), three("ann", 2, Way::Plain)]).await;
        let bob = submit(&bench, [three("bob", 3, Way::Plain)]).await;
        become_all(&ann, TaskState::Blocked).await;
        become_all(&bob, TaskState::Blocked).await;
        let why = bench.client.inspector().explain_queue("default").await.unwrap();
        let [Obstacle::NothingReady { blocked: 3 },
            Obstacle::NextRun { task, by, waiting: 2, leader: None, others: 1, .. }] =
            &why.obstacles[..]
        else {
            panic!("{why}");
        };
        assert_eq!((&**task, &**by, why.not_before), ("three", "ann", None));
        let text = why.to_string();
        let expected = "2. 2 calls of task three with the key \"ann\" wait for their run, which is";
        assert!(text.contains(expected) && text.ends_with("others wait for 1 later run"), "{text}");
        assert!(!text.contains("delayed task or retry"), "{text}");
        logged.worker.stop().await;
    }

    async fn calls_run_together_some_time_after_the_first_of_them(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let handles = bench.client.submit_all((0..20).map(|n| short("ann", n))).await.unwrap();
        let all: Vec<u64> = (0..20).collect();
        for handle in &handles {
            assert_eq!(done(handle).await, all);
        }
        assert_eq!(logged.log.lines().len(), 1);
        logged.worker.stop().await;
    }

    async fn a_call_that_comes_late_joins_the_next_run(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let first = run_of(&bench, "ann", [Way::Waits, Way::Plain, Way::Plain]).await;
        logged.gate.began.wait_for(1).await;
        let next = run_of(&bench, "ann", [Way::Plain; 3]).await;
        assert_eq!(done(&next[0]).await, [1, 2, 3]);
        become_all(&first, TaskState::Working).await;
        logged.gate.open.hit();
        assert_eq!(done(&first[2]).await, [1, 2, 3]);
        assert_eq!(logged.log.lines().len(), 2);
        logged.worker.stop().await;
    }

    async fn a_thousand_calls_of_ten_keys_run_once_each_in_few_runs(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let calls = (0..1_000).map(|n| hundred(&format!("user-{}", n % 10), n));
        let handles = bench.client.submit_all(calls).await.unwrap();
        for handle in &handles {
            drop(done(handle).await);
        }
        let ran = logged.ran();
        assert_eq!(ran.len(), 10);
        for (at, numbers) in ran.values().enumerate() {
            let mut numbers = numbers.clone();
            numbers.sort_unstable();
            assert!(numbers.iter().map(|n| n % 10).eq([at as u64; 100]), "{numbers:?}");
            numbers.dedup();
            assert_eq!(numbers.len(), 100);
        }
        assert!(logged.log.lines().len() <= 20, "{}", logged.log.lines().len());
        logged.worker.stop().await;
    }

    async fn ten_thousand_calls_run_next_to_plain_tasks(bench: Bench) {
        let logged = LoggedWorker::with(&bench, |builder| builder.concurrency(8));
        let calls = (0..10_000).map(|n| hundred(&format!("user-{}", n % 7), n));
        let gathered = bench.client.submit_all(calls).await.unwrap();
        let plain = (0..500).map(|number| Double { number }.call());
        let plain = bench.client.submit_all(plain).await.unwrap();
        for handle in &plain {
            handle.result_within(SOON).await.unwrap();
        }
        for handle in &gathered {
            drop(done(handle).await);
        }
        let mut ran: Vec<u64> = logged.ran().into_values().flatten().collect();
        ran.sort_unstable();
        assert!(ran.into_iter().eq(0..10_000));
        logged.worker.stop().await;
    }

    async fn a_run_takes_one_slot_however_many_calls_it_has(bench: Bench) {
        let logged = LoggedWorker::with(&bench, |builder| builder.concurrency(2));
        let handles = run_of(&bench, "ann", [Way::Waits, Way::Plain, Way::Plain]).await;
        logged.gate.began.wait_for(1).await;
        become_all(&handles, TaskState::Working).await;
        let plain = bench.client.submit(Double { number: 4 }.call()).await.unwrap();
        assert_eq!(plain.result_within(SOON).await.unwrap(), 8);
        logged.gate.open.hit();
        assert_eq!(done(&handles[0]).await, [1, 2, 3]);
        logged.worker.stop().await;
    }

    async fn a_run_that_fails_is_retried_with_the_same_calls(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let handles = run_of(&bench, "ann", [Way::Plain, Way::Fails, Way::Plain]).await;
        for handle in &handles {
            assert_eq!(done(handle).await, [1, 2, 3]);
        }
        assert_eq!(logged.log.lines(), ["ann#1: [1, 2, 3]", "ann#2: [1, 2, 3]"]);
        logged.worker.stop().await;
    }

    async fn a_run_that_panics_is_retried_until_each_call_is_dead(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let ways = [Way::Plain, Way::Panics, Way::Plain];
        let calls = ways.map(|way| three("ann", 1, way).max_retry(1));
        let handles = submit(&bench, calls).await;
        become_all(&handles, TaskState::Dead).await;
        for handle in &handles {
            let task = view(&bench, handle.id()).await;
            let errors: Vec<_> = task.errors.iter().map(|e| (e.reason, e.attempt)).collect();
            assert_eq!(errors, [(Reason::Panicked, 1), (Reason::Panicked, 2)]);
        }
        assert_eq!(logged.log.lines().len(), 2);
        logged.worker.stop().await;
    }

    async fn each_call_has_its_own_retries(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let retries = [0_u32, 5, 5];
        let calls = retries.map(|max| three("ann", max.into(), Way::Fails).max_retry(max));
        let handles = submit(&bench, calls).await;
        become_all(&handles[..1], TaskState::Dead).await;
        let late = submit(&bench, [three("ann", 9, Way::Plain)]).await;
        for handle in &handles[1..] {
            assert_eq!(done(handle).await, [5, 5], "no new call joins those that failed");
        }
        become_all(&late, TaskState::Blocked).await;
        assert_eq!(tries(&bench, handles[0].id()).await, (1, 0));
        logged.worker.stop().await;
    }

    async fn a_dead_call_that_is_requeued_is_gathered_again(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let calls = [1, 2, 3].map(|number| three("ann", number, Way::Dies).max_retry(0));
        let handles = submit(&bench, calls).await;
        become_all(&handles, TaskState::Dead).await;
        logged.gate.open.hit();
        bench.client.requeue(handles[1].id()).await.unwrap();
        become_all(&handles[1..2], TaskState::Blocked).await;
        let more = submit(&bench, [4, 5].map(|number| three("ann", number, Way::Plain))).await;
        assert_eq!(done(&more[0]).await, [2, 4, 5]);
        become_all(&handles[1..2], TaskState::Success).await;
        logged.worker.stop().await;
    }

    async fn a_call_that_can_not_be_decoded_ends_alone(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let calls = [1, BAD, 3].map(|number| three("ann", number, Way::Plain));
        let handles = submit(&bench, calls).await;
        assert_eq!(done(&handles[0]).await, [1, 3]);
        assert_eq!(done(&handles[2]).await, [1, 3]);
        crate::common::died_of(&handles[1], Reason::Undecodable).await;
        let calls = [BAD, 2, 3].map(|number| three("bob", number, Way::Plain));
        let handles = submit(&bench, calls).await;
        crate::common::died_of(&handles[0], Reason::Undecodable).await;
        assert_eq!(done(&handles[1]).await, [2, 3], "the others do not wait for their own time");
        logged.worker.stop().await;
    }

    async fn the_calls_after_a_cancelled_one_run_without_it(bench: Bench) {
        let handles = submit(&bench, [1, 2].map(|number| three("ann", number, Way::Plain))).await;
        assert_eq!(handles[0].cancel().await.unwrap(), CancelAnswer::Cancelled);
        let more = submit(&bench, [3, 4].map(|number| three("ann", number, Way::Plain))).await;
        let logged = LoggedWorker::of(&bench);
        assert_eq!(done(&handles[1]).await, [2, 3, 4]);
        become_all(&more, TaskState::Success).await;
        become_all(&handles[..1], TaskState::Cancelled).await;
        logged.worker.stop().await;
    }

    async fn a_call_that_is_cancelled_among_others_lets_the_run_continue(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let handles = run_of(&bench, "ann", [Way::Waits, Way::Plain, Way::Plain]).await;
        logged.gate.began.wait_for(1).await;
        for handle in &handles[..2] {
            assert_eq!(handle.cancel().await.unwrap(), CancelAnswer::AskedToStop);
        }
        // A worker that has received a later cancel, of another run, has received both.
        let other = run_of(&bench, "bob", [Way::Waits; 3]).await;
        logged.gate.began.wait_for(2).await;
        for handle in &other {
            handle.cancel().await.unwrap();
        }
        become_all(&other, TaskState::Cancelled).await;
        logged.gate.open.hit();
        for handle in &handles {
            assert_eq!(done(handle).await, [1, 2, 3], "a run that succeeds has done its calls");
        }
        logged.worker.stop().await;
    }

    async fn a_cancelled_call_of_a_run_that_fails_is_not_retried(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let handles = run_of(&bench, "ann", [Way::Waits, Way::Fails, Way::Plain]).await;
        logged.gate.began.wait_for(1).await;
        assert_eq!(handles[1].cancel().await.unwrap(), CancelAnswer::AskedToStop);
        logged.gate.open.hit();
        become_all(&handles[1..2], TaskState::Cancelled).await;
        assert_eq!(done(&handles[0]).await, [1, 3]);
        logged.worker.stop().await;
    }

    async fn a_run_that_snoozes_runs_again_with_the_same_calls(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let handles = run_of(&bench, "ann", [Way::Plain, Way::Snoozes, Way::Plain]).await;
        for handle in &handles {
            assert_eq!(done(handle).await, [1, 2, 3]);
            assert_eq!(tries(&bench, handle.id()).await, (0, 0));
        }
        logged.worker.stop().await;
    }

    async fn a_run_that_takes_too_long_ends_all_its_calls(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let soon = Duration::from_millis(300);
        let calls = [Way::Hangs, Way::Plain, Way::Plain]
            .map(|way| three("ann", 1, way).timeout(soon).max_retry(0));
        for handle in &submit(&bench, calls).await {
            crate::common::died_of(handle, Reason::TimedOut).await;
        }
        logged.worker.stop().await;
    }

    async fn calls_whose_time_passes_while_they_run_do_not_expire(bench: Bench) {
        let (logged, begun) = (LoggedWorker::of(&bench), Instant::now());
        let time = Duration::from_millis(2_500);
        let ways = [Way::Waits, Way::Fails, Way::Plain];
        let calls = (1..).zip(ways).map(|(number, way)| brief(number, way).expires_in(time));
        let handles = submit(&bench, calls).await;
        logged.gate.began.wait_for(1).await;
        eventually("their time has passed", SOON, async || begun.elapsed() > time).await;
        logged.gate.open.hit();
        for handle in &handles {
            assert_eq!(done(handle).await, [1, 2, 3]);
        }
        assert_eq!(logged.log.lines(), ["ann#1: [1, 2, 3]", "ann#2: [1, 2, 3]"]);
        logged.worker.stop().await;
    }

    async fn a_worker_that_ends_gives_the_calls_of_a_run_back(bench: Bench) {
        let logged = LoggedWorker::with(&bench, |builder| builder.shutdown_grace(Duration::ZERO));
        let handles = run_of(&bench, "ann", [Way::Waits, Way::Plain, Way::Plain]).await;
        logged.gate.began.wait_for(1).await;
        logged.worker.stop().await;
        let next = LoggedWorker::of(&bench);
        next.gate.open.hit();
        for handle in &handles {
            assert_eq!(done(handle).await, [1, 2, 3]);
        }
        assert_eq!(next.log.lines(), ["ann#1: [1, 2, 3]"], "the attempt does not count");
        next.worker.stop().await;
    }

    async fn a_call_with_a_delay_joins_its_key_when_it_is_due(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let late = three("ann", 1, Way::Plain).due(Due::In(Duration::from_millis(300)));
        let handles = submit(&bench, [late, three("ann", 2, Way::Plain)]).await;
        become_all(&handles[1..], TaskState::Blocked).await;
        become_all(&handles[..1], TaskState::Blocked).await;
        drop(submit(&bench, [three("ann", 3, Way::Plain)]).await);
        let mut numbers = done(&handles[0]).await;
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3]);
        logged.worker.stop().await;
    }

    async fn the_results_of_runs_reach_a_group(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let calls = [1, 2, 3].map(|number| three("ann", number, Way::Plain));
        let handle = bench.client.submit_group(group(calls)).await.unwrap();
        let results = handle.results().await.unwrap();
        assert_eq!(results, vec![vec![1, 2, 3]; 3]);
        logged.worker.stop().await;
    }

    async fn calls_with_large_arguments_run_together(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let user = "x".repeat(20_000);
        let calls = [1, 2, 3].map(|number| three(&user, number, Way::Plain).by("x"));
        assert_eq!(done(&submit(&bench, calls).await[2]).await, [1, 2, 3]);
        logged.worker.stop().await;
    }
}

/// Counts the attempts that it wraps.
struct Count(Arc<Mutex<Vec<usize>>>);

impl Layer for Count {
    async fn run(&self, ctx: &Context, next: Next<'_>) -> Result<Done, BoxError> {
        let done = next.run().await;
        self.0.lock().unwrap().push(ctx.calls().len());
        done
    }
}

#[tokio::test]
async fn a_layer_wraps_a_run_once() {
    let bench = Bench::on_memory().await;
    let runs: Arc<Mutex<Vec<usize>>> = Arc::default();
    let layer = Count(runs.clone());
    let logged = LoggedWorker::with(&bench, |builder| builder.layer(layer));
    let handles = run_of(&bench, "ann", [Way::Plain; 3]).await;
    assert_eq!(done(&handles[0]).await, [1, 2, 3]);
    logged.worker.stop().await;
    assert_eq!(*runs.lock().unwrap(), [3]);
}

#[tokio::test]
async fn a_gathered_call_in_a_lane_is_refused_and_so_is_a_key_of_a_task_that_gathers_nothing() {
    let bench = Bench::on_memory().await;
    let problem = bench.client.submit(three("ann", 1, Way::Plain).lane("a")).await.unwrap_err();
    assert!(problem.is_invalid() && problem.to_string().contains("lane"), "{problem}");
    let problem = bench.client.submit(Double { number: 1 }.call().by("a")).await.unwrap_err();
    assert!(problem.is_invalid() && problem.to_string().contains("gather"), "{problem}");
    let brief = three("ann", 1, Way::Plain).expires_in(HOUR);
    let problem = bench.client.submit(brief).await.unwrap_err();
    assert!(problem.to_string().contains("longer expires_in"), "{problem}");
}

#[tokio::test]
async fn a_call_in_place_is_a_run_of_one() {
    let (log, gate) = (crate::common::orders::Log::default(), crate::common::Gate::new());
    let data = optimus_core::Data::new().with(log.clone()).with(gate);
    let call = Three(event("ann", 4, Way::Plain)).call();
    assert_eq!(call.perform_inline_with(data).await.unwrap(), [4]);
    assert_eq!(log.lines(), ["ann#1: [4]"]);
}
