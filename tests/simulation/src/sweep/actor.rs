//! The user in a scene: [`Actor`].

use std::sync::Arc;
use std::time::Duration;

use optimus_core::{Call, Submit, TaskHandle};
use tokio::time::{Instant, sleep, timeout};

use crate::load::Load;
use crate::tasks::{Kind, Work};
use crate::user::{Shared, User};
use crate::world::World;

/// The longest wait. It is longer than any fault lasts, and the scene then continues.
const PATIENCE: Duration = Duration::from_secs(20);

/// Performs a scene, step by step, despite all faults.
pub struct Actor {
    pub(super) user: User,
    pub(super) world: Arc<World>,
}

impl Actor {
    /// Connects an actor.
    pub async fn new(world: Arc<World>, process: u32, shared: Arc<Shared>) -> Self {
        let client = world.client_at_last(process).await;
        let network = world.network.clone();
        let random = fastrand::Rng::with_seed(1);
        let (next, poisons) = (0, 0);
        let queues = world.queues.clone();
        let load = Load::Plain;
        let user = User { client, process, network, shared, queues, random, next, poisons, load };
        Self { user, world }
    }

    /// Submits a task of that kind.
    pub(super) async fn submit(&self, number: u64, kind: Kind) -> Option<TaskHandle<u64>> {
        self.call(number, Work::new(number, kind)).await
    }

    /// Submits a call.
    pub(super) async fn call<C: Submit>(
        &self,
        number: u64,
        call: C,
    ) -> Option<TaskHandle<C::Output>> {
        self.user.submit(number, call, None, 0).await
    }

    /// Submits a call with a biz id.
    pub(super) async fn unique(&self, number: u64, biz: u64) -> Option<TaskHandle<u64>> {
        let call: Call<Work> = Work::new(number, Kind::Lasts(50)).biz_id(format!("b{biz}"));
        self.user.submit(number, call, Some(biz), 0).await
    }

    /// Waits for a result in the background. The actor itself waits only for a limited time.
    pub(super) async fn wait_for(&self, number: u64, handle: Option<TaskHandle<u64>>) {
        if let Some(handle) = handle {
            self.user.await_result(number, handle.clone());
            drop(timeout(PATIENCE, handle.ended()).await);
        }
    }

    /// Waits until the task has begun this often. Returns the process in which the task runs.
    pub(super) async fn begun(&self, number: u64, times: u32) -> Option<u32> {
        let (journal, deadline) = (&self.world.network.journal, Instant::now() + PATIENCE);
        while journal.begun(number) < times {
            if Instant::now() > deadline {
                return None;
            }
            sleep(Duration::from_millis(10)).await;
        }
        journal.runner(number)
    }
}
