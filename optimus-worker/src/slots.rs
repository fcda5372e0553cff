//! How many tasks may still start: [`Slots`].

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::wakeups::Wakeups;

/// The worker's capacity. The claimer never asks for more tasks than there are idle slots.
#[derive(Debug)]
pub(crate) struct Slots {
    idle: AtomicUsize,
    /// By queue.
    running: Vec<AtomicUsize>,
    wakeups: Arc<Wakeups>,
}

/// One running task's place; free again when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
    queue: usize,
}

impl Slots {
    pub(crate) fn new(concurrency: usize, queues: usize, wakeups: Arc<Wakeups>) -> Arc<Self> {
        let idle = AtomicUsize::new(concurrency);
        let running = (0..queues).map(|_| AtomicUsize::new(0)).collect();
        Arc::new(Self { idle, running, wakeups })
    }

    pub(crate) fn idle(&self) -> usize {
        self.idle.load(Ordering::Acquire)
    }

    /// Wakes who waits for the doorbell once a slot is free, and be it free already.
    pub(crate) fn await_idle(&self) {
        self.wakeups.await_slot(|| self.idle.load(Ordering::SeqCst) > 0);
    }

    /// How many are taken by tasks of this queue.
    pub(crate) fn running(&self, queue: usize) -> usize {
        self.running[queue].load(Ordering::Acquire)
    }

    /// A slot for a task of this queue, if one is idle.
    pub(crate) fn take(self: &Arc<Self>, queue: usize) -> Option<Slot> {
        let less_one = |idle: usize| idle.checked_sub(1);
        let taken = self.idle.fetch_update(Ordering::AcqRel, Ordering::Acquire, less_one);
        taken.is_ok().then(|| {
            self.running[queue].fetch_add(1, Ordering::AcqRel);
            Slot { slots: self.clone(), queue }
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.running[self.queue].fetch_sub(1, Ordering::AcqRel);
        self.slots.idle.fetch_add(1, Ordering::SeqCst);
        self.slots.wakeups.slot_freed();
    }
}
