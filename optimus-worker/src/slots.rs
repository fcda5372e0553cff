//! How many tasks may still start: [`Slots`].

use std::sync::Arc;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The worker's capacity. The claimer never asks for more tasks than there are idle slots.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    free: Arc<Semaphore>,
    freed: Arc<Notify>,
}

/// One running task's place; free again when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    permit: Option<OwnedSemaphorePermit>,
    freed: Arc<Notify>,
}

impl Slots {
    pub(crate) fn new(concurrency: usize, freed: Arc<Notify>) -> Self {
        Self { free: Arc::new(Semaphore::new(concurrency)), freed }
    }

    pub(crate) fn idle(&self) -> usize {
        self.free.available_permits()
    }

    /// A slot, if one is idle.
    pub(crate) fn take(&self) -> Option<Slot> {
        let permit = self.free.clone().try_acquire_owned().ok()?;
        Some(Slot { permit: Some(permit), freed: self.freed.clone() })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        drop(self.permit.take());
        self.freed.notify_one();
    }
}
