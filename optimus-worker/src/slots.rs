//! The slots of a worker, one for each running task: [`Slots`].

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::role_wakeups::Wakeups;

/// The capacity of the worker. The claimer never asks for more tasks than there are idle slots.
#[derive(Debug)]
pub(crate) struct Slots {
    all: usize,
    idle: AtomicUsize,
    /// The number of slots that an operator has withheld.
    withheld: AtomicUsize,
    /// The number of slots that tasks have begun to use.
    begun: AtomicUsize,
    /// The number of these slots whose tasks only wait for a separate thread.
    off_runtime: AtomicUsize,
    /// The number of slots that each queue's tasks use.
    running: Vec<AtomicUsize>,
    wakeups: Arc<Wakeups>,
}

/// The slot of one task. The slot is idle again when this value is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
    queue: usize,
    has_begun: bool,
}

/// While this value lives, the slot's task needs no thread of the runtime.
#[derive(Debug)]
pub(crate) struct OffRuntime<'a>(&'a Slots);

impl Slots {
    pub(crate) fn new(concurrency: usize, queues: usize, wakeups: Arc<Wakeups>) -> Arc<Self> {
        let (idle, begun) = (AtomicUsize::new(concurrency), AtomicUsize::new(0));
        let (off_runtime, withheld) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let running = (0..queues).map(|_| AtomicUsize::new(0)).collect();
        Arc::new(Self { all: concurrency, idle, withheld, begun, off_runtime, running, wakeups })
    }

    /// Returns how many more tasks may begin now.
    pub(crate) fn idle(&self) -> usize {
        let withheld = self.withheld.load(Ordering::SeqCst);
        self.idle.load(Ordering::SeqCst).saturating_sub(withheld)
    }

    /// Returns how many slots are busy.
    pub(crate) fn busy(&self) -> usize {
        self.all - self.idle.load(Ordering::SeqCst)
    }

    /// Returns how many slots may be busy.
    pub(crate) fn allowed(&self) -> usize {
        self.all - self.withheld.load(Ordering::SeqCst)
    }

    /// Sets how many slots may be busy, up to all. If more are busy, their tasks go on.
    pub(crate) fn allow(&self, count: usize) {
        self.withheld.store(self.all.saturating_sub(count), Ordering::SeqCst);
        self.wakeups.slot_freed();
    }

    /// Returns how many slots are busy with tasks that need a thread of the runtime to end.
    pub(crate) fn on_runtime(&self) -> usize {
        let begun = self.begun.load(Ordering::SeqCst);
        begun.saturating_sub(self.off_runtime.load(Ordering::SeqCst))
    }

    /// Wakes the work listener when a slot is idle, or now if one is idle.
    pub(crate) fn await_idle(&self) {
        self.wakeups.await_slot(|| self.idle() > 0);
    }

    /// Returns how many slots are busy with tasks of this queue.
    pub(crate) fn running(&self, queue: usize) -> usize {
        self.running[queue].load(Ordering::Acquire)
    }

    /// Returns a slot for a task of this queue, if one is idle.
    pub(crate) fn take(self: &Arc<Self>, queue: usize) -> Option<Slot> {
        let withheld = self.withheld.load(Ordering::SeqCst);
        let less_one = |idle: usize| (idle > withheld).then(|| idle - 1);
        let taken = self.idle.fetch_update(Ordering::SeqCst, Ordering::Acquire, less_one);
        taken.is_ok().then(|| {
            self.running[queue].fetch_add(1, Ordering::AcqRel);
            Slot { slots: self.clone(), queue, has_begun: false }
        })
    }
}

impl Slot {
    /// Notes that the slot's task needs a thread of the runtime to end.
    pub(crate) fn begin(&mut self) {
        self.has_begun = true;
        self.slots.begun.fetch_add(1, Ordering::SeqCst);
    }

    /// Notes that the slot's task only waits for a separate thread, until the returned value is
    /// dropped.
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
        if self.has_begun {
            self.slots.begun.fetch_sub(1, Ordering::SeqCst);
        }
        self.slots.running[self.queue].fetch_sub(1, Ordering::AcqRel);
        self.slots.idle.fetch_add(1, Ordering::SeqCst);
        self.slots.wakeups.slot_freed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_task_that_has_begun_and_waits_for_no_thread_of_its_own_needs_the_runtime() {
        let slots = Slots::new(3, 1, Arc::default());
        let mut taken: Vec<Slot> = (0..3).filter_map(|_| slots.take(0)).collect();
        assert_eq!((slots.busy(), slots.on_runtime()), (3, 0), "no task has begun");
        taken[0].begin();
        taken[1].begin();
        let waits = taken[1].leave_runtime();
        assert_eq!(slots.on_runtime(), 1);
        drop(waits);
        assert_eq!(slots.on_runtime(), 2);
        taken.clear();
        assert_eq!((slots.busy(), slots.on_runtime()), (0, 0));
    }

    #[test]
    fn slots_that_are_withheld_are_not_taken_and_busy_ones_go_on() {
        let slots = Slots::new(4, 1, Arc::default());
        let mut taken: Vec<Slot> = (0..3).filter_map(|_| slots.take(0)).collect();
        slots.allow(2);
        assert_eq!((slots.allowed(), slots.idle(), slots.busy()), (2, 0, 3));
        assert!(slots.take(0).is_none());
        taken.truncate(1);
        assert_eq!(slots.idle(), 1);
        taken.extend(slots.take(0));
        assert!(taken.len() == 2 && slots.take(0).is_none());
        slots.allow(9);
        assert_eq!((slots.allowed(), slots.idle()), (4, 2), "there are no more than at the start");
    }
}
