//! Operations on many tasks: counted, confirmed, carried on by anybody, and never done twice.

use std::{
    collections::HashMap,
    env,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::common::{Bench, Double};
use optimus_core::{
    BoxError, Context, DataKey, Due, Operation, OperationAct, OperationError, OperationFilter,
    OperationState, Operations, Task, TaskId, TaskOptions, TaskState, Uuid,
};
use optimus_testkit::{RedisServer, eventually};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

pub(crate) const SOON: Duration = Duration::from_secs(60);
/// The lease of carriers that are killed.
const LEASE: Duration = Duration::from_millis(300);

/// Waits until the store's clock shows another ms.
pub(crate) async fn clock_moves_on(bench: &Bench) {
    let inspector = bench.client.inspector();
    let before = inspector.now().await.unwrap();
    let has_moved = async || inspector.now().await.unwrap() > before;
    eventually("the clock moves on", SOON, has_moved).await;
}

/// How often each task has run.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<Mutex<HashMap<u32, u32>>>);

/// A task that always dies.
#[derive(Serialize, Deserialize)]
pub(crate) struct Die {
    pub(crate) number: u32,
}

impl Task for Die {
    const NAME: &'static str = "die";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().max_retry(0)
    }

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Runs>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let runs: Runs = ctx.data().unwrap();
        *runs.0.lock().unwrap().entry(self.number).or_default() += 1;
        Err("it always dies".into())
    }
}

pub(crate) async fn count(bench: &Bench, state: TaskState) -> u64 {
    let counts = bench.client.inspector().counts("default").await.unwrap();
    match state {
        TaskState::Ready => counts.ready,
        TaskState::Delayed => counts.delayed,
        TaskState::Dead => counts.dead,
        _ => counts.cancelled,
    }
}

/// Submits tasks that die, and waits until they are dead.
pub(crate) async fn died(bench: &Bench, tasks: u32) -> Runs {
    let calls = (0..tasks).map(|number| Die { number }.call().header("tenant", "acme"));
    bench.client.submit_all(calls).await.unwrap();
    let runs = Runs::default();
    let worker = bench.worker().concurrency(64).data(runs.clone()).task_type::<Die>();
    let worker = bench.start(worker);
    let all = u64::from(tasks);
    eventually("all are dead", SOON, async || count(bench, TaskState::Dead).await == all).await;
    worker.stop().await;
    runs
}

pub(crate) fn all(state: TaskState) -> OperationFilter {
    OperationFilter::of(state).queue("default").unwrap()
}

/// Counts the tasks of a filter.
pub(crate) async fn counted(
    bench: &Bench,
    act: OperationAct,
    filter: OperationFilter,
) -> Operation {
    let operations = bench.client.operations();
    let operation = operations.count(act, filter, "ann").await.unwrap();
    operations.carry(&operation.id).await.unwrap()
}

/// Counts the tasks of a filter, and confirms their number.
async fn confirmed(bench: &Bench, act: OperationAct, filter: OperationFilter) -> String {
    let operation = counted(bench, act, filter).await;
    assert_eq!(operation.state, OperationState::Counted, "{operation:?}");
    let operations = bench.client.operations();
    operations.confirm(&operation.id, operation.matched, "because").await.unwrap();
    operation.id
}

pub(crate) fn sums(operation: &Operation) -> [u64; 5] {
    let Operation { matched, done, refused, gone, .. } = operation;
    [*matched, *done, *refused, *gone, operation.left()]
}

on_both! {
    async fn dead_tasks_are_counted_and_requeued_once_their_number_is_confirmed(bench: Bench) {
        died(&bench, 300).await;
        let operations = bench.client.operations();
        let filter = all(TaskState::Dead).task("die").text("always").header("tenant", None);
        let operation = counted(&bench, OperationAct::Requeue, filter).await;
        assert_eq!((operation.state, operation.matched), (OperationState::Counted, 300));
        assert_eq!((operation.samples.len(), operation.who.as_str()), (20, "ann"));
        assert_eq!(operation.by_task, [("die".to_owned(), 300)]);
        assert_eq!(count(&bench, TaskState::Dead).await, 300, "nothing has changed");
        let wrong = operations.confirm(&operation.id, 299, "").await.unwrap_err();
        let OperationError::Unexpected { matched: 300, expected: 299, .. } = wrong else {
            panic!("{wrong}");
        };
        let running = operations.confirm(&operation.id, 300, "it works again").await.unwrap();
        assert_eq!(running.state, OperationState::Running);
        operations.confirm(&operation.id, 300, "a repeat").await.unwrap();
        let done = operations.carry(&operation.id).await.unwrap();
        assert_eq!((done.state, sums(&done)), (OperationState::Done, [300, 300, 0, 0, 0]));
        assert_eq!(done.reason, "it works again");
        assert_eq!(count(&bench, TaskState::Ready).await, 300);
        let json = serde_json::to_value(&done).unwrap();
        assert_eq!((&json["left"], &json["filter"]["queue"]), (&0.into(), &"default".into()));
        assert_eq!(operations.list(10).await.unwrap().len(), 1);
        let late = operations.cancel(&operation.id).await.unwrap_err();
        assert!(matches!(late, OperationError::WrongState { .. }), "{late}");
        let late = operations.confirm(&operation.id, 7, "").await.unwrap_err();
        assert!(late.to_string().contains("is done"), "{late}");
    }

    async fn a_filter_leaves_other_tasks_as_they_are(bench: Bench) {
        died(&bench, 40).await;
        let act = OperationAct::Delete;
        for other in [
            all(TaskState::Dead).task("other"),
            all(TaskState::Dead).text("never"),
            all(TaskState::Dead).header("tenant", Some("b".into())),
            all(TaskState::Dead).older(Duration::from_secs(3_600)),
            all(TaskState::Cancelled),
            OperationFilter::of(TaskState::Dead).queue("other").unwrap(),
        ] {
            let id = confirmed(&bench, act, other).await;
            let done = bench.client.operations().carry(&id).await.unwrap();
            assert_eq!((done.state, sums(&done)), (OperationState::Done, [0; 5]));
        }
        assert_eq!(count(&bench, TaskState::Dead).await, 40);
        // Without a queue, all are meant.
        let id = confirmed(&bench, act, OperationFilter::of(TaskState::Dead)).await;
        let done = bench.client.operations().carry(&id).await.unwrap();
        assert_eq!((sums(&done), count(&bench, TaskState::Dead).await), ([40, 40, 0, 0, 0], 0));
        let wrong = all(TaskState::Working);
        let refused = bench.client.operations().count(act, wrong, "").await.unwrap_err();
        assert!(refused.to_string().contains("can't delete tasks in state working"), "{refused}");
    }

    async fn waiting_tasks_that_come_later_stay(bench: Bench) {
        let calls = || (0..500).map(|number| Double { number }.call());
        bench.client.submit_all(calls()).await.unwrap();
        let soon = || Double { number: 1 }.call().due(Due::In(SOON)).queue("default");
        for _ in 0..3 {
            bench.client.submit(soon()).await.unwrap();
        }
        let filter = all(TaskState::Ready).or(TaskState::Delayed);
        let id = confirmed(&bench, OperationAct::Cancel, filter).await;
        // The clock has moved on, so these are later.
        tokio::time::sleep(Duration::from_millis(5)).await;
        bench.client.submit_all(calls()).await.unwrap();
        bench.client.submit(soon()).await.unwrap();
        let done = bench.client.operations().carry(&id).await.unwrap();
        assert_eq!(sums(&done), [503, 503, 0, 0, 0]);
        let left = [TaskState::Ready, TaskState::Delayed, TaskState::Cancelled];
        for (state, expected) in left.into_iter().zip([500, 1, 503]) {
            assert_eq!(count(&bench, state).await, expected, "{state}");
        }
    }

    async fn waiting_tasks_that_come_later_stay_whatever_their_ids_are(bench: Bench) {
        let given = |number: u128| {
            let id = Uuid::from_u128(number << 80 | 4 << 76 | 2 << 62);
            Double { number: 1 }.call().id(format!("default/{id}").parse().unwrap())
        };
        for number in 1..=3 {
            bench.client.submit(given(number)).await.unwrap();
        }
        let filter = all(TaskState::Ready).or(TaskState::Delayed);
        let id = confirmed(&bench, OperationAct::Cancel, filter).await;
        // These are later. They would be met first.
        clock_moves_on(&bench).await;
        for number in 4..=6 {
            bench.client.submit(given(number).due(Due::In(SOON))).await.unwrap();
        }
        let done = bench.client.operations().carry(&id).await.unwrap();
        assert_eq!(sums(&done), [3, 3, 0, 0, 0]);
        let left = [TaskState::Ready, TaskState::Delayed, TaskState::Cancelled];
        for (state, expected) in left.into_iter().zip([0, 3, 3]) {
            assert_eq!(count(&bench, state).await, expected, "{state}");
        }
    }

    async fn delayed_tasks_run_now(bench: Bench) {
        let mut ids: Vec<TaskId> = Vec::new();
        for number in 0..200 {
            let call = Double { number }.call().due(Due::In(SOON));
            ids.push(bench.client.submit(call).await.unwrap().id().clone());
        }
        let id = confirmed(&bench, OperationAct::RunNow, all(TaskState::Delayed)).await;
        let done = bench.client.operations().carry(&id).await.unwrap();
        assert_eq!(sums(&done), [200, 200, 0, 0, 0]);
        let worker = bench.start(bench.worker().task_type::<Double>().concurrency(16));
        for id in ids {
            bench.client.handle::<i64>(id).result_within(SOON).await.unwrap();
        }
        worker.stop().await;
    }

    async fn a_cancel_stops_it_and_what_was_done_is_counted(bench: Bench) {
        died(&bench, 400).await;
        let operations = bench.client.operations();
        let id = confirmed(&bench, OperationAct::Requeue, all(TaskState::Dead)).await;
        operations.carry_once(&id).await.unwrap();
        operations.carry_once(&id).await.unwrap();
        let cancelled = operations.cancel(&id).await.unwrap();
        assert_eq!(cancelled.state, OperationState::Cancelled);
        operations.cancel(&id).await.unwrap();
        let after = operations.carry(&id).await.unwrap();
        assert_eq!(after.state, OperationState::Cancelled);
        let dead = count(&bench, TaskState::Dead).await;
        assert!(after.done > 0 && after.done + dead == 400, "{dead} dead, {after:?}");
        let wrong = operations.confirm(&id, 400, "").await.unwrap_err();
        assert!(matches!(wrong, OperationError::WrongState { .. }), "{wrong}");
    }

    async fn ready_tasks_are_swept_while_workers_take_them(bench: Bench) {
        let calls = (0..2_000).map(|number| Double { number }.call());
        bench.client.submit_all(calls).await.unwrap();
        let id = confirmed(&bench, OperationAct::Delete, all(TaskState::Ready)).await;
        let worker = bench.start(bench.worker().task_type::<Double>().concurrency(16));
        let done = bench.client.operations().carry(&id).await.unwrap();
        let is_empty = async || count(&bench, TaskState::Ready).await == 0;
        eventually("nothing waits", SOON, is_empty).await;
        worker.stop().await;
        let totals = bench.client.inspector().totals("default").await.unwrap();
        assert_eq!((done.state, done.left(), done.matched), (OperationState::Done, 0, 2_000));
        assert_eq!(done.done + totals.successes, 2_000, "{done:?}");
    }

    async fn hostile_texts_are_kept_as_they_are(bench: Bench) {
        let hostile = "<img src=x onerror=alert(1)>\u{202e}\u{1b}]0;x\u{7}\n\0\"'";
        let filter = all(TaskState::Dead).text(hostile).task(hostile).header("h", Some("=".into()));
        let operations = bench.client.operations();
        let act = OperationAct::Delete;
        let counted = operations.count(act, filter.clone(), hostile).await.unwrap();
        operations.confirm(&counted.id, 0, hostile).await.unwrap();
        let done = operations.carry(&counted.id).await.unwrap();
        assert_eq!((done.who.as_str(), done.reason.as_str()), (hostile, hostile));
        assert_eq!((done.state, done.filter), (OperationState::Done, filter));
        let long = operations.count(OperationAct::Delete, all(TaskState::Dead), "x".repeat(2_000));
        assert!(long.await.unwrap_err().to_string().contains("longer than 1 KiB"));
        for id in ["", "}", "a b", "\n", &"x".repeat(99), "nobody"] {
            let unknown = operations.cancel(id).await.unwrap_err();
            assert!(matches!(unknown, OperationError::Unknown { .. }), "{unknown}");
            assert!(operations.get(id).await.unwrap().is_none());
        }
    }

    async fn two_carriers_that_are_dropped_at_random_do_nothing_twice(bench: Bench) {
        let runs = died(&bench, 600).await;
        let id = confirmed(&bench, OperationAct::Requeue, all(TaskState::Dead)).await;
        // What is requeued dies again at once.
        let worker = bench.worker().concurrency(16).data(runs.clone()).task_type::<Die>();
        let worker = bench.start(worker);
        let carry = |_| drop_at_random(bench.client.operations(), id.clone());
        let both = [0, 1].map(|nth| tokio::spawn(carry(nth)));
        for one in both {
            one.await.unwrap();
        }
        let done = bench.client.operations().get(&id).await.unwrap().unwrap();
        assert_eq!((done.state, sums(&done)), (OperationState::Done, [600, 600, 0, 0, 0]));
        let is_over = async || count(&bench, TaskState::Dead).await == 600;
        eventually("all have died again", SOON, is_over).await;
        worker.stop().await;
        let runs = runs.0.lock().unwrap();
        assert!(runs.len() == 600 && runs.values().all(|runs| *runs == 2), "{runs:?}");
    }
}

/// Carries an operation on, and drops what it does at random moments.
async fn drop_at_random(operations: Operations, id: String) {
    loop {
        let mut carrier = operations.carrier(&id).lease(LEASE / 10);
        let within = Duration::from_micros(fastrand::u64(100..20_000));
        let steps = async {
            loop {
                let operation = carrier.step().await.unwrap();
                if operation.state.is_over() {
                    return;
                }
            }
        };
        if timeout(within, steps).await.is_ok() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_redis_has_lost_is_unknown() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    died(&bench, 300).await;
    let id = confirmed(&bench, OperationAct::Requeue, all(TaskState::Dead)).await;
    let mut carrier = bench.client.operations().carrier(&id);
    carrier.step().await.unwrap();
    bench.raw().await.run("FLUSHALL").await;
    let lost = carrier.step().await.unwrap_err();
    assert!(matches!(lost, OperationError::Unknown { .. }), "{lost}");
    assert!(bench.client.operations().list(9).await.unwrap().is_empty());
}

const OPERATION: &str = "OPERATION";

/// The process that is killed.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a child of another test"]
async fn child_carries_it_on() {
    let bench = Bench::of_parent().await;
    let id = env::var(OPERATION).unwrap();
    let mut carrier = bench.client.operations().carrier(&id).lease(LEASE);
    loop {
        let operation = carrier.step().await.unwrap();
        if operation.done > 0 {
            println!("changed {}", operation.done);
        }
        if operation.state.is_over() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn carriers_that_are_killed_are_followed_by_others_and_nothing_is_done_twice() {
    let bench = Bench::on_redis().await;
    let runs = died(&bench, 3_000).await;
    let id = confirmed(&bench, OperationAct::Requeue, all(TaskState::Dead)).await;
    let worker = bench.worker().concurrency(16).data(runs.clone()).task_type::<Die>();
    let worker = bench.start(worker);
    for _ in 0..2 {
        let child = bench.child("operations::child_carries_it_on").env(OPERATION, &id);
        let mut child = child.start();
        child.wait_for_line("changed ", SOON).await;
        tokio::time::sleep(Duration::from_millis(fastrand::u64(0..50))).await;
        child.kill9();
    }
    let before = bench.client.operations().get(&id).await.unwrap().unwrap();
    assert!(before.state == OperationState::Running && before.done > 0, "{before:?}");
    let mut carrier = bench.client.operations().carrier(&id).lease(LEASE);
    let done = loop {
        let operation = carrier.step().await.unwrap();
        if operation.state.is_over() {
            break operation;
        }
    };
    assert_eq!((done.state, sums(&done)), (OperationState::Done, [3_000, 3_000, 0, 0, 0]));
    let is_over = async || count(&bench, TaskState::Dead).await == 3_000;
    eventually("all have died again", SOON, is_over).await;
    worker.stop().await;
    assert!(runs.0.lock().unwrap().values().all(|runs| *runs == 2));
}
