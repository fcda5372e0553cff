//! Tasks that were submitted together, and whose handles share their ids: [`Siblings`].

use std::{
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};

use crate::id::{QueueName, TaskId};

/// The maximum number of tasks in a group, which is as many as one check reads.
pub(super) const SIBLINGS_MAX: usize = 128;
/// How far after the last answered handle another one may be and still count as in order.
const IN_TURN_WITHIN: usize = 8;

/// Consecutive tasks of one queue in a submit of many.
#[derive(Default)]
pub(super) struct Siblings {
    tasks: OnceLock<Box<[Sibling]>>,
    /// The position after the handle that was answered last.
    turn: AtomicUsize,
}

struct Sibling {
    id: TaskId,
    call: u64,
    /// Whether the task's handle is dropped or answered.
    is_over: AtomicBool,
}

/// The place of a handle among its siblings. After its drop, no check reads its task.
pub(super) struct Place {
    siblings: Arc<Siblings>,
    at: usize,
}

impl Place {
    /// Returns whether the handles are awaited in order, and this is the next or the first one.
    pub(super) fn is_in_turn(&self) -> bool {
        let turn = self.siblings.turn.load(Relaxed);
        self.at == 0 || (0 < turn && turn <= self.at && self.at < turn + IN_TURN_WITHIN)
    }

    /// Notes that the handle was answered.
    pub(super) fn answered(&self) {
        self.siblings.turn.store(self.at + 1, Relaxed);
        self.end();
    }

    /// Returns up to `count` tasks after this place that may still be awaited, with their calls.
    pub(super) fn next(&self, count: usize) -> Vec<(TaskId, u64)> {
        let tasks = self.siblings.tasks.get().map(|tasks| &tasks[self.at + 1..]);
        let open = tasks.into_iter().flatten().filter(|task| !task.is_over.load(Relaxed));
        open.take(count).map(|task| (task.id.clone(), task.call)).collect()
    }

    fn end(&self) {
        if let Some(tasks) = self.siblings.tasks.get() {
            tasks[self.at].is_over.store(true, Relaxed);
        }
    }
}

impl Clone for Place {
    fn clone(&self) -> Self {
        Self { siblings: self.siblings.clone(), at: self.at }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.end();
    }
}

/// Groups tasks in the order of their submit.
#[derive(Default)]
pub(super) struct Grouping(BTreeMap<QueueName, (Arc<Siblings>, Vec<Sibling>)>);

impl Grouping {
    /// Returns the place of the next task.
    pub(super) fn add(&mut self, id: &TaskId, call: u64) -> Place {
        let (siblings, tasks) = match self.0.get_mut(id.queue()) {
            Some(open) => open,
            None => self.0.entry(id.queue().clone()).or_default(),
        };
        if tasks.len() == SIBLINGS_MAX {
            let full: Arc<Siblings> = std::mem::take(siblings);
            close(&full, std::mem::take(tasks));
        }
        let place = Place { siblings: siblings.clone(), at: tasks.len() };
        tasks.push(Sibling { id: id.clone(), call, is_over: AtomicBool::new(false) });
        place
    }
}

impl Drop for Grouping {
    fn drop(&mut self) {
        for (siblings, tasks) in std::mem::take(&mut self.0).into_values() {
            close(&siblings, tasks);
        }
    }
}

fn close(siblings: &Siblings, tasks: Vec<Sibling>) {
    let closed = siblings.tasks.set(tasks.into_boxed_slice());
    debug_assert!(closed.is_ok(), "a group is closed once");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(queues: &[&str], count: usize) -> Vec<(TaskId, Place)> {
        let mut grouping = Grouping::default();
        let queues = queues.iter().cycle().take(count);
        let ids = queues.map(|queue| TaskId::new(QueueName::new(*queue).unwrap()));
        ids.map(|id| (id.clone(), grouping.add(&id, 7))).collect()
    }

    #[test]
    fn the_tasks_after_it_are_of_its_queue_and_fit_in_one_check() {
        let places = places(&["a", "b"], 2 * SIBLINGS_MAX + 20);
        let next = places[0].1.next(2);
        assert_eq!(next, [(places[2].0.clone(), 7), (places[4].0.clone(), 7)]);
        assert_eq!(places[1].1.next(1_000).len(), SIBLINGS_MAX - 1);
        assert_eq!(places[2 * SIBLINGS_MAX].1.next(1_000).len(), 9);
    }

    #[test]
    fn a_task_whose_handle_was_answered_or_dropped_is_not_checked() {
        let mut places = places(&["a"], 4);
        drop(places.remove(1));
        places[1].1.answered();
        assert_eq!(places[0].1.next(9), [(places[2].0.clone(), 7)]);
    }

    #[test]
    fn a_handle_is_in_turn_shortly_after_the_last_answered_one() {
        let places = places(&["a"], 40);
        let in_turn =
            || -> Vec<usize> { (0..40).filter(|at| places[*at].1.is_in_turn()).collect() };
        assert_eq!(in_turn(), [0]);
        places[20].1.answered();
        assert_eq!(in_turn(), [0, 21, 22, 23, 24, 25, 26, 27, 28]);
    }
}
