//! Workers whose future or runtime ends before the worker has ended.

use std::{future::pending, thread, time::Duration};

use crate::common::{Bench, Double, Gate, Wait, blocking_task::KeepThread, view};
use optimus_core::{QueueName, Task, TaskHandle, TaskState};
use optimus_testkit::{Hold, RedisServer, Signal, eventually};
use optimus_worker::WorkerBuilder;
use tokio::runtime::{Builder, Runtime};

const SOON: Duration = Duration::from_secs(20);
/// The lease. It is so long that no lease ends in a test.
const LEASE: Duration = Duration::from_secs(600);

fn waiting(bench: &Bench, gate: &Gate) -> WorkerBuilder {
    bench.worker().lease(LEASE).task_type::<Wait>().data(gate.clone())
}

async fn begun(bench: &Bench, gate: &Gate) -> TaskHandle<()> {
    let handle = bench.client.submit(Wait {}.call()).await.unwrap();
    gate.began.wait_for(1).await;
    handle
}

/// Checks that the task was given back without an attempt, and that the worker has left.
async fn is_given_back(bench: &Bench, handle: &TaskHandle<()>) {
    let queue = QueueName::new("default").unwrap();
    eventually("the worker has left", SOON, async || {
        bench.client.inspector().workers(&queue).await.unwrap().is_empty()
    })
    .await;
    let task = view(bench, handle.id()).await;
    assert_eq!((task.state, task.failures, task.losses), (TaskState::Ready, 0, 0));
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

on_both! {
    async fn a_worker_whose_future_is_dropped_gives_back_its_tasks_and_leaves(bench: Bench) {
        let gate = Gate::new();
        let worker = waiting(&bench, &gate).build().unwrap();
        let running = tokio::spawn(worker.run_until(pending::<()>()));
        let handle = begun(&bench, &gate).await;
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
        is_given_back(&bench, &handle).await;
    }

    async fn a_worker_whose_stop_panics_gives_back_its_tasks_and_leaves(bench: Bench) {
        let (gate, stop) = (Gate::new(), Signal::new());
        let worker = waiting(&bench, &gate).build().unwrap();
        let stopped = stop.clone();
        let running = tokio::spawn(worker.run_until(async move {
            stopped.wait_for(1).await;
            assert_eq!(stopped.hits(), 0, "a stop that panics");
        }));
        let handle = begun(&bench, &gate).await;
        stop.hit();
        assert!(running.await.unwrap_err().is_panic());
        is_given_back(&bench, &handle).await;
    }

    async fn a_worker_whose_runtime_ends_gives_back_its_tasks_and_leaves(bench: Bench) {
        let gate = Gate::new();
        let worker = waiting(&bench, &gate).build().unwrap();
        let runtime = runtime();
        drop(runtime.spawn(worker.run_until(pending::<()>())));
        let handle = begun(&bench, &gate).await;
        runtime.shutdown_background();
        is_given_back(&bench, &handle).await;
    }

    async fn a_worker_inside_a_program_returns_while_handlers_keep_every_thread(bench: Bench) {
        let hold = Hold::new();
        let builder = bench.worker().shutdown_grace(Duration::ZERO).task_type::<KeepThread>();
        let worker = builder.data(hold.clone()).build().unwrap();
        let (runtime, stop) = (runtime(), Signal::new());
        let stopped = stop.clone();
        // A thread outside the runtime polls the worker.
        let program = thread::spawn(move || {
            runtime.block_on(worker.run_until(stopped.wait_for(1))).unwrap();
            runtime
        });
        bench.client.submit_all([KeepThread {}.call(), KeepThread {}.call()]).await.unwrap();
        hold.arrivals().wait_for(2).await;
        stop.hit();
        eventually("the worker has returned", SOON, async || program.is_finished()).await;
        hold.release();
        program.join().unwrap().shutdown_background();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_was_dropped_leaves_no_connection() {
    let redis = RedisServer::start();
    let bench = Bench::at(&redis.url()).await;
    bench.client.submit(Double { number: 1 }.call()).await.unwrap();
    let mut raw = bench.raw().await;
    let mut connections = async || {
        let list = raw.run("CLIENT LIST").await.remove(0);
        String::from_utf8(list).unwrap().lines().count()
    };
    let before = connections().await;
    let gate = Gate::new();
    let worker = waiting(&bench, &gate).build().unwrap();
    let running = tokio::spawn(worker.run_until(pending::<()>()));
    let handle = begun(&bench, &gate).await;
    assert!(connections().await > before);
    running.abort();
    is_given_back(&bench, &handle).await;
    eventually("the worker's connections are closed", SOON, async || connections().await == before)
        .await;
}
