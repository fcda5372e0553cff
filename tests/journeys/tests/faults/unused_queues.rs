//! Workers remove queues that are unused.

use std::time::Duration;

use crate::common::Bench;
use optimus_core::{QueueName, Task, TaskOptions};
use optimus_testkit::eventually;

const SOON: Duration = Duration::from_secs(60);

idle_task!(Unit, "unit", TaskOptions::new());

fn name(queue: &str) -> QueueName {
    QueueName::new(queue).unwrap()
}

/// Returns the keys of a queue, without the keys that woke a worker when it left, because these
/// expire soon.
async fn keys_of(bench: &Bench, queue: &str) -> Vec<String> {
    let all = bench.raw().await.run(&format!("KEYS {}", bench.key(queue, "*"))).await;
    let all = all.into_iter().map(|key| String::from_utf8(key).unwrap());
    all.filter(|key| !key.contains(":interrupt:")).collect()
}

/// Returns whether no client keeps a ledger of a queue. A janitor removes a ledger that was given
/// up whenever it comes, so the ledger may be gone already.
async fn has_left(bench: &Bench, queue: &str) -> bool {
    let ledgers = bench.key(queue, "ledgers");
    bench.raw().await.run(&format!("ZRANGEBYSCORE {ledgers} (0 +inf")).await.is_empty()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_nobody_uses_is_removed_by_a_worker_of_another() {
    let bench = Bench::on_redis().await;
    let inspector = bench.client.inspector();
    let old = bench.start(bench.worker().queues(["old"]).task_type::<Unit>());
    let client = bench.client_builder().connect().await.unwrap();
    let calls = (0..100).map(|_| Unit {}.call().queue("old"));
    for handle in client.submit_all(calls).await.unwrap() {
        handle.result_within(SOON).await.unwrap();
    }
    drop(client);
    old.stop().await;
    assert!(inspector.queues().await.unwrap().contains(&name("old")));
    eventually("the client has left", SOON, async || has_left(&bench, "old").await).await;

    let worker = bench.worker().queues(["default"]).keep_unused_queues(Duration::from_millis(1));
    let worker = bench.start(worker.task_type::<Unit>());
    let gone = async || inspector.queues().await.unwrap() == [name("default")];
    eventually("the queue is no longer listed", SOON, gone).await;
    assert_eq!(keys_of(&bench, "old").await, [""; 0]);
    let handle = bench.client.submit(Unit {}.call().queue("old")).await.unwrap();
    assert!(inspector.queues().await.unwrap().contains(&name("old")));
    handle.cancel().await.unwrap();
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_is_used_while_it_is_removed_stays_known() {
    let bench = Bench::on_redis().await;
    let (broker, inspector) = (bench.client.broker().separate("test"), bench.client.inspector());
    for round in 0..100 {
        let queue = name(&format!("q{round}"));
        broker.announce(&queue).await.unwrap();
        let removed = broker.retire(&queue, Duration::ZERO);
        let call = Unit {}.call().queue(queue.as_str());
        let (_, submitted) = tokio::join!(removed, bench.client.submit(call));
        assert!(!submitted.unwrap().is_duplicate());
        assert!(inspector.queues().await.unwrap().contains(&queue), "round {round}");
        assert_eq!(inspector.counts(&queue).await.unwrap().ready, 1);
    }
}
