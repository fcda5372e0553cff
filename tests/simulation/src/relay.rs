//! A relay of the queues' effects.

use optimus_core::{Client, QueueName, platform};

/// Carries the effects of these queues once. Tasks ask again or give up as if it were this many ms
/// later. Nothing else is of that time: a task that becomes free then would not be due.
pub(crate) async fn turn(client: &Client, queues: &[QueueName], ahead_ms: u64) {
    let broker = client.broker();
    let Ok(busy) = broker.outboxes(queues).await else { return };
    for (queue, _) in queues.iter().zip(busy).filter(|(_, is_busy)| *is_busy) {
        // The next turn does what this one could not do.
        if ahead_ms > 0 {
            drop(broker.at(platform::now_ms() + ahead_ms).reask(queue).await);
        }
        drop(broker.relay(queue).await);
    }
}
