//! Explanations of what stops a whole queue: quiet workers, its limit, a newer release.

use std::{slice, time::Duration};

use crate::common::{Bench, Double, Gate as Opening, Wait};
use optimus_core::{
    Call, Explanation, Gate, LaneFailure, Lease, Limit, Obstacle, ProcessAnswer, ProcessDetails,
    QueueName, Rate, Task, TaskHandle, WorkerId,
    broker::{Failure, FailureOutcome},
};
use optimus_testkit::eventually;

const SOON: Duration = Duration::from_secs(20);

fn double() -> Call<Double> {
    Double { number: 1 }.call()
}

async fn submit<T: Task>(bench: &Bench, call: Call<T>) -> TaskHandle<T::Output> {
    bench.client.submit(call).await.unwrap()
}

async fn of_queue(bench: &Bench) -> Explanation {
    bench.client.inspector().explain_queue("default").await.unwrap()
}

/// Waits until the only process may use so many slots.
async fn uses(bench: &Bench, slots: usize) -> ProcessDetails {
    let read = async || bench.client.inspector().processes(None, 9).await.unwrap().rows;
    let is_so = async || read().await.first().is_some_and(|seen| seen.doing.slots == slots);
    eventually("the process uses so many slots", SOON, is_so).await;
    read().await.remove(0)
}

/// Registers workers that do not run.
async fn register(bench: &Bench, queue: &QueueName, count: u32, description: &str) {
    for number in 0..count {
        let worker = WorkerId::generate("idle", number);
        bench.client.broker().register(queue, &worker, SOON, description).await.unwrap();
    }
}

on_both! {
    async fn a_quiet_worker_is_named_as_what_keeps_its_queue_waiting(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Double>().concurrency(4));
        let id = uses(&bench, 4).await.id;
        let asked = bench.client.process(&id).quiet().await.unwrap();
        assert_eq!(asked, ProcessAnswer::Asked);
        uses(&bench, 0).await;
        let waiting = submit(&bench, double()).await;
        let quiet = Obstacle::FewerSlots { workers: vec![id.clone()], count: 1, of: 1, slots: 0 };
        let why = of_queue(&bench).await;
        assert_eq!(why.obstacles, slice::from_ref(&quiet));
        let text = format!("1. worker {id} is quiet, so it claims nothing; `optimus audit list`");
        assert!(why.to_string().starts_with(&text), "{why}");
        let inspector = bench.client.inspector();
        let why = inspector.explain(waiting.id()).await.unwrap();
        assert_eq!(why.obstacles, slice::from_ref(&quiet));
        let of_worker = inspector.explain_worker("default", &id).await.unwrap();
        assert_eq!(of_worker.obstacles, [quiet]);
        let asked = bench.client.process(&id).resume().await.unwrap();
        assert_eq!(asked, ProcessAnswer::Asked);
        waiting.result_within(SOON).await.unwrap();
        worker.stop().await;
    }

    async fn a_worker_with_fewer_slots_is_named_once_the_rest_are_busy(bench: Bench) {
        let opening = Opening::new();
        let worker = bench.worker().task_type::<Wait>().data(opening.clone()).concurrency(4);
        let worker = bench.start(worker);
        let id = uses(&bench, 4).await.id;
        let asked = bench.client.process(&id).slots(1).await.unwrap();
        assert_eq!(asked, ProcessAnswer::Asked);
        uses(&bench, 1).await;
        assert_eq!(of_queue(&bench).await.obstacles, [Obstacle::NothingReady { blocked: 0 }]);
        submit(&bench, Wait {}.call()).await;
        opening.began.wait_for(1).await;
        submit(&bench, Wait {}.call()).await;
        let fewer = Obstacle::FewerSlots { workers: vec![id], count: 1, of: 1, slots: 1 };
        let busy = Obstacle::Busy { slots: 1, working: 1, elsewhere: 0 };
        assert_eq!(of_queue(&bench).await.obstacles, [fewer, busy]);
        opening.open.hit();
        worker.stop().await;
    }

    async fn a_worker_that_is_busy_with_other_queues_says_so(bench: Bench) {
        let opening = Opening::new();
        let worker = bench.worker().task_type::<Wait>().task_type::<Double>().concurrency(3);
        let worker = bench.start(worker.data(opening.clone()).queues(["default", "other"]));
        let id = uses(&bench, 3).await.id;
        bench.client.submit_all((0..3).map(|_| Wait {}.call().queue("other"))).await.unwrap();
        opening.began.wait_for(3).await;
        let waiting = submit(&bench, double()).await;
        let busy = [Obstacle::Busy { slots: 3, working: 0, elsewhere: 3 }];
        // A process says within seconds that its slots are in use.
        eventually("it is busy", SOON, async || of_queue(&bench).await.obstacles == busy).await;
        let inspector = bench.client.inspector();
        let why = inspector.explain(waiting.id()).await.unwrap();
        let text = "1. all slots are in use: 3 tasks of other queues run in 3 slots";
        assert_eq!((&why.obstacles[..], &*why.to_string()), (&busy[..], text));
        let of_worker = inspector.explain_worker("default", &id).await.unwrap();
        assert_eq!(of_worker.obstacles, busy);
        opening.open.hit();
        waiting.result_within(SOON).await.unwrap();
        worker.stop().await;
    }

    async fn a_task_is_known_if_one_of_many_workers_knows_it(bench: Bench) {
        let waiting = submit(&bench, double()).await;
        let queue = waiting.id().queue();
        register(&bench, queue, 150, "{}").await;
        let unknown = Obstacle::UnknownTask { task: "double".into() };
        let busy = Obstacle::Busy { slots: 0, working: 0, elsewhere: 0 };
        assert_eq!(of_queue(&bench).await.obstacles, [busy, unknown.clone()]);
        let knows = r#"{ "concurrency": 1, "tasks": ["double"] }"#;
        register(&bench, queue, 1, knows).await;
        assert_eq!(of_queue(&bench).await.obstacles, []);
        let why = bench.client.inspector().explain(waiting.id()).await.unwrap();
        assert_eq!(why.obstacles, []);
    }

    async fn what_is_said_of_workers_names_how_many_were_not_read(bench: Bench) {
        let waiting = submit(&bench, double()).await;
        register(&bench, waiting.id().queue(), 1_002, "{}").await;
        let why = bench.client.inspector().explain(waiting.id()).await.unwrap();
        let unknown = Obstacle::UnknownTask { task: "double".into() };
        assert_eq!(why.obstacles, [unknown, Obstacle::MoreWorkers { count: 2 }]);
        assert!(why.to_string().contains("2 more workers of the queue were not read"), "{why}");
        assert_eq!(of_queue(&bench).await.obstacles.last(), why.obstacles.last());
    }

    async fn a_worker_that_is_gone_does_not_run_its_task(bench: Bench) {
        let held = submit(&bench, double()).await;
        let (broker, ghost) = (bench.client.broker(), WorkerId::generate("ghost", 1));
        let (queue, lease) = (held.id().queue(), Duration::from_millis(300));
        broker.register(queue, &ghost, lease, "{}").await.unwrap();
        assert_eq!(broker.claim(queue, &ghost, 1, 1).await.unwrap().grants.len(), 1);
        let inspector = bench.client.inspector();
        let explain = async || inspector.explain(held.id()).await.unwrap();
        let is_gone = async || {
            let gone = [Obstacle::NoWorker];
            let obstacles = explain().await.obstacles;
            matches!(&obstacles[..], [Obstacle::LostWorker { worker, .. }, rest @ ..]
                if *worker == ghost && *rest == gone)
        };
        eventually("its lease is over", SOON, is_gone).await;
        let text = explain().await.to_string();
        let begin = format!("1. worker {ghost}, which ran the task, is gone: its lease was over");
        assert!(text.starts_with(&begin), "{text}");
        let worker = bench.start(bench.worker().task_type::<Double>());
        held.result_within(SOON).await.unwrap();
        worker.stop().await;
    }

    async fn a_task_whose_lane_a_worker_has_that_is_gone_names_that_worker(bench: Bench) {
        let first = submit(&bench, double().lane("orders")).await;
        let second = submit(&bench, double().lane("orders")).await;
        let (broker, ghost) = (bench.client.broker(), WorkerId::generate("ghost", 1));
        let (queue, lease) = (first.id().queue(), Duration::from_millis(300));
        broker.register(queue, &ghost, lease, "{}").await.unwrap();
        assert_eq!(broker.claim(queue, &ghost, 1, 1).await.unwrap().grants.len(), 1);
        let inspector = bench.client.inspector();
        let names_it = |found: &[Obstacle]| {
            let is_it = |one: &Obstacle| {
                matches!(one, Obstacle::LostHolder { holder, worker, .. }
                    if holder == first.id() && *worker == ghost)
            };
            found.iter().filter(|one| is_it(one)).count() == 1
        };
        let is_named = async || {
            let why = inspector.explain(second.id()).await.unwrap();
            names_it(&why.obstacles)
        };
        eventually("its lease is over", SOON, is_named).await;
        let why = of_queue(&bench).await;
        assert!(names_it(&why.obstacles), "{why}");
        let text = format!("worker {ghost}, which ran task {} of the lane, is gone", first.id());
        assert!(why.to_string().contains(&text), "{why}");
        let worker = bench.start(bench.worker().task_type::<Double>());
        second.result_within(SOON).await.unwrap();
        worker.stop().await;
    }

    async fn a_lane_that_a_dead_task_keeps_names_it(bench: Bench) {
        let call = |number| Double { number }.call().lane("orders").max_retry(0);
        let call = |number| call(number).on_lane_failure(LaneFailure::Block);
        let first = submit(&bench, call(1)).await;
        let second = submit(&bench, call(2)).await;
        let (broker, queue) = (bench.client.broker(), first.id().queue());
        let worker = WorkerId::from_stored("w");
        broker.register(queue, &worker, SOON, "{}").await.unwrap();
        let claimed = broker.claim(queue, &worker, 1, 1).await.unwrap();
        let lease = Lease { id: first.id().clone(), worker, token: claimed.token };
        let error = r#"{"reason":"failed"}"#.to_owned();
        let failed = Failure { lease, outcome: FailureOutcome::Dead, shut: None, error };
        let call = broker.fail_call(queue, &WorkerId::from_stored("w"), &[failed]);
        broker.report(call).await.unwrap();
        let names_it = Obstacle::DeadHolder { holder: first.id().clone() };
        let why = bench.client.inspector().explain(second.id()).await.unwrap();
        assert!(why.obstacles.contains(&names_it), "{why}");
        let why = of_queue(&bench).await;
        assert!(why.obstacles.contains(&names_it), "{why}");
        let text = format!("task {} is dead and keeps the lane: requeue it, or delete", first.id());
        assert!(why.to_string().contains(&text), "{why}");
    }

    async fn a_task_behind_those_of_a_higher_priority_is_not_said_to_be_next(bench: Bench) {
        let held = submit(&bench, double().priority(-5)).await;
        bench.client.submit_all((0..3).map(|_| double())).await.unwrap();
        let why = bench.client.inspector().explain(held.id()).await.unwrap();
        let behind = Obstacle::Behind { ahead: 0, or_more: true };
        assert_eq!(why.obstacles, [Obstacle::NoWorker, behind]);
        assert!(why.to_string().ends_with("2. other ready tasks may be before it"), "{why}");
    }

    async fn a_task_that_counts_as_more_starts_than_are_left_says_so(bench: Bench) {
        let gate = bench.client.gate("default", Gate::Queue);
        gate.set(Limit::new().rate(Rate::per_hour(10)).burst(10)).await.unwrap();
        submit(&bench, double().cost(8)).await;
        let second = submit(&bench, double().cost(8)).await;
        let (broker, queue) = (bench.client.broker(), second.id().queue());
        let worker = WorkerId::from_stored("w");
        broker.register(queue, &worker, SOON, "{}").await.unwrap();
        assert_eq!(broker.claim(queue, &worker, 1, 9).await.unwrap().grants.len(), 1);
        let is_costly = |one: &Obstacle| {
            matches!(one, Obstacle::Costly { gate: Gate::Queue, cost: 8, tokens: 2, .. })
        };
        let why = bench.client.inspector().explain(second.id()).await.unwrap();
        assert!(why.obstacles.iter().any(is_costly), "{why}");
        let why = of_queue(&bench).await;
        assert!(why.obstacles.iter().any(is_costly), "{why}");
        let text = "queue: the task counts as 8 starts, and 2 starts are left now; it may start by";
        assert!(why.to_string().contains(text), "{why}");
    }

    async fn the_limit_of_a_queue_counts_its_ready_tasks_and_has_a_time(bench: Bench) {
        let gate = bench.client.gate("default", Gate::Queue);
        gate.set(Limit::new().rate(Rate::per_hour(1))).await.unwrap();
        let worker = bench.start(bench.worker().task_type::<Double>());
        submit(&bench, double()).await.result_within(SOON).await.unwrap();
        bench.client.submit_all((0..9).map(|_| double())).await.unwrap();
        let why = of_queue(&bench).await;
        let [Obstacle::Limit(limit)] = &why.obstacles[..] else { panic!("{why}") };
        assert_eq!((&limit.gate, limit.waiting), (&Gate::Queue, 9));
        let left = limit.next.unwrap() - optimus_core::Utc::now();
        assert!((50..=60).contains(&left.num_minutes()), "{why}");
        assert_eq!(why.not_before, limit.next);
        let text = why.to_string();
        assert!(text.contains("1/h, 0 may start now, the next at 2"), "{text}");
        assert!(text.ends_with("; 9 tasks wait"), "{text}");
        gate.remove().await.unwrap();
        gate.pause("ann", "a bug").await.unwrap();
        submit(&bench, double()).await;
        let paused = bench.client.inspector().limits("default", 9).await.unwrap().remove(0);
        assert!(paused.waiting > 0 && paused.shut.is_some(), "{paused:?}");
        worker.stop().await;
    }
}

#[tokio::test]
async fn a_queue_that_needs_a_newer_release_says_so() {
    let bench = Bench::on_redis().await;
    let waiting = submit(&bench, double()).await;
    let meta = bench.key("default", "meta");
    bench.raw().await.run(&format!("HSET {meta} needs 999")).await;
    let newer = Obstacle::NewerQueue { needs: 999 };
    assert_eq!(of_queue(&bench).await.obstacles, [newer.clone(), Obstacle::NoWorker]);
    let why = bench.client.inspector().explain(waiting.id()).await.unwrap();
    assert_eq!(why.obstacles, [newer, Obstacle::NoWorker]);
    assert!(why.to_string().contains("newer programs use the queue"), "{why}");
}

#[tokio::test]
async fn a_worker_whose_lease_is_over_serves_no_queue() {
    let bench = Bench::on_redis().await;
    let worker = bench.start(bench.worker().task_type::<Double>().concurrency(4));
    let id = uses(&bench, 4).await.id;
    worker.stop().await;
    let workers = bench.key("default", "workers");
    bench.raw().await.run(&format!("ZADD {workers} 1 {id}")).await;
    submit(&bench, double()).await;
    assert_eq!(of_queue(&bench).await.obstacles, [Obstacle::NoWorker]);
    let inspector = bench.client.inspector();
    let why = inspector.explain_worker("default", &id).await.unwrap();
    assert_eq!(why.obstacles, [Obstacle::NotRegistered]);
}
