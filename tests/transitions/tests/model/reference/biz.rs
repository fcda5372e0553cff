//! Biz ids: a biz id belongs to one task from its submit until the task has succeeded or is
//! cancelled. If the biz id has a window, it stays taken until the window is over.

use optimus_core::TaskId;

use super::{Queue, Task};

/// The holder of a biz id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) owner: TaskId,
    /// The end of the window; 0 for none.
    pub(crate) valid_until: u64,
    /// Whether the owner has succeeded.
    pub(crate) done: bool,
}

impl Task {
    /// Returns the name of the task's biz id, which includes the name of the task's definition.
    pub(crate) fn mark(&self) -> Option<String> {
        self.biz.as_ref().map(|biz| mark_of(self.name, biz))
    }
}

/// Returns the name of a biz id of a definition.
pub(crate) fn mark_of(task: &str, biz: &str) -> String {
    format!("{task}:{biz}")
}

impl Queue {
    /// Returns the owner of a biz id at this time.
    pub(super) fn owner_of(&self, mark: &str, now: u64) -> Option<&TaskId> {
        let mark = self.marks.get(mark)?;
        let holds =
            if mark.done { now < mark.valid_until } else { self.tasks.contains_key(&mark.owner) };
        holds.then_some(&mark.owner)
    }

    /// Gives a task its biz id, with a window from now on.
    pub(super) fn take_biz(&mut self, now: u64, id: &TaskId) {
        let task = &self.tasks[id];
        let valid_until = task.window_ms.map_or(0, |window| now + window);
        if let Some(name) = task.mark() {
            self.marks.insert(name, Mark { owner: id.clone(), valid_until, done: false });
        }
    }

    /// Frees a task's biz id, if the task holds it.
    pub(super) fn release_biz(&mut self, id: &TaskId) {
        if let Some(name) = self.tasks[id].mark()
            && self.owns_mark(&name, id)
        {
            self.marks.remove(&name);
        }
    }

    pub(super) fn owns_mark(&self, name: &str, id: &TaskId) -> bool {
        self.marks.get(name).is_some_and(|mark| mark.owner == *id)
    }

    /// After its owner's success a biz id stays taken until its window is over.
    pub(super) fn succeed_biz(&mut self, now: u64, name: &str, id: &TaskId) {
        let Some(mark) = self.marks.get_mut(name).filter(|mark| mark.owner == *id) else { return };
        mark.done = true;
        if mark.valid_until <= now {
            self.marks.remove(name);
        }
    }
}
