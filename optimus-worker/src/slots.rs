//! How many tasks may still start: [`Slots`].

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::sync::Notify;

/// The worker's capacity. The claimer never asks for more tasks than there are idle slots.
#[derive(Debug)]
pub(crate) struct Slots {
    idle: AtomicUsize,
    /// Told of each slot that becomes free.
    freed: Arc<Notify>,
    /// Told of the next one, if it asked for it.
    listen: Arc<Notify>,
    awaited: AtomicBool,
}

/// One running task's place; free again when dropped.
#[derive(Debug)]
pub(crate) struct Slot(Arc<Slots>);

impl Slots {
    pub(crate) fn new(concurrency: usize, freed: Arc<Notify>, listen: Arc<Notify>) -> Arc<Self> {
        let (idle, awaited) = (AtomicUsize::new(concurrency), AtomicBool::new(false));
        Arc::new(Self { idle, freed, listen, awaited })
    }

    pub(crate) fn idle(&self) -> usize {
        self.idle.load(Ordering::Acquire)
    }

    /// Wakes who waits for the doorbell once a slot is free, and be it free already.
    pub(crate) fn await_idle(&self) {
        self.awaited.store(true, Ordering::SeqCst);
        if self.idle.load(Ordering::SeqCst) > 0 {
            self.tell_listener();
        }
    }

    fn tell_listener(&self) {
        if self.awaited.load(Ordering::SeqCst) && self.awaited.swap(false, Ordering::SeqCst) {
            self.listen.notify_one();
        }
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
        self.0.idle.fetch_add(1, Ordering::SeqCst);
        self.0.freed.notify_one();
        self.0.tell_listener();
    }
}
