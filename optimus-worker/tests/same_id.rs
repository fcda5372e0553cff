//! One id submitted by several clients is one task.

mod common;

use std::time::Duration;

use common::{Bench, Double, Gate, Wait};
use optimus_core::{QueueName, Task, TaskId};
use optimus_testkit::eventually;

const SOON: Duration = Duration::from_secs(20);

fn new_id() -> TaskId {
    TaskId::new(QueueName::new("default").unwrap())
}

on_both! {
    async fn a_task_that_two_clients_submit_under_one_id_runs_once(bench: Bench) {
        let other = bench.client_builder().connect().await.unwrap();
        let id = new_id();
        let call = || Double { number: 21 }.call().id(id.clone());
        let first = bench.client.submit(call()).await.unwrap();
        let second = other.submit(call()).await.unwrap();
        assert_eq!((first.is_duplicate(), second.is_duplicate()), (false, true));
        assert_eq!((first.id(), second.id()), (&id, &id));
        let counts = bench.client.inspector().counts(id.queue()).await.unwrap();
        assert_eq!((counts.ready, counts.success), (1, 0));
        let worker = bench.start(bench.worker().task_type::<Double>());
        assert_eq!(second.result_within(SOON).await.unwrap(), 42);
        worker.stop().await;
    }

    async fn an_id_of_another_queue_than_the_call_names_is_refused(bench: Bench) {
        let id = new_id();
        let call = |queue: &str| Double { number: 21 }.call().id(id.clone()).queue(queue);
        let problem = bench.client.submit(call("bulk")).await.unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("bulk"), "{problem}");
        assert!(!bench.client.submit(call("default")).await.unwrap().is_duplicate());
    }

    async fn a_task_under_an_id_that_tells_no_time_holds_up_nobody_behind_it(bench: Bench) {
        let (client, gate) = (&bench.client, Gate::new());
        client.submit_all((0..100).map(|_| Wait {}.call().priority(-100))).await.unwrap();
        let id = "default/f47ac10b-58cc-4372-a567-0e02b2c3d479".parse().unwrap();
        let first = client.submit(Double { number: 21 }.call().id(id)).await.unwrap();
        let plain: Vec<_> = (0..10).map(|number| Double { number }.call()).collect();
        let behind = client.submit_all(plain).await.unwrap();
        // Whoever of low priority began would keep the only slot.
        let worker = bench.worker().data(gate.clone()).concurrency(1);
        let worker = bench.start(worker.task_type::<Wait>().task_type::<Double>());
        assert_eq!(first.result_within(SOON).await.unwrap(), 42);
        for handle in &behind {
            handle.result_within(SOON).await.unwrap();
        }
        gate.open.hit();
        worker.stop().await;
    }

    async fn one_uuid_in_many_queues_is_a_task_in_each_that_runs_once(bench: Bench) {
        let (gate, uuid) = (Gate::new(), new_id().uuid());
        let queues: Vec<String> = (0..40).map(|n| format!("q{n}")).collect();
        let (mut long, mut short) = (Vec::new(), Vec::new());
        for (n, queue) in queues.iter().enumerate() {
            let id = format!("{queue}/{uuid}").parse().unwrap();
            if n % 2 == 0 {
                long.push(bench.client.submit(Wait {}.call().id(id)).await.unwrap());
            } else {
                short.push(bench.client.submit(Double { number: 21 }.call().id(id)).await.unwrap());
            }
        }
        let worker = bench.worker().queues(&queues).data(gate.clone()).concurrency(100);
        let worker = bench.start(worker.task_type::<Wait>().task_type::<Double>());
        for handle in &short {
            assert_eq!(handle.result_within(SOON).await.unwrap(), 42);
        }
        gate.began.wait_for(20).await;
        // Each comparison of the worker with what Redis says it holds comes with a renewal.
        let inspector = bench.client.inspector();
        let mut renewals = Vec::new();
        eventually("leases are renewed three times", SOON, async || {
            let worker = inspector.workers(long[0].id().queue()).await.unwrap().remove(0);
            renewals.push(worker.lease_until_ms);
            renewals.dedup();
            renewals.len() > 3
        })
        .await;
        assert_eq!(gate.began.hits(), 20, "a task began beside itself");
        gate.open.hit();
        for handle in &long {
            handle.result_within(SOON).await.unwrap();
        }
        worker.stop().await;
        assert_eq!(gate.began.hits(), 20);
    }
}
