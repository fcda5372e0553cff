//! A relay of the queues' effects.

use optimus_core::{Client, QueueName, platform};

/// Carries the effects of these queues once, as if it were this many ms later.
pub(crate) async fn turn(client: &Client, queues: &[QueueName], ahead_ms: u64) {
    let broker = client.broker();
    let Ok(busy) = broker.outboxes(queues).await else { return };
    for (queue, _) in queues.iter().zip(busy).filter(|(_, is_busy)| *is_busy) {
        let turn = match ahead_ms {
            0 => broker.relay(queue).await,
            _ => broker.at(platform::now_ms() + ahead_ms).relay(queue).await,
        };
        // The next turn does what this one could not do.
        drop(turn);
    }
}
