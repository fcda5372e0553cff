//! Operators name a queue as text. The queue may be unused, or the name may be invalid.

use std::time::Duration;

use crate::common::Bench;
use optimus_core::{QueueAnswer, QueueName, TaskState};

fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

on_both! {
    async fn a_paused_queue_is_listed_before_its_first_task_and_until_it_is_removed(bench: Bench) {
        let (client, inspector) = (&bench.client, bench.client.inspector());
        let answer = client.pause("ahead").await.unwrap();
        assert_eq!(answer, QueueAnswer::Unknown, "nobody has used it");
        assert_eq!(inspector.queues().await.unwrap(), [queue("ahead")]);
        assert!(inspector.counts("ahead").await.unwrap().paused);
        let age = Duration::ZERO;
        assert!(!client.broker().retire(&queue("ahead"), age).await.unwrap(), "it is paused");
        client.resume("ahead").await.unwrap();
        assert!(client.broker().retire(&queue("ahead"), age).await.unwrap());
        assert_eq!(inspector.queues().await.unwrap(), []);
    }

    async fn a_name_that_no_queue_can_have_is_refused_by_every_call(bench: Bench) {
        let (client, inspector) = (&bench.client, bench.client.inspector());
        let problems = [
            client.pause("a b").await.unwrap_err(),
            client.resume("a b").await.unwrap_err(),
            inspector.counts("a b").await.unwrap_err(),
            inspector.workers("a b").await.unwrap_err(),
            inspector.list("a b", TaskState::Dead, None, 1).await.unwrap_err(),
        ];
        for problem in problems {
            assert!(problem.is_invalid() && problem.to_string().contains("a b"), "{problem}");
        }
    }
}
