//! Explanations: what keeps a task, a queue or a worker waiting, in order.

use std::time::{Duration, Instant};

use crate::common::{Bench, Double, Flaky, Gate as Opening, Wait};
use optimus_core::{
    Call, Due, Explanation, Gate, Key, Limit, Obstacle, QueueName, Rate, Task, TaskHandle, TaskId,
    TaskState, WorkerId,
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
        let [Obstacle::NotDue { at }, Obstacle::Lane { key, holders, ahead, .. },
            Obstacle::Limit(gate), Obstacle::NoWorker] = &why.obstacles[..]
        else {
            panic!("{why}");
        };
        assert_eq!((why.not_before, &**key, *ahead), (Some(*at), "tenant-7", 0));
        assert_eq!(holders, std::slice::from_ref(first.id()));
        assert_eq!(gate.shut.as_ref().unwrap().by, "ann");
        let text = why.to_string();
        assert!(text.contains("3. lane tenant-7: paused by ann (their API is down)"), "{text}");
        assert!(text.contains("2. lane tenant-7 (width 1): no task waits before it"), "{text}");
        assert!(!text.contains("not before"), "the first line has the time: {text}");
        bench.client.lane("default", "tenant-7").set_width(6).await.unwrap();
        let text = explain(&bench, &second).await.to_string();
        assert!(text.contains("2. lane tenant-7 (width 6, set at run time): no task"), "{text}");
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

    async fn tasks_of_two_queues_that_wait_for_each_other_are_named(bench: Bench) {
        let there = QueueName::new("there").unwrap();
        let (first, second) = (TaskId::new(QueueName::new("here").unwrap()), TaskId::new(there));
        let call = |id: &TaskId, former: &TaskId| {
            Double { number: 1 }.call().queue(id.queue().as_str()).id(id.clone()).after(former)
        };
        let one = submit(&bench, call(&first, &second)).await;
        assert!(!explain(&bench, &one).await.to_string().contains("itself"));
        let other = submit(&bench, call(&second, &first)).await;
        let text = explain(&bench, &one).await.to_string();
        assert!(text.contains(&format!("it waits for {second}, which waits for it")), "{text}");
        let cycle = Obstacle::Cycle { path: vec![first] };
        let why = explain(&bench, &other).await;
        let [Obstacle::Prerequisite(_), found, Obstacle::NoWorker] = &why.obstacles[..] else {
            panic!("{why}");
        };
        assert_eq!(found, &cycle);
        // One that waits for them goes round once.
        let outside = submit(&bench, double().after(&one)).await;
        let text = explain(&bench, &outside).await.to_string();
        assert!(text.contains("through 1 other task,"), "{text}");
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
        let queue = bench.client.inspector().explain_queue("default").await.unwrap();
        let [Obstacle::NothingReady { blocked: 1 }, Obstacle::Limit(limit)] = &queue.obstacles[..]
        else {
            panic!("{queue}");
        };
        assert_eq!((&limit.gate, queue.not_before), (&gate.gate, why.not_before));
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
        assert_eq!(why.obstacles[0], Obstacle::Busy { slots: 1, working: 1, elsewhere: 0 });
        let id = bench.client.inspector().workers("default").await.unwrap().remove(0).id;
        let inspector = bench.client.inspector();
        let why = inspector.explain_worker("default", &id).await.unwrap();
        assert_eq!(why.obstacles[0], Obstacle::Busy { slots: 1, working: 1, elsewhere: 0 });
        let nobody = WorkerId::generate("nobody", 1);
        let why = inspector.explain_worker("default", &nobody).await.unwrap();
        assert_eq!(why.obstacles, [Obstacle::NotRegistered]);
        opening.open.hit();
        running.result_within(SOON).await.unwrap();
        let why = explain(&bench, &running).await;
        let ended = Obstacle::Ended { state: TaskState::Success, error: None, is_final: false };
        assert_eq!(why.obstacles, [ended]);
        worker.stop().await;
    }

    async fn a_queue_names_unmet_prerequisites_and_the_next_due_time(bench: Bench) {
        let first = submit(&bench, double().due(Due::In(SOON * 100))).await;
        submit(&bench, double().after(&first)).await;
        let why = bench.client.inspector().explain_queue("default").await.unwrap();
        let [Obstacle::NothingReady { blocked: 1 }, Obstacle::Prerequisites { waiting: 1, unmet },
            Obstacle::NextDue { .. }, Obstacle::NoWorker] = &why.obstacles[..]
        else {
            panic!("{why}");
        };
        assert_eq!((unmet[0].state, why.not_before), (TaskState::Delayed, None));
        let text = why.to_string();
        let named = format!("1 task waits for prerequisites: until {} has succeeded", first.id());
        assert!(text.starts_with("1. no task is ready; 1 task is blocked\n"), "{text}");
        assert!(text.contains(&named), "{text}");
        assert!(text.contains("3. the next delayed task or retry is due at"), "{text}");
    }

    async fn a_queue_names_the_lane_that_holds_its_tasks_back_and_who_has_paused_it(bench: Bench) {
        let lane = bench.client.gate("default", Gate::Lane("tenant-7".into()));
        lane.pause("olga", "an outage").await.unwrap();
        let worker = bench.start(bench.worker().task_type::<Double>());
        let first = submit(&bench, double().lane("tenant-7")).await;
        submit(&bench, double().lane("tenant-7")).await;
        let is_blocked = async || first.status().await.unwrap() == TaskState::Blocked;
        eventually("it waits", SOON, is_blocked).await;
        let why = bench.client.inspector().explain_queue("default").await.unwrap();
        let [Obstacle::NothingReady { blocked: 2 }, Obstacle::WaitingLane(found),
            Obstacle::Limit(gate)] = &why.obstacles[..]
        else {
            panic!("{why}");
        };
        assert_eq!((&*found.key, found.waiting), ("tenant-7", 1));
        assert_eq!(&*gate.shut.as_ref().unwrap().by, "olga");
        let text = why.to_string();
        assert!(text.contains("lane tenant-7: paused by olga (an outage) until"), "{text}");
        let problem = lane.wait_at_most(Duration::ZERO).acquire().await.unwrap_err();
        let text = problem.to_string();
        assert!(problem.is_timeout() && text.ends_with("it is paused by olga (an outage) until it \
            is resumed"), "{text}");
        worker.stop().await;
    }

    async fn a_queue_names_the_pause_of_a_name_before_those_of_many_lanes(bench: Bench) {
        for number in 0..7 {
            let lane = bench.client.gate("default", Gate::Lane(format!("cust-{number}")));
            lane.pause("bob", "no money").await.unwrap();
        }
        let name = bench.client.gate("default", Gate::Task("double".into()));
        name.pause("ann", "a bug").await.unwrap();
        // In lane 6, more tasks wait than in the others.
        let lanes = (0..7).flat_map(|lane| vec![lane; if lane == 6 { 4 } else { 2 }]);
        let calls = lanes.map(|lane| double().lane(format!("cust-{lane}")));
        let handles = bench.client.submit_all(calls).await.unwrap();
        let worker = bench.start(bench.worker().task_type::<Double>());
        let are_blocked = async || {
            let blocked = handles.iter().map(|handle| async { handle.status().await.unwrap() });
            let states = futures_util::future::join_all(blocked).await;
            states.iter().all(|state| *state == TaskState::Blocked)
        };
        eventually("all wait", SOON, are_blocked).await;
        let why = bench.client.inspector().explain_queue("default").await.unwrap();
        let [Obstacle::NothingReady { blocked: 16 }, Obstacle::Limit(first), rest @ ..] =
            &why.obstacles[..]
        else {
            panic!("{why}");
        };
        assert_eq!((&first.gate, why.not_before), (&Gate::Task("double".into()), None));
        let [Obstacle::WaitingLane(fullest), _, _, _, Obstacle::MoreLanes { count: 3 },
            Obstacle::Limit(_), Obstacle::Limit(_), Obstacle::Limit(_), Obstacle::Limit(_),
            Obstacle::MoreLimits { count: 3, or_more: false }] = rest
        else {
            panic!("{why}");
        };
        assert_eq!((&*fullest.key, fullest.waiting), ("cust-6", 3));
        let text = why.to_string();
        assert!(text.contains("2. task double: paused by ann (a bug)"), "{text}");
        assert!(text.contains("7. tasks wait in 3 more lanes: `optimus lane list`"), "{text}");
        assert!(text.contains("12. 3 more limits and pauses hold tasks back: `optimus"), "{text}");
        worker.stop().await;
    }

    async fn a_queue_names_the_limit_of_all_before_the_limits_of_its_lanes(bench: Bench) {
        let slow = bench.client.gate("default", Gate::Task("double".into()));
        slow.set(Limit::new().rate(Rate::per_hour(1))).await.unwrap();
        let of_lane = |n| double().lane(format!("cust-{n}")).lane_rate(Rate::per_hour(9));
        let calls = (0..12).map(of_lane);
        bench.client.submit_all(calls).await.unwrap();
        let worker = bench.start(bench.worker().task_type::<Double>());
        let waits = async || matches!(&of_queue(&bench).await[..],
            [_, Obstacle::Limit(limit), ..] if limit.waiting == 11);
        eventually("eleven wait", SOON, waits).await;
        let why = bench.client.inspector().explain_queue("default").await.unwrap();
        let [_, Obstacle::Limit(limit)] = &why.obstacles[..] else { panic!("{why}") };
        assert_eq!(limit.gate, Gate::Task("double".into()));
        worker.stop().await;
    }

    async fn a_queue_that_nobody_has_used_is_named_as_unknown(bench: Bench) {
        let why = bench.client.inspector().explain_queue("nosuch").await.unwrap();
        assert_eq!(why.obstacles, [Obstacle::UnknownQueue]);
    }

    async fn a_dead_task_is_explained_by_its_last_error(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Flaky>());
        let dead = submit(&bench, Flaky { attempts: 9, panics: false }.call().max_retry(0)).await;
        dead.result_within(SOON).await.unwrap_err();
        let why = explain(&bench, &dead).await;
        let [Obstacle::Ended { state, error: Some(error), .. }] = &why.obstacles[..] else {
            panic!("{why}");
        };
        assert_eq!(*state, TaskState::Dead);
        let text = format!("dead (failed): {}; requeue it", error.message);
        assert!(!error.message.is_empty() && why.to_string().contains(&text), "{why}");
        let waits = submit(&bench, double().after(dead.id())).await;
        let text = explain(&bench, &waits).await.to_string();
        assert!(text.contains("which is dead: requeue it"), "{text}");
        worker.stop().await;
    }

    async fn a_task_that_is_due_has_no_due_time_in_the_past(bench: Bench) {
        let soon = submit(&bench, double().due(Due::In(Duration::from_millis(1)))).await;
        let is_due = async || explain(&bench, &soon).await.obstacles == [Obstacle::NoWorker];
        eventually("it is due", SOON, is_due).await;
        assert_eq!(soon.status().await.unwrap(), TaskState::Delayed);
        assert_eq!(of_queue(&bench).await, [Obstacle::NoWorker]);
    }

    async fn a_task_is_found_by_its_biz_id(bench: Bench) {
        let inspector = bench.client.inspector();
        let key = Key::of::<Double>("order-17");
        assert_eq!(inspector.find(&key).await.unwrap(), None);
        let week = Duration::from_secs(7 * 86_400);
        let call = double().biz_id("order-17").outcome_ttl(week);
        let handle = submit(&bench, call).await;
        assert_eq!(inspector.find(&key).await.unwrap().as_ref(), Some(handle.id()));
        let worker = bench.start(bench.worker().task_type::<Double>());
        handle.result_within(SOON).await.unwrap();
        assert_eq!(inspector.find(&key).await.unwrap().as_ref(), Some(handle.id()));
        assert_eq!(inspector.find(&key.queue("other")).await.unwrap(), None);
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

/// Prints how long an explanation takes in a queue of a million tasks, half of them in one lane:
/// `cargo test --release -p optimus-journeys --test flow -- --ignored --nocapture`.
#[tokio::test]
#[ignore = "a measurement, which submits a million tasks"]
async fn an_explanation_next_to_a_million_tasks() {
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
