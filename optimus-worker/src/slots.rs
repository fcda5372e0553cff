//! How many tasks may still start: [`Slots`].

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::wakeups::Wakeups;

/// The worker's capacity. The claimer never asks for more tasks than there are idle slots.
#[derive(Debug)]
pub(crate) struct Slots {
    all: usize,
    idle: AtomicUsize,
    /// Taken by tasks that only wait for a thread of their own.
    off_runtime: AtomicUsize,
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

/// Says that a task keeps no thread of the runtime any more.
#[derive(Debug)]
pub(crate) struct OffRuntime<'a>(&'a Slots);

impl Slots {
    pub(crate) fn new(concurrency: usize, queues: usize, wakeups: Arc<Wakeups>) -> Arc<Self> {
        let (idle, off_runtime) = (AtomicUsize::new(concurrency), AtomicUsize::new(0));
        let running = (0..queues).map(|_| AtomicUsize::new(0)).collect();
        Arc::new(Self { all: concurrency, idle, off_runtime, running, wakeups })
    }

    pub(crate) fn idle(&self) -> usize {
        self.idle.load(Ordering::SeqCst)
    }

    /// How many are taken.
    pub(crate) fn busy(&self) -> usize {
        self.all - self.idle()
    }

    /// How many are taken by tasks that need a thread of the runtime to end.
    pub(crate) fn on_runtime(&self) -> usize {
        self.busy().saturating_sub(self.off_runtime.load(Ordering::SeqCst))
    }

    /// Wakes who waits for the wakeup list once a slot is free, and be it free already.
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
        let taken = self.idle.fetch_update(Ordering::SeqCst, Ordering::Acquire, less_one);
        taken.is_ok().then(|| {
            self.running[queue].fetch_add(1, Ordering::AcqRel);
            Slot { slots: self.clone(), queue }
        })
    }
}

impl Slot {
    /// From now on until dropped, its task only waits for a thread of its own.
    pub(crate) fn leave_runtime(&self) -> OffRuntime<'_> {
        self.slots.off_runtime.fetch_add(1, Ordering::SeqCst);
        self.slots.wakeups.runtime_left();
        OffRuntime(&self.slots)
    }
}

impl Drop for OffRuntime<'_> {
    fn drop(&mut self) {
        self.0.off_runtime.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.running[self.queue].fetch_sub(1, Ordering::AcqRel);
        self.slots.idle.fetch_add(1, Ordering::SeqCst);
        self.slots.wakeups.slot_freed();
    }
}
