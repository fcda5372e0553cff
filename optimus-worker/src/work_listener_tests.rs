//! A wakeup that a work listener has popped is never lost.

use std::time::Duration;

use optimus_core::Task;

use super::*;
use crate::test_worker::{Nothing, idle_worker};

const SOON: Duration = Duration::from_secs(20);
const NOW: Duration = Duration::from_millis(10);

#[tokio::test]
async fn a_wakeup_that_no_claim_answered_is_passed_on_when_the_worker_ends() {
    let (client, shared) = idle_worker("wakeup-at-the-end").await;
    let queue = &shared.queues[0];
    queue.found_empty(queue.ask());
    let mut ending = WorkListener::new(shared.clone(), CancellationToken::new());
    client.submit(Nothing {}.call()).await.unwrap();
    assert_eq!(ending.tick().await, CLAIM_FIRST);
    let (names, other) = ([queue.name.clone()], crate::worker_start::new_worker_id(&shared.config));
    let listener = shared.broker.blocking("listener");
    let wait =
        async |within| listener.wait_for_work(&names, (&queue.name, &other), within).await.unwrap();
    assert_eq!(wait(NOW).await, None, "the worker has popped it");
    // Redis refuses the claim because the lease is over, as it does after it lost data.
    queue.ask();
    ending.leave().await;
    assert_eq!(wait(SOON).await, Some(Woken::Work(queue.name.clone())));
    ending.leave().await;
    assert_eq!(wait(NOW).await, None, "the wakeup is passed on once");
}

#[tokio::test]
async fn a_wakeup_whose_claim_is_refused_is_passed_on_and_no_more_are_taken() {
    let (client, shared) = idle_worker("wakeup-refused").await;
    let queue = &shared.queues[0];
    queue.found_empty(queue.ask());
    let mut refused = WorkListener::new(shared.clone(), CancellationToken::new());
    client.submit(Nothing {}.call()).await.unwrap();
    assert_eq!(refused.tick().await, CLAIM_FIRST);
    queue.refused(queue.ask());
    assert_eq!(refused.tick().await, UNTIL_WOKEN, "it listens to no queue");
    let (names, other) = ([queue.name.clone()], crate::worker_start::new_worker_id(&shared.config));
    let listener = shared.broker.blocking("listener");
    let wait =
        async |within| listener.wait_for_work(&names, (&queue.name, &other), within).await.unwrap();
    assert_eq!(wait(SOON).await, Some(Woken::Work(queue.name.clone())));
    assert_eq!(refused.tick().await, UNTIL_WOKEN);
    assert_eq!(wait(NOW).await, None, "the wakeup is passed on once");
    queue.accepted();
    queue.found_empty(queue.ask());
    client.submit(Nothing {}.call()).await.unwrap();
    assert_eq!(refused.tick().await, CLAIM_FIRST, "it listens again");
}
