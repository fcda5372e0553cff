//! Operations on tasks that move on to other lists meanwhile, and on a Redis that answers slowly.

use std::time::{Duration, Instant};

use optimus_core::{Due, OperationAct, OperationState, QueueName, Task, TaskState, WorkerId};
use optimus_testkit::FaultProxy;
use tokio::task::yield_now;

use super::operations::{SOON, all, clock_moves_on, count};
use crate::common::{Bench, Double};

/// How many tasks a page has. Some of them are changed in one call.
const PAGE: u64 = 128;

/// Once a task is cancelled, lets a worker claim one. This moves all tasks that are due to the
/// ready list. Returns how many it has claimed.
async fn move_on(bench: &Bench) -> u64 {
    let broker = bench.client.broker();
    let (queue, worker) = (QueueName::new("default").unwrap(), WorkerId::from_stored("w"));
    broker.register(&queue, &worker, SOON, "{}").await.unwrap();
    while count(bench, TaskState::Cancelled).await == 0 {
        yield_now().await;
    }
    let claimed = broker.claim(&queue, &worker, 1, 1).await.unwrap();
    claimed.grants.len().try_into().unwrap()
}

on_both! {
    async fn tasks_that_move_on_while_a_page_is_changed_are_met_again(bench: Bench) {
        let soon = |number| Double { number }.call().due(Due::In(Duration::from_millis(1)));
        bench.client.submit_all((0..PAGE).map(|number| soon(number.try_into().unwrap())))
            .await
            .unwrap();
        // They are due, and nobody has moved them yet.
        clock_moves_on(&bench).await;
        let operations = bench.client.operations();
        let filter = all(TaskState::Delayed).or(TaskState::Ready);
        let counted = operations.count(OperationAct::Cancel, filter, "ann").await.unwrap();
        assert_eq!((counted.state, counted.matched), (OperationState::Counted, PAGE));
        operations.confirm(&counted.id, PAGE, "").await.unwrap();
        let (claimed, done) = tokio::join!(move_on(&bench), operations.carry(&counted.id));
        let done = done.unwrap();
        assert_eq!((done.state, done.left()), (OperationState::Done, 0), "{done:?}");
        assert_eq!((done.done, done.gone), (PAGE - claimed, claimed), "{done:?}");
        for state in [TaskState::Delayed, TaskState::Ready] {
            assert_eq!(count(&bench, state).await, 0, "{state}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_on_a_slow_redis_ends_long_before_its_lease() {
    let bench = Bench::on_redis().await;
    let calls = (0..17 * PAGE).map(|number| Double { number: number.try_into().unwrap() }.call());
    bench.client.submit_all(calls).await.unwrap();
    let proxy = FaultProxy::start(&bench.url()).await;
    let far = Bench::shared(&proxy.url(), bench.namespace()).await;
    proxy.delay(Duration::from_millis(150));
    let (begun, operations) = (Instant::now(), far.client.operations());
    let filter = all(TaskState::Ready);
    let found = operations.count(OperationAct::Cancel, filter, "ann").await.unwrap();
    // A lease lasts 10 s. With the pauses between them, all pages take about 20 s.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    assert_eq!(found.state, OperationState::Counting);
    assert!(found.scanned > 0, "{found:?}");
}
