//! Explanations: what keeps a task, a queue or a worker waiting, in order.

mod common;

use std::time::{Duration, Instant};

use common::{Bench, Double, Gate as Opening, Wait};
use optimus_core::{
    Call, Due, Explanation, Gate, Limit, Obstacle, Rate, Task, TaskHandle, TaskState, WorkerId,
};
use optimus_testkit::eventually;

const SOON: Duration = Duration::from_secs(20);

fn double() -> Call<Double> {
    Double { number: 1 }.call()
}

async fn submit<T: Task>(bench: &Bench, call: Call<T>) -> TaskHandle<T::Output> {
    bench.client.submit(call).await.unwrap()
}

async fn explain<T>(bench: &Bench, handle: &TaskHandle<T>) -> Explanation {
    bench.client.inspector().explain(handle.id()).await.unwrap()
}

async fn of_queue(bench: &Bench) -> Vec<Obstacle> {
    bench.client.inspector().explain_queue("default").await.unwrap().obstacles
}

on_both! {
    async fn a_task_without_a_worker_is_behind_those_before_it(bench: Bench) {
        let handles = bench.client.submit_all((0..3).map(|_| double())).await.unwrap();
        let why = explain(&bench, &handles[2]).await;
        let behind = Obstacle::Behind { ahead: 2, or_more: false };
        assert_eq!(why.obstacles, [Obstacle::NoWorker, behind]);
        let text = "1. no worker serves the queue\n2. 2 ready tasks are before it";
        assert_eq!(why.to_string(), text);
        assert_eq!(of_queue(&bench).await, [Obstacle::NoWorker]);
    }

    async fn a_delayed_task_of_a_busy_paused_lane_names_each_obstacle_in_order(bench: Bench) {
        let first = submit(&bench, double().lane("tenant-7")).await;
        let lane = bench.client.gate("default", Gate::Lane("tenant-7".into()));
        lane.pause("ann", "their API is down").await.unwrap();
        let second = submit(&bench, double().lane("tenant-7").due(Due::In(SOON * 100))).await;
        let why = explain(&bench, &second).await;
        let [Obstacle::NotDue { at }, Obstacle::Lane { key, holders, ahead }, Obstacle::Limit(gate),
            Obstacle::NoWorker] = &why.obstacles[..]
        else {
            panic!("{why}");
        };
        assert_eq!((why.not_before, &**key, *ahead), (Some(*at), "tenant-7", 0));
        assert_eq!(holders, std::slice::from_ref(first.id()));
        assert_eq!(gate.shut.as_ref().unwrap().by, "ann");
        let text = why.to_string();
        assert!(text.contains("3. lane tenant-7: paused by ann (their API is down)"), "{text}");
    }

    async fn a_task_that_waits_for_another_one_names_it_first(bench: Bench) {
        let first = submit(&bench, double()).await;
        let second = submit(&bench, double().after(&first)).await;
        let why = explain(&bench, &second).await;
        let [Obstacle::Prerequisite(found), Obstacle::NoWorker] = &why.obstacles[..] else {
            panic!("{why}");
        };
        assert_eq!((found.is_met, found.state), (false, TaskState::Ready));
        let text = format!("1. it waits until {} has succeeded, which is ready", first.id());
        assert!(why.to_string().starts_with(&text), "{why}");
    }

    async fn a_task_that_waits_for_a_rate_has_the_time_of_its_next_token(bench: Bench) {
        let slow = bench.client.gate("default", Gate::Task("double".into()));
        slow.set(Limit::new().rate(Rate::per_hour(1))).await.unwrap();
        let worker = bench.start(bench.worker().task_type::<Double>());
        submit(&bench, double()).await.result_within(SOON).await.unwrap();
        let waiting = submit(&bench, double()).await;
        let is_blocked = async || waiting.status().await.unwrap() == TaskState::Blocked;
        eventually("it waits", SOON, is_blocked).await;
        let why = explain(&bench, &waiting).await;
        let [Obstacle::Limit(gate)] = &why.obstacles[..] else { panic!("{why}") };
        assert_eq!((gate.tokens, gate.waiting), (Some(0), 1));
        let left = why.not_before.unwrap() - optimus_core::Utc::now();
        assert!((50..=60).contains(&left.num_minutes()), "{why}");
        let next = Obstacle::NotDue { at: why.not_before.unwrap() };
        assert_eq!(of_queue(&bench).await, [Obstacle::NothingReady { blocked: 1 }, next]);
        worker.stop().await;
    }

    async fn a_task_that_no_worker_knows_and_one_that_finds_no_slot_say_so(bench: Bench) {
        let opening = Opening::new();
        let worker = bench.worker().task_type::<Wait>().data(opening.clone()).concurrency(1);
        let worker = bench.start(worker);
        let running = submit(&bench, Wait {}.call()).await;
        opening.began.wait_for(1).await;
        let why = explain(&bench, &running).await;
        assert!(matches!(&why.obstacles[..], [Obstacle::Running(Some(_))]), "{why}");
        let unknown = submit(&bench, double()).await;
        let why = explain(&bench, &unknown).await;
        assert_eq!(why.obstacles[0], Obstacle::UnknownTask { task: "double".into() });
        let next = submit(&bench, Wait {}.call()).await;
        let why = explain(&bench, &next).await;
        assert_eq!(why.obstacles[0], Obstacle::Busy { slots: 1, working: 1 });
        let id = bench.client.inspector().workers("default").await.unwrap().remove(0).id;
        let inspector = bench.client.inspector();
        let why = inspector.explain_worker("default", &id).await.unwrap();
        assert_eq!(why.obstacles[0], Obstacle::Busy { slots: 1, working: 1 });
        let nobody = WorkerId::generate("nobody", 1);
        let why = inspector.explain_worker("default", &nobody).await.unwrap();
        assert_eq!(why.obstacles, [Obstacle::NotRegistered]);
        opening.open.hit();
        running.result_within(SOON).await.unwrap();
        let why = explain(&bench, &running).await;
        assert_eq!(why.obstacles, [Obstacle::Ended(TaskState::Success)]);
        worker.stop().await;
    }

    async fn an_idle_worker_of_a_paused_queue_names_who_has_paused_it(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Double>());
        let inspector = bench.client.inspector();
        let is_there = async || !inspector.workers("default").await.unwrap().is_empty();
        eventually("the worker is there", SOON, is_there).await;
        assert_eq!(of_queue(&bench).await, [Obstacle::NothingReady { blocked: 0 }]);
        bench.client.gate("default", Gate::Queue).pause("bob", "a deploy").await.unwrap();
        submit(&bench, double()).await;
        let id = inspector.workers("default").await.unwrap().remove(0).id;
        let why = inspector.explain_worker("default", &id).await.unwrap();
        let [Obstacle::Limit(gate)] = &why.obstacles[..] else { panic!("{why}") };
        let shut = gate.shut.as_ref().unwrap();
        assert_eq!((&gate.gate, &*shut.why), (&Gate::Queue, "a deploy"));
        worker.stop().await;
    }
}

/// Prints how long an explanation takes beside a million tasks, half of them in one lane:
/// `cargo test --release -p optimus-journeys --test explaining -- --ignored --nocapture`.
#[tokio::test]
#[ignore = "a measurement, which submits a million tasks"]
async fn an_explanation_beside_a_million_tasks() {
    let bench = Bench::on_redis().await;
    let of_lane = |number| Double { number }.call().lane("tenant-7");
    let (mut blocked, mut ready) = (None, None);
    for _ in 0..50 {
        blocked = bench.client.submit_all((0..10_000).map(of_lane)).await.unwrap().pop();
        ready = bench.client.submit_all((0..10_000).map(|_| double())).await.unwrap().pop();
    }
    for handle in [blocked.unwrap(), ready.unwrap()] {
        let mut took = Vec::new();
        for _ in 0..200 {
            let since = Instant::now();
            explain(&bench, &handle).await;
            took.push(since.elapsed());
        }
        took.sort();
        let why = explain(&bench, &handle).await;
        println!("median {:?}, slowest {:?}: {why}", took[100], took[199]);
    }
}
