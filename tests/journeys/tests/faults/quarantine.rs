//! A task that may have killed a worker waits for a worker that runs nothing else. No worker stops
//! for long because of it.

use std::time::Duration;

use crate::common::{Bench, Double, Gate, Running, Wait};
use optimus_core::{
    BoxError, Context, QueueName, Task, TaskHandle, TaskOptions, TaskState, WorkerId,
};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize};

/// The longest time of the first drain of a worker, which is 10 s, and a margin.
const DRAIN: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_secs(5);
const LATER: Duration = Duration::from_secs(30);
const LEASE: Duration = Duration::from_secs(1);

/// A task that is quarantined after its first loss.
#[derive(Serialize, Deserialize)]
struct Fragile {}

impl Task for Fragile {
    const NAME: &'static str = "fragile";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().max_losses(2)
    }

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

fn queue() -> QueueName {
    QueueName::new("default").unwrap()
}

/// Starts a worker with a long task, which also holds a quarantined task.
async fn drained(bench: &Bench, gate: &Gate) -> (Running, TaskHandle<()>) {
    let quarantined = bench.client.submit(Fragile {}.call()).await.unwrap();
    let (broker, ghost) = (bench.client.broker(), WorkerId::generate("ghost", 1));
    broker.register(&queue(), &ghost, LEASE, "{}").await.unwrap();
    let claimed = broker.claim(&queue(), &ghost, 1, 1).await.unwrap();
    assert_eq!(claimed.grants.len(), 1);
    bench.client.submit(Wait {}.call()).await.unwrap();
    let builder = bench.worker().lease(LEASE).concurrency(4).data(gate.clone());
    let builder = builder.task_type::<Wait>().task_type::<Fragile>().task_type::<Double>();
    let worker = bench.start(builder);
    gate.began.wait_for(1).await;
    eventually("the ghost is reaped, and its task is held", LATER, async || {
        let view = crate::common::view(bench, quarantined.id()).await;
        view.losses == 1 && view.state == TaskState::Working
    })
    .await;
    (worker, quarantined)
}

on_both! {
    async fn a_worker_with_a_long_task_and_a_quarantined_one_claims_again_within_the_bound(
        bench: Bench
    ) {
        let gate = Gate::new();
        let (worker, quarantined) = drained(&bench, &gate).await;
        let other = bench.client.submit(Double { number: 4 }.call()).await.unwrap();
        assert_eq!(other.result_within(DRAIN + SOON).await.unwrap(), 8);
        let next = bench.client.submit(Double { number: 5 }.call()).await.unwrap();
        assert_eq!(next.result_within(SOON).await.unwrap(), 10, "the worker claims again");
        gate.open.hit();
        quarantined.result_within(2 * DRAIN).await.unwrap();
        worker.stop().await;
    }

    async fn a_quarantined_task_is_cancelled_at_once_and_its_worker_claims_again(bench: Bench) {
        let gate = Gate::new();
        let (worker, quarantined) = drained(&bench, &gate).await;
        let other = bench.client.submit(Double { number: 4 }.call()).await.unwrap();
        quarantined.cancel().await.unwrap();
        assert_eq!(other.result_within(SOON).await.unwrap(), 8);
        eventually("the task is cancelled", SOON, async || {
            quarantined.status().await.unwrap() == TaskState::Cancelled
        })
        .await;
        gate.open.hit();
        worker.stop().await;
    }
}
