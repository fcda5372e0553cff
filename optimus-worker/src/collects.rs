//! The requests for the calls of runs that are under way, and which tasks they may bring:
//! [`Collects`].

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use optimus_core::{TaskId, Token};

/// The requests that are under way, and the tasks of which the worker has not heard.
///
/// Redis moves the calls of a run to the worker before the worker hears of them, or never hears of
/// them if the answer is lost. A request numbers itself, so a task that was already here when every
/// request that may have brought it was under way shows which of the two has happened.
#[derive(Debug, Default)]
pub(crate) struct Collects(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The number of the latest request.
    begun: u64,
    under_way: BTreeSet<u64>,
    /// By the position of the queue, the tasks that a heartbeat has shown and the worker does not
    /// know. Each has the number of the latest request that may have brought it.
    unheard: HashMap<usize, HashMap<(TaskId, Token), u64>>,
}

/// The requests at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    begun: u64,
    oldest: Option<u64>,
}

/// A request that is under way.
pub(crate) struct UnderWay<'a> {
    collects: &'a Collects,
    number: u64,
}

impl Collects {
    /// Notes that a request begins. It ends when what is returned is dropped. The calls that it
    /// brings must be in the table of attempts by then.
    pub(crate) fn begin(&self) -> UnderWay<'_> {
        let mut state = self.state();
        state.begun += 1;
        let number = state.begun;
        state.under_way.insert(number);
        UnderWay { collects: self, number }
    }

    /// Returns the requests that are under way now. To be read before the table of attempts,
    /// because a request that has ended has its calls there.
    pub(crate) fn moment(&self) -> Moment {
        let state = self.state();
        Moment { begun: state.begun, oldest: state.under_way.first().copied() }
    }

    /// Takes the tasks that Redis shows in a queue and that the worker does not know. Returns those
    /// that no request under way can bring any more.
    pub(crate) fn never_come(
        &self,
        place: usize,
        moment: Moment,
        unknown: Vec<(TaskId, Token)>,
    ) -> Vec<(TaskId, Token)> {
        let mut state = self.state();
        let before = state.unheard.remove(&place).unwrap_or_default();
        let (mut lost, mut unheard) = (Vec::new(), HashMap::new());
        for task in unknown {
            let latest = before.get(&task).copied().unwrap_or(moment.begun);
            if moment.oldest.is_none_or(|oldest| oldest > latest) {
                lost.push(task);
            } else {
                unheard.insert(task, latest);
            }
        }
        if !unheard.is_empty() {
            state.unheard.insert(place, unheard);
        }
        lost
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.collects.state().under_way.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(text: &str) -> (TaskId, Token) {
        (
            format!("default/01920000-0000-7000-8000-{text:0>12}").parse().unwrap(),
            Token { seq: 1, fence: 7 },
        )
    }

    #[test]
    fn a_task_that_comes_with_no_request_is_lost_at_once() {
        let collects = Collects::default();
        drop(collects.begin());
        assert_eq!(collects.never_come(0, collects.moment(), vec![task("1")]), [task("1")]);
    }

    #[test]
    fn a_task_is_lost_once_each_request_that_may_bring_it_has_ended_whatever_else_is_under_way() {
        let collects = Collects::default();
        let first = collects.begin();
        assert_eq!(collects.never_come(0, collects.moment(), vec![task("1")]), []);
        let second = collects.begin();
        assert_eq!(collects.never_come(0, collects.moment(), vec![task("1")]), []);
        drop(first);
        let both = vec![task("1"), task("2")];
        assert_eq!(collects.never_come(0, collects.moment(), both), [task("1")]);
        drop(second);
        assert_eq!(collects.never_come(0, collects.moment(), vec![task("2")]), [task("2")]);
    }

    #[test]
    fn queues_do_not_forget_the_tasks_of_each_other() {
        let collects = Collects::default();
        let first = collects.begin();
        assert_eq!(collects.never_come(0, collects.moment(), vec![task("1")]), []);
        assert_eq!(collects.never_come(1, collects.moment(), Vec::new()), []);
        let _second = collects.begin();
        drop(first);
        assert_eq!(collects.never_come(0, collects.moment(), vec![task("1")]), [task("1")]);
    }
}
