//! Dead workers. Their tasks run elsewhere, within the lease and a second.

use std::time::{Duration, Instant};

use crate::common::{Bench, Double, Running};
use optimus_core::{
    Lease, QueueName, Task, TaskState, WorkerId,
    broker::{Failure, FailureOutcome},
};
use optimus_testkit::Signal;

const LEASE: Duration = Duration::from_secs(2);

fn queue() -> QueueName {
    QueueName::new(QueueName::DEFAULT).unwrap()
}

/// Adds a worker as Redis sees it after a kill -9. It is registered and holds tasks, but sends
/// nothing.
async fn ghost_takes(bench: &Bench, tasks: usize) -> WorkerId {
    let broker = bench.client.broker();
    let ghost = WorkerId::generate("ghost", 1);
    broker.register(&queue(), &ghost, LEASE, "{}").await.unwrap();
    let claimed = broker.claim(&queue(), &ghost, 1, tasks).await.unwrap();
    assert_eq!(claimed.grants.len(), tasks);
    ghost
}

async fn recovers_with(bench: &Bench, workers: usize) {
    let calls = (0..20).map(|number| Double { number }.call());
    let handles = bench.client.submit_all(calls).await.unwrap();
    ghost_takes(bench, 20).await;
    let died = Instant::now();
    let start = || bench.start(bench.worker().lease(LEASE).concurrency(4).task_type::<Double>());
    let workers: Vec<Running> = (0..workers).map(|_| start()).collect();
    for handle in &handles {
        handle.result_within(Duration::from_secs(20)).await.unwrap();
    }
    let took = died.elapsed();
    assert!(
        took >= LEASE.mul_f64(0.9),
        "the worker was reaped before its lease was over: {took:?}"
    );
    assert!(took <= LEASE + Duration::from_secs(1), "the tasks were recovered only after {took:?}");
    for worker in workers {
        worker.stop().await;
    }
}

on_both! {
    async fn one_worker_recovers_what_a_dead_one_held(bench: Bench) {
        recovers_with(&bench, 1).await;
    }

    async fn a_queue_that_nobody_serves_is_cleaned_up_by_a_worker_of_another(bench: Bench) {
        let (broker, orphan) = (bench.client.broker(), QueueName::new("orphan").unwrap());
        let calls = (0..2).map(|number| Double { number }.call().queue("orphan"));
        let handles = bench.client.submit_all(calls).await.unwrap();
        let (ghost, lease) = (WorkerId::generate("ghost", 1), Duration::from_millis(500));
        broker.register(&orphan, &ghost, lease, "{}").await.unwrap();
        let claimed = broker.claim(&orphan, &ghost, 1, 2).await.unwrap();
        let id = handles[0].id().clone();
        let dead = Failure {
            lease: Lease { id, worker: ghost.clone(), token: claimed.token },
            outcome: FailureOutcome::Dead,
            shut: None,
            error: String::new(),
        };
        let call = broker.fail_call(&orphan, &ghost, &[dead]);
        assert!(broker.report(call).await.unwrap().stale.is_empty());
        // The test waits for the end of the worker's lease, and for another lease after the first
        // turn, because no worker watched before.
        tokio::time::sleep(lease).await;
        let stranger = WorkerId::generate("stranger", 1);
        assert_eq!(broker.reap(&orphan, &stranger, lease, 10).await.unwrap().tasks, 0);
        tokio::time::sleep(lease).await;

        let worker = bench.worker().keep_ended(0, LEASE).task_type::<Double>();
        let worker = bench.start(worker);
        optimus_testkit::eventually("the task is taken back", LEASE * 5, async || {
            handles[1].status().await.unwrap() == TaskState::Ready
        })
        .await;
        let task = bench.client.inspector().get(handles[1].id()).await.unwrap().unwrap();
        assert_eq!((task.failures, task.losses), (0, 1));
        optimus_testkit::eventually("the dead task is purged", LEASE * 5, async || {
            broker.counts(&orphan).await.unwrap().dead == 0
        })
        .await;
        worker.stop().await;
    }

    async fn a_loss_is_counted_apart_from_failures_and_three_make_the_task_dead(bench: Bench) {
        let handle = bench.client.submit(Double { number: 1 }.call()).await.unwrap();
        let broker = bench.client.broker();
        let (bystander, lease) = (WorkerId::generate("bystander", 1), Duration::from_millis(500));
        for losses in 1..=3 {
            let ghost = WorkerId::generate("ghost", losses);
            broker.register(&queue(), &ghost, lease, "{}").await.unwrap();
            assert_eq!(broker.claim_alone(&queue(), &ghost, 1).await.unwrap().grants.len(), 1);
            let reaped = async || {
                broker.register(&queue(), &bystander, lease, "{}").await.unwrap();
                broker.reap(&queue(), &bystander, lease, 10).await.unwrap().tasks == 1
            };
            optimus_testkit::eventually("the ghost is reaped", LEASE * 2, reaped).await;
        }
        assert_eq!(handle.status().await.unwrap(), TaskState::Dead);
        let task = bench.client.inspector().get(handle.id()).await.unwrap().unwrap();
        assert_eq!((task.failures, task.losses, task.errors.len()), (0, 3, 3));
        assert!(task.errors[2].message.contains("was not heard from"), "{:?}", task.errors);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_workers_recover_what_a_dead_one_held() {
    recovers_with(&Bench::on_redis().await, 64).await;
}

#[tokio::test]
#[ignore = "other tests start this process with its settings"]
async fn a_worker_process_for_the_other_tests() {
    let bench = Bench::of_parent().await;
    let gate = crate::common::Gate::new();
    let worker = bench
        .start(bench.worker().lease(LEASE).task_type::<crate::common::Wait>().data(gate.clone()));
    gate.began.wait_for(1).await;
    println!("began");
    Signal::new().wait_for(1).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_of_a_killed_process_runs_elsewhere_within_the_lease_and_a_second() {
    let bench = Bench::on_redis().await;
    let mut doomed = bench.child("recovery::a_worker_process_for_the_other_tests").start();
    let handle = bench.client.submit(crate::common::Wait {}.call()).await.unwrap();
    doomed.wait_for_line("began", Duration::from_secs(20)).await;
    let gate = crate::common::Gate::new();
    let worker = bench
        .start(bench.worker().lease(LEASE).task_type::<crate::common::Wait>().data(gate.clone()));
    doomed.kill9();
    let died = Instant::now();
    gate.began.wait_for(1).await;
    assert!(died.elapsed() <= LEASE + Duration::from_secs(1), "{:?}", died.elapsed());
    gate.open.hit();
    handle.result_within(Duration::from_secs(10)).await.unwrap();
    worker.stop().await;
}
