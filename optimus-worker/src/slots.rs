//! How many tasks may still start: [`Slots`].

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Notify;

/// The worker's capacity. The claimer never asks for more tasks than there are idle slots.
#[derive(Debug)]
pub(crate) struct Slots {
    idle: AtomicUsize,
    freed: Arc<Notify>,
}

/// One running task's place; free again when dropped.
#[derive(Debug)]
pub(crate) struct Slot(Arc<Slots>);

impl Slots {
    pub(crate) fn new(concurrency: usize, freed: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self { idle: AtomicUsize::new(concurrency), freed })
    }

    pub(crate) fn idle(&self) -> usize {
        self.idle.load(Ordering::Acquire)
    }

    /// A slot, if one is idle.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Slot> {
        let less_one = |idle: usize| idle.checked_sub(1);
        let taken = self.idle.fetch_update(Ordering::AcqRel, Ordering::Acquire, less_one);
        taken.is_ok().then(|| Slot(self.clone()))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.idle.fetch_add(1, Ordering::AcqRel);
        self.0.freed.notify_one();
    }
}
