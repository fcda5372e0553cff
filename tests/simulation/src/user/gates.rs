//! A user that pauses and changes limits, and takes permits outside tasks.

use std::time::Duration;

use optimus_core::{Gate, GateHandle, Limit, QueueName, Rate};
use optimus_testkit::history::What;
use tokio::time::sleep;

use super::User;
use crate::flow_limits::{CHANGED, gates, name_of};

const AGAIN: Duration = Duration::from_millis(100);

impl User {
    pub(super) async fn operate_gate(&mut self) {
        let queue = self.queues.pick(&mut self.random).clone();
        if self.random.bool() {
            self.pause_gate(&queue).await;
        } else {
            self.change_limit(&queue).await;
        }
    }

    async fn pause_gate(&mut self, queue: &QueueName) {
        let all = gates();
        let gate = all[self.random.usize(..all.len())].clone();
        let name = name_of(queue, &gate);
        let handle = self.client.gate(queue, gate);
        self.write(What::Pause { queue: name.clone() });
        if handle.pause("a user", "it is a test").await.is_ok() {
            self.write(What::Paused { queue: name.clone() });
            let most = if self.random.u8(..4) == 0 { 15_000 } else { 500 };
            sleep(Duration::from_millis(self.random.u64(..most))).await;
        }
        loop {
            self.write(What::Resume { queue: name.clone() });
            if handle.resume().await.is_ok() {
                return;
            }
            sleep(AGAIN).await;
        }
    }

    /// Sets a limit for a while. Only this user's changes of the queue's limit end by themselves.
    async fn change_limit(&mut self, queue: &QueueName) {
        let is_queue = self.random.u8(..4) == 0;
        let gate = if is_queue { Gate::Queue } else { Gate::Named(CHANGED.to_owned()) };
        let handle = self.client.gate(queue, gate);
        let limit = match self.random.u8(..3) {
            0 => Limit::new().max_working(self.random.u32(1..5)),
            1 => Limit::new().rate(Rate::per_second(self.random.u32(2..100))),
            _ => Limit::new().rate(Rate::per_second(30)).burst(3).max_working(3),
        };
        let is_set = handle.set(limit).await.is_ok();
        if is_set && !is_queue && self.random.bool() {
            return;
        }
        sleep(Duration::from_millis(self.random.u64(..1_000))).await;
        remove(&handle).await;
    }

    /// Takes a permit, keeps it for a while, and gives it back or dies with it.
    pub(super) async fn borrow_permit(&mut self) {
        let queue = self.queues.pick(&mut self.random).clone();
        let limit = self.client.limit(CHANGED).queue(&queue).wait_at_most(Duration::from_secs(1));
        if let Ok(permit) = limit.acquire().await {
            sleep(Duration::from_millis(self.random.u64(..400))).await;
            permit.give_back().await;
        }
    }
}

async fn remove(handle: &GateHandle) {
    while handle.remove().await.is_err() {
        sleep(AGAIN).await;
    }
}
