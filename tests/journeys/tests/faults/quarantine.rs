//! A task that may have killed a worker waits for a worker that runs nothing else. No worker stops
//! for long because of it.

use std::time::Duration;

use crate::common::{Bench, Double, Gate, Running, Wait};
use optimus_core::{
    BoxError, Context, Gate as LimitGate, Limit, ProcessAnswer, QueueName, Rate, Task, TaskHandle,
    TaskOptions, TaskState, WorkerId,
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

/// The same with a rate.
#[derive(Serialize, Deserialize)]
struct Paced {}

impl Task for Paced {
    const NAME: &'static str = "paced";
    type Output = ();

    fn options() -> TaskOptions {
        Fragile::options().rate(Rate::per_second(1))
    }

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

fn queue() -> QueueName {
    QueueName::new("default").unwrap()
}

/// A worker that claims a task and dies.
async fn claim_and_die(bench: &Bench) {
    let (broker, ghost) = (bench.client.broker(), WorkerId::generate("ghost", 1));
    broker.register(&queue(), &ghost, LEASE, "{}").await.unwrap();
    let claimed = broker.claim(&queue(), &ghost, 1, 1).await.unwrap();
    assert_eq!(claimed.grants.len(), 1);
}

/// Starts a worker with a long task, which also holds a quarantined task.
async fn drained(bench: &Bench, gate: &Gate) -> (Running, TaskHandle<()>) {
    let quarantined = bench.client.submit(Fragile {}.call()).await.unwrap();
    claim_and_die(bench).await;
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

    async fn a_quarantined_task_runs_elsewhere_once_its_worker_has_no_slot_for_it(bench: Bench) {
        for slots in [None, Some(1)] {
            let gate = Gate::new();
            let (worker, quarantined) = drained(&bench, &gate).await;
            let processes = bench.client.inspector().processes(None, 10).await.unwrap().rows;
            let process = bench.client.process(&processes[0].id);
            let answer = match slots {
                Some(count) => process.slots(count).await,
                None => process.quiet().await,
            };
            assert_eq!(answer.unwrap(), ProcessAnswer::Asked);
            let other = bench.start(bench.worker().lease(LEASE).task_type::<Fragile>());
            quarantined.result_within(SOON).await.unwrap();
            gate.open.hit();
            worker.stop().await;
            other.stop().await;
        }
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

    async fn a_quarantined_task_with_a_rate_runs_and_so_do_those_behind_it(bench: Bench) {
        let quarantined = bench.client.submit(Paced {}.call()).await.unwrap();
        claim_and_die(&bench).await;
        let behind = (0..8).map(|_| Paced {}.call());
        let behind = bench.client.submit_all(behind).await.unwrap();
        let builder = bench.worker().lease(LEASE).concurrency(4).task_type::<Paced>();
        let worker = bench.start(builder);
        quarantined.result_within(LATER).await.unwrap();
        assert_eq!(behind[7].status().await.unwrap(), TaskState::Blocked, "it runs before them");
        behind[7].result_within(LATER).await.unwrap();
        worker.stop().await;
    }

    async fn a_quarantined_task_of_a_queue_with_a_rate_runs(bench: Bench) {
        let quarantined = bench.client.submit(Fragile {}.call()).await.unwrap();
        claim_and_die(&bench).await;
        let gate = bench.client.gate("default", LimitGate::Queue);
        gate.set(Limit::new().rate(Rate::per_second(1))).await.unwrap();
        let next = bench.client.submit(Double { number: 4 }.call()).await.unwrap();
        let builder = bench.worker().lease(LEASE).concurrency(4);
        let worker = bench.start(builder.task_type::<Fragile>().task_type::<Double>());
        quarantined.result_within(LATER).await.unwrap();
        assert_eq!(next.result_within(LATER).await.unwrap(), 8);
        worker.stop().await;
    }
}
