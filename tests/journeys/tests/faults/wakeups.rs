//! Wakeups arrive at once. None of these workers would find its task by a poll in time.

use std::time::Duration;

use crate::common::{
    Bench, Double, Gate, Raw, Wait, blocking_task::KeepThread, one_thread::OneThreadWorker,
};
use optimus_core::{BoxError, Client, Context, DataKey, Due, Task, TaskState};
use optimus_testkit::{Hold, RedisServer, eventually};
use serde::{Deserialize, Serialize};

const SOON: Duration = Duration::from_secs(20);
const NEVER: Duration = Duration::from_secs(3600);

/// A task that submits another task of its kind, until the gate is open.
#[derive(Serialize, Deserialize)]
struct Again {}

impl Task for Again {
    const NAME: &'static str = "again";
    type Output = ();

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Gate>(), DataKey::of::<Client>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let (gate, client): (Gate, Client) = (ctx.data().unwrap(), ctx.data().unwrap());
        gate.began.hit();
        if gate.open.hits() == 0 {
            client.submit(Again {}.call().queue("busy")).await?;
        }
        Ok(())
    }
}

/// Runs tasks of one queue, each of which submits the next one. Sometimes also submits a task of
/// another queue.
async fn quiet_and_busy(bench: &Bench, concurrency: usize, tasks: u64) {
    let gate = Gate::new();
    let builder = bench.worker().poll(NEVER).queues(["busy", "quiet"]).concurrency(concurrency);
    let builder = builder.task_type::<Again>().task_type::<Double>();
    let worker = bench.start(builder.data(gate.clone()).data(bench.client.clone()));
    let calls = (0..tasks).map(|_| Again {}.call().queue("busy"));
    bench.client.submit_all(calls).await.unwrap();
    for number in 1..=20 {
        gate.began.wait_for(2 * tasks * number).await;
        let number = i64::try_from(number).unwrap();
        let handle = bench.client.submit(Double { number }.call().queue("quiet")).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 2 * number);
    }
    gate.open.hit();
    worker.stop().await;
}

on_both! {
    async fn a_task_of_a_quiet_queue_runs_while_another_keeps_a_few_slots_busy(bench: Bench) {
        quiet_and_busy(&bench, 4, 8).await;
    }

    async fn a_task_of_a_quiet_queue_runs_while_another_keeps_many_slots_busy(bench: Bench) {
        quiet_and_busy(&bench, 128, 600).await;
    }

    async fn a_much_wider_lane_starts_all_that_wait(bench: Bench) {
        let gate = Gate::new();
        let worker = bench.worker().task_type::<Wait>().data(gate.clone()).concurrency(40);
        let worker = bench.start(worker.poll(NEVER));
        let calls = (0..200).map(|_| Wait {}.call().lane("shop"));
        let handles = bench.client.submit_all(calls).await.unwrap();
        gate.began.wait_for(1).await;
        bench.client.lane("default", "shop").set_width(300).await.unwrap();
        gate.began.wait_for(40).await;
        gate.open.hit();
        for handle in &handles {
            handle.result_within(SOON).await.unwrap();
        }
        worker.stop().await;
    }

    async fn each_of_many_tasks_that_come_one_by_one_wakes_a_worker(bench: Bench) {
        let builder = bench.worker().poll(NEVER).task_type::<Double>().concurrency(4);
        let worker = bench.start(builder);
        let clients = 8;
        let mut submitting = tokio::task::JoinSet::new();
        for _ in 0..clients {
            let client = bench.client.clone();
            submitting.spawn(async move {
                for number in 0..200 {
                    let handle = client.submit(Double { number }.call()).await.unwrap();
                    assert_eq!(handle.result_within(SOON).await.unwrap(), 2 * number);
                }
            });
        }
        submitting.join_all().await;
        worker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_shuts_down_takes_no_wakeup_from_another() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let mut raw = bench.raw().await;
    let gate = Gate::new();
    let build = || {
        let builder = bench.worker().poll(NEVER).concurrency(2).task_type::<Wait>();
        builder.task_type::<Double>().data(gate.clone())
    };
    let leaving = bench.start(build());
    let running = bench.client.submit(Wait {}.call()).await.unwrap();
    gate.began.wait_for(1).await;
    raw.until_waiting(2).await;
    let staying = bench.start(build());
    raw.until_waiting(4).await;
    let leaving = tokio::spawn(leaving.stop());
    // This worker now waits only for cancels.
    raw.until_waiting(3).await;
    for number in 0..5 {
        let handle = bench.client.submit(Double { number }.call()).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 2 * number);
    }
    gate.open.hit();
    running.result_within(SOON).await.unwrap();
    leaving.await.unwrap();
    staying.stop().await;
}

/// The worker learns with its claim that Redis does not know it. The next heartbeat and the next
/// poll are far away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_is_submitted_after_redis_has_lost_all_data_wakes_an_idle_worker() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let mut raw = bench.raw().await;
    let gate = Gate::new();
    gate.open.hit();
    let builder = bench.worker().lease(NEVER).poll(NEVER).task_type::<Wait>();
    let worker = bench.start(builder.data(gate.clone()));
    for number in 1..=20 {
        raw.until_waiting(2).await;
        raw.run("FLUSHALL").await;
        bench.client.submit(Wait {}.call()).await.unwrap();
        gate.began.wait_for(number).await;
    }
    worker.stop().await;
}

/// Starts a worker that listens, and whose only thread a [`KeepThread`] can keep.
async fn kept(bench: &Bench, raw: &mut Raw, hold: &Hold) -> OneThreadWorker {
    let builder = bench.worker().name("kept").poll(NEVER).queues(["hold", "default"]);
    let builder = builder.concurrency(4).task_type::<KeepThread>().task_type::<Double>();
    let kept = OneThreadWorker::start(builder.data(hold.clone()));
    raw.until_waiting(2).await;
    kept
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wakeup_that_a_blocked_worker_takes_is_passed_on_to_another() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let (mut raw, hold) = (bench.raw().await, Hold::new());
    let kept = kept(&bench, &mut raw, &hold).await;
    let holding = bench.client.submit(KeepThread {}.call().queue("hold")).await.unwrap();
    hold.arrivals().wait_for(1).await;
    raw.until_waiting(2).await;
    // This worker waits after the worker whose thread is blocked, which is woken first.
    let free = bench.start(bench.worker().poll(NEVER).task_type::<Double>());
    raw.until_waiting(4).await;
    for number in 0..5 {
        let handle = bench.client.submit(Double { number }.call()).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 2 * number);
    }
    hold.release();
    holding.result_within(SOON).await.unwrap();
    free.stop().await;
    drop(kept);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_due_task_runs_elsewhere_if_handlers_block_the_worker_that_waits_for_it() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let (mut raw, hold) = (bench.raw().await, Hold::new());
    let kept = kept(&bench, &mut raw, &hold).await;
    let free = bench.start(bench.worker().poll(NEVER).task_type::<Double>());
    raw.until_waiting(4).await;
    let due = Double { number: 21 }.call().due(Due::In(Duration::from_secs(2)));
    let due = bench.client.submit(due).await.unwrap();
    let timer = format!("HGET {} timer", bench.key("default", "meta"));
    let is_waited_for = async || {
        let timer = raw.run(&timer).await;
        timer.first().is_some_and(|worker| worker.starts_with(b"kept"))
    };
    eventually("the worker that was woken first waits for the due time", SOON, is_waited_for).await;
    let holding = bench.client.submit(KeepThread {}.call().queue("hold")).await.unwrap();
    hold.arrivals().wait_for(1).await;
    assert_eq!(due.result_within(SOON).await.unwrap(), 42);
    assert_eq!(holding.status().await.unwrap(), TaskState::Working);
    hold.release();
    holding.result_within(SOON).await.unwrap();
    free.stop().await;
    drop(kept);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_whose_wakeup_is_lost_is_polled_while_others_wake_the_worker_all_the_time() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let (mut waiter, mut raw) = (bench.raw().await, bench.raw().await);
    let wait = format!("BLPOP {} 0", bench.key("quiet", "wake"));
    let taken = tokio::spawn(async move { waiter.run(&wait).await.len() });
    raw.until_waiting(1).await;
    let builder = bench.worker().poll(Duration::from_secs(1)).queues(["busy", "quiet"]);
    let worker = bench.start(builder.task_type::<Double>());
    raw.until_waiting(3).await;
    let lost = bench.client.submit(Double { number: 21 }.call().queue("quiet")).await.unwrap();
    assert_eq!(taken.await.unwrap(), 2, "the test took the key and its wakeup");
    let mut others = 0;
    while lost.status().await.unwrap() != TaskState::Success {
        let call = Double { number: 1 }.call().queue("busy");
        let other = bench.client.submit(call).await.unwrap();
        assert_eq!(other.result_within(SOON).await.unwrap(), 2);
        others += 1;
        assert!(others < 20_000, "a poll finds the task");
    }
    worker.stop().await;
}
