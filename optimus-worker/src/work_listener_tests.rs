//! A wakeup that a work listener has popped is never lost.

use std::{slice, time::Duration};

use optimus_core::{Client, Task};

use super::*;
use crate::{
    test_worker::{Nothing, idle_worker},
    worker_start::new_worker_id,
};

const SOON: Duration = Duration::from_secs(20);
const NOW: Duration = Duration::from_millis(10);

/// Returns a worker whose listener has popped the wakeup of a task.
async fn with_a_popped_wakeup(namespace: &str) -> (Client, Arc<Shared>, WorkListener) {
    let (client, shared) = idle_worker(namespace).await;
    let queue = &shared.queues[0];
    queue.found_empty(queue.ask());
    let mut listener = WorkListener::new(shared.clone(), CancellationToken::new());
    client.submit(Nothing {}.call()).await.unwrap();
    assert_eq!(listener.tick().await, CLAIM_FIRST);
    (client, shared, listener)
}

/// Waits for a wakeup as another worker.
async fn wait_elsewhere(shared: &Shared, within: Duration) -> Option<Woken> {
    let queue = &shared.queues[0].name;
    let other = new_worker_id(&shared.config);
    let connection = shared.broker.blocking("listener");
    let names = slice::from_ref(queue);
    connection.wait_for_work(names, (queue, &other), within).await.unwrap()
}

#[tokio::test]
async fn a_wakeup_that_no_claim_answered_is_passed_on_when_the_worker_ends() {
    let (_client, shared, mut ending) = with_a_popped_wakeup("wakeup-at-the-end").await;
    let queue = &shared.queues[0];
    assert_eq!(wait_elsewhere(&shared, NOW).await, None, "the worker has popped it");
    // Redis refuses the claim because the lease is over, as it does after it lost data.
    queue.ask();
    ending.leave().await;
    assert_eq!(wait_elsewhere(&shared, SOON).await, Some(Woken::Work(queue.name.clone())));
    ending.leave().await;
    assert_eq!(wait_elsewhere(&shared, NOW).await, None, "the wakeup is passed on once");
}

#[tokio::test]
async fn a_wakeup_whose_claim_is_refused_is_passed_on_and_no_more_are_taken() {
    let (client, shared, mut refused) = with_a_popped_wakeup("wakeup-refused").await;
    let queue = &shared.queues[0];
    queue.refused(queue.ask());
    assert_eq!(refused.tick().await, UNTIL_WOKEN, "it listens to no queue");
    assert_eq!(wait_elsewhere(&shared, SOON).await, Some(Woken::Work(queue.name.clone())));
    assert_eq!(refused.tick().await, UNTIL_WOKEN);
    assert_eq!(wait_elsewhere(&shared, NOW).await, None, "the wakeup is passed on once");
    queue.accepted();
    queue.found_empty(queue.ask());
    client.submit(Nothing {}.call()).await.unwrap();
    assert_eq!(refused.tick().await, CLAIM_FIRST, "it listens again");
}
