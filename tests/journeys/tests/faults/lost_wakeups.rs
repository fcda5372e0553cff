//! Tasks run although their wakeup was lost, or although tasks before them can't run.

use std::time::{Duration, Instant};

use crate::common::{Bench, Double, Flaky, Raw};
use optimus_core::{Task, TaskHandle, TaskState};
use optimus_testkit::{RedisServer, eventually};
use tokio::task::JoinHandle;

const SOON: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_secs(1);

async fn state(bench: &Bench, handle: &TaskHandle<u32>) -> Option<TaskState> {
    let task = bench.client.inspector().get(handle.id()).await.unwrap();
    task.map(|task| task.state)
}

/// Starts a client that waits for a wakeup of the queue before all workers. Returns the wait, which
/// ends with the number of items that the client received.
async fn waits_first(bench: &Bench, raw: &mut Raw) -> JoinHandle<usize> {
    let mut waiter = bench.raw().await;
    let wait = format!("BLPOP {} 0", bench.key("default", "wake"));
    let taken = tokio::spawn(async move { waiter.run(&wait).await.len() });
    raw.until_waiting(1).await;
    taken
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wakeup_that_a_dead_client_took_costs_a_poll_and_no_more() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let mut raw = bench.raw().await;
    let taken = waits_first(&bench, &mut raw).await;
    let worker = bench.start(bench.worker().poll(POLL).task_type::<Double>());
    // Two connections of the worker wait, too: one for work, and one for cancels.
    raw.until_waiting(3).await;

    let handle = bench.client.submit(Double { number: 21 }.call()).await.unwrap();
    let submitted_at = Instant::now();
    assert_eq!(taken.await.unwrap(), 2, "the client received the key and its wakeup");
    assert_eq!(handle.result_within(SOON).await.unwrap(), 42);
    let took = submitted_at.elapsed();
    assert!(took < POLL + Duration::from_secs(1), "the task was found only after {took:?}");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_worker_that_takes_a_wakeup_delays_a_task_to_the_next_submit_at_most() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let mut raw = bench.raw().await;
    let taken = waits_first(&bench, &mut raw).await;
    // No other worker polls in time.
    let worker = || bench.worker().poll(10 * SOON).task_type::<Double>();
    let workers = [(); 3].map(|()| bench.start(worker()));
    raw.until_waiting(1 + 2 * 3).await;

    let first = bench.client.submit(Double { number: 21 }.call()).await.unwrap();
    assert_eq!(taken.await.unwrap(), 2, "the client received the key and its wakeup");
    let second = bench.client.submit(Double { number: 22 }.call()).await.unwrap();
    assert_eq!(second.result_within(SOON).await.unwrap(), 44);
    assert_eq!(first.result_within(SOON).await.unwrap(), 42);
    for worker in workers {
        worker.stop().await;
    }
}

on_both! {
    async fn misfits_at_the_front_of_the_ready_list_do_not_delay_later_tasks(bench: Bench) {
        let flaky = |_| Flaky { attempts: 1, panics: false }.call();
        let misfits = bench.client.submit_all((0..300).map(flaky)).await.unwrap();
        let handle = bench.client.submit(Double { number: 21 }.call()).await.unwrap();
        let worker = bench.start(bench.worker().concurrency(2).task_type::<Double>());
        assert_eq!(handle.result_within(SOON).await.unwrap(), 42);
        let waits = async || state(&bench, &misfits[299]).await == Some(TaskState::Delayed);
        eventually("the last misfit waits", SOON, waits).await;
        worker.stop().await;
        let known = bench.start(bench.worker().task_type::<Flaky>());
        for misfit in &misfits {
            assert_eq!(misfit.result_within(SOON).await.unwrap(), 1, "unspent");
        }
        known.stop().await;
    }
}
