//! Acts of an operator.

use std::time::Duration;

use optimus::{Client, QueueName};
use optimus_testkit::history::What;
use tokio::time::sleep;

use super::Nemesis;
use crate::agent::QUEUE;

const AGAIN: Duration = Duration::from_millis(100);

impl Nemesis {
    /// Pauses the queue, and repeats the resume until it is acknowledged.
    pub(super) async fn pause_queue(&mut self) -> anyhow::Result<u64> {
        let lasting = self.shortly();
        let Ok(client) = Client::connect(self.environment.store.url()).await else { return Ok(0) };
        let (log, name, queue) = (&self.environment.log, QueueName::new(QUEUE)?, QUEUE.to_owned());
        log.write(What::Pause { queue: queue.clone() });
        let is_told = client.pause(&name).await.is_ok();
        if is_told {
            log.write(What::Paused { queue: queue.clone() });
            sleep(lasting).await;
        }
        loop {
            log.write(What::Resume { queue: queue.clone() });
            if client.resume(&name).await.is_ok() {
                return Ok(u64::from(is_told));
            }
            sleep(AGAIN).await;
        }
    }
}
