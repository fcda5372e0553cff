//! One id submitted by several clients is one task.

mod common;

use std::time::Duration;

use common::{Bench, Double};
use optimus_core::{QueueName, Task, TaskId};

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
}
