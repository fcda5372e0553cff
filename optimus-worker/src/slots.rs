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
    /// By queue.
    running: Vec<AtomicUsize>,
    /// Told of each slot that becomes free.
    freed: Arc<Notify>,
    /// Told of the next one, if it asked for it.
    listen: Arc<Notify>,
    awaited: AtomicBool,
}

/// One running task's place; free again when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
    queue: usize,
}

impl Slots {
    pub(crate) fn new(
        concurrency: usize,
        queues: usize,
        freed: Arc<Notify>,
        listen: Arc<Notify>,
    ) -> Arc<Self> {
        let (idle, awaited) = (AtomicUsize::new(concurrency), AtomicBool::new(false));
        let running = (0..queues).map(|_| AtomicUsize::new(0)).collect();
        Arc::new(Self { idle, running, freed, listen, awaited })
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
        self.slots.freed.notify_one();
        self.slots.tell_listener();
    }
}
