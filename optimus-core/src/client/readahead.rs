//! Reads results before their handles need them: [`Readahead`].
//!
//! A caller that awaits many tasks one after another would need one call to Redis for each. So a
//! check of one task also reads tasks after it. It reads more of them while the handles are awaited
//! in order and the tasks have ended. The client keeps only successes of tasks whose id was made
//! for their submit, because these are final.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::siblings::{Place, SIBLINGS_MAX};
use crate::{broker::Returned, id::TaskId};

/// The maximum number of answers that are kept, and the maximum bytes of their results. The oldest
/// are removed first.
const KEPT_MAX: usize = 4096;
const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Results that the handles of one client have read for each other.
pub(super) struct Readahead(Mutex<State>);

struct State {
    /// How many tasks the next check reads.
    window: usize,
    kept: HashMap<TaskId, Returned>,
    /// The ids in order of arrival; some of their answers are already taken.
    order: VecDeque<TaskId>,
    bytes: usize,
}

/// Other tasks that a check reads, each with the call that submitted it.
pub(super) struct Along {
    pub(super) tasks: Vec<(TaskId, u64)>,
    /// Whether the handles are awaited in order.
    in_turn: bool,
}

impl Readahead {
    pub(super) fn new() -> Self {
        let (kept, order) = (HashMap::new(), VecDeque::new());
        Self(Mutex::new(State { window: 1, kept, order, bytes: 0 }))
    }

    /// Returns whether the task is known to have succeeded.
    pub(super) fn has(&self, id: &TaskId) -> bool {
        self.state().kept.contains_key(id)
    }

    /// Removes and returns the task's result, if the task is known to have succeeded.
    pub(super) fn take(&self, id: &TaskId) -> Option<Returned> {
        self.state().take(id)
    }

    /// Returns the other tasks that a check of this task reads.
    pub(super) fn along(&self, place: &Place) -> Along {
        let in_turn = place.is_in_turn();
        let others = if in_turn { self.state().window - 1 } else { 0 };
        Along { tasks: place.next(others), in_turn }
    }

    /// Stores the answer to a check: the end of the checked task, if it has ended, and the results
    /// of the other tasks that have succeeded.
    pub(super) fn learn<E>(&self, along: Along, end: Option<&E>, next: Vec<Option<Returned>>) {
        let asked = 1 + next.len();
        let ended = usize::from(end.is_some()) + next.iter().flatten().count();
        let mut state = self.state();
        if along.in_turn {
            let window =
                if ended == asked { state.window * 2 } else { usize::midpoint(ended, asked) };
            state.window = window.clamp(1, SIBLINGS_MAX);
        }
        for ((id, _), returned) in along.tasks.into_iter().zip(next) {
            if let Some(returned) = returned {
                state.keep(id, returned);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, id: &TaskId) -> Option<Returned> {
        let returned = self.kept.remove(id)?;
        self.bytes -= bytes_of(&returned);
        Some(returned)
    }

    fn keep(&mut self, id: TaskId, returned: Returned) {
        self.take(&id);
        self.bytes += bytes_of(&returned);
        self.kept.insert(id.clone(), returned);
        self.order.push_back(id);
        while self.order.len() > KEPT_MAX || self.bytes > KEPT_BYTES_MAX {
            let Some(oldest) = self.order.pop_front() else { return };
            self.take(&oldest);
        }
    }
}

fn bytes_of(returned: &Returned) -> usize {
    match returned {
        Returned::Json(json) => json.len(),
        Returned::Nothing | Returned::Elsewhere => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{client::siblings::Grouping, id::QueueName};

    fn id() -> TaskId {
        TaskId::new(QueueName::new("q").unwrap())
    }

    fn learn(readahead: &Readahead, ids: &[TaskId], returned: &Returned) {
        let tasks = ids.iter().map(|id| (id.clone(), 1)).collect();
        let along = Along { tasks, in_turn: false };
        readahead.learn(along, Some(&()), vec![Some(returned.clone()); ids.len()]);
    }

    #[test]
    fn the_oldest_answers_are_removed_when_they_are_too_many_or_too_large() {
        let readahead = Readahead::new();
        let ids: Vec<TaskId> = (0..KEPT_MAX + 8).map(|_| id()).collect();
        learn(&readahead, &ids, &Returned::Nothing);
        assert!(!readahead.has(&ids[7]) && readahead.has(&ids[8]));

        let ids: Vec<TaskId> = (0..5).map(|_| id()).collect();
        learn(&readahead, &ids, &Returned::Json(vec![b'1'; KEPT_BYTES_MAX / 4]));
        assert!(!readahead.has(&ids[0]) && readahead.has(&ids[1]));
        assert!(ids[1..].iter().all(|id| readahead.take(id).is_some()));
        assert_eq!(readahead.state().bytes, 0);
        for bytes in [9, 5] {
            learn(&readahead, &ids[..1], &Returned::Json(vec![b'1'; bytes]));
        }
        assert_eq!(readahead.state().bytes, 5);
    }

    #[test]
    fn a_check_reads_more_tasks_the_more_of_them_have_ended() {
        let (readahead, mut grouping) = (Readahead::new(), Grouping::default());
        let places: Vec<Place> = (0..SIBLINGS_MAX).map(|_| grouping.add(&id(), 1)).collect();
        drop(grouping);
        let ask = |at: usize, ended: usize| {
            let along = readahead.along(&places[at]);
            let count = along.tasks.len();
            let returned = |nth| (nth + 1 < ended).then_some(Returned::Nothing);
            readahead.learn(along, (ended > 0).then_some(&()), (0..count).map(returned).collect());
            if ended > 0 {
                places[at].answered();
            }
            count
        };
        let grown: Vec<usize> = (0..6).map(|at| ask(at, SIBLINGS_MAX)).collect();
        assert_eq!(grown, [0, 1, 3, 7, 15, 31]);
        assert_eq!(
            [ask(6, 32), ask(7, 0), ask(7, 0)],
            [63, 47, 23],
            "some of these tasks are open"
        );
        assert_eq!(ask(60, 1), 0, "the handle is not in turn");
        assert_eq!(ask(7, 1), 0, "other handles were asked since");
    }
}
