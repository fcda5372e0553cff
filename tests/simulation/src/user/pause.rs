//! A user that pauses and resumes queues.

use std::time::Duration;

use optimus_core::QueueName;
use optimus_testkit::history::What;
use tokio::time::sleep;

use super::User;

impl User {
    pub(super) async fn pause(&mut self) {
        let queue = self.queues.pick(&mut self.random).clone();
        if self.pause_queue(&queue).await {
            // The pause is sometimes so long that an earlier resume has arrived, if it ever
            // arrives.
            let most = if self.random.u8(..4) == 0 { 15_000 } else { 500 };
            sleep(Duration::from_millis(self.random.u64(..most))).await;
        }
        self.resume_queue(&queue).await;
    }

    /// Pauses a queue. Returns whether the pause was acknowledged.
    pub(crate) async fn pause_queue(&self, name: &QueueName) -> bool {
        self.write(What::Pause { queue: name.to_string() });
        let is_told = self.client.pause(name).await.is_ok();
        if is_told {
            self.write(What::Paused { queue: name.to_string() });
        }
        is_told
    }

    /// Resumes a queue. Repeats the request until it is acknowledged.
    pub(crate) async fn resume_queue(&self, name: &QueueName) {
        loop {
            self.write(What::Resume { queue: name.to_string() });
            if self.client.resume(name).await.is_ok() {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}
