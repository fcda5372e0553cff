//! What a handle knows of a task that a transaction has promised: [`Promise`].

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use crate::{
    broker::{Broker, BrokerError},
    id::TaskId,
};

/// What is known of a task that a transaction has promised.
#[derive(Default)]
pub(super) struct Promise {
    is_seen: AtomicBool,
    owner: OnceLock<TaskId>,
}

impl Promise {
    /// Returns whether the task was found in Redis. Before that, a task that Redis does not know
    /// is one that no relay has submitted yet.
    pub(super) fn is_seen(&self) -> bool {
        self.is_seen.load(Ordering::Relaxed)
    }

    pub(super) fn note_seen(&self) {
        self.is_seen.store(true, Ordering::Relaxed);
    }

    /// Returns the task that held the biz id of this one when a relay came to submit it. So this
    /// one never will be.
    pub(super) fn owner(&self) -> Option<&TaskId> {
        self.owner.get()
    }

    /// Looks for that task.
    pub(super) async fn finds_owner(
        &self,
        broker: &Broker,
        id: &TaskId,
    ) -> Result<bool, BrokerError> {
        let Some(owner) = broker.owner_of(id).await? else { return Ok(false) };
        // Two looks find the same owner.
        drop(self.owner.set(owner));
        self.note_seen();
        Ok(true)
    }
}
