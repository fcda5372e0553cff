//! Prerequisites within the queue: which task waits for which, and what each end means for the
//! tasks that wait.

use std::collections::{BTreeMap, VecDeque};

use optimus_core::{Prerequisite, QueueName, TaskId, TaskState};

use super::{Place, Queue, Task};

pub(super) const MARKS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

/// A reference with more waiters than this many bytes has a key of its own.
const TIE_BYTES_MAX: usize = 1024;

/// How many waiters the call of their prerequisite's success releases.
const STRUCK_MAX: usize = 256;

/// An end that no requeue can change.
pub(super) const VOID: &str = "void";

/// How many tasks a search for a cycle reads.
const WALK_MAX: usize = 64;

/// What a task waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unmet {
    pub(super) marks: String,
    due: Option<u64>,
    has_lane: bool,
    pub(crate) gives_up_at: Option<u64>,
    /// The task ended because of what no requeue can change.
    pub(super) is_void: bool,
}

/// Why a task no longer waits, although a requeue lets it wait again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// A requeue of others may help.
    Ended,
    /// No requeue of others helps.
    Void,
}

/// The tasks that wait for one, in order.
#[derive(Debug, Clone)]
pub(crate) enum Tie {
    Few(Vec<String>),
    Many(BTreeMap<u64, String>),
}

/// Effects of the queue on itself, and which of them it has applied.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outbox {
    /// By number.
    pub(crate) effects: VecDeque<(u64, String)>,
    pub(crate) since: u64,
    pub(crate) posted: u64,
    pub(crate) applied: u64,
    /// The effects that this call posts.
    pub(super) posting: Vec<String>,
    /// The tasks that this call releases.
    free: Vec<(TaskId, Unmet)>,
}

impl Unmet {
    pub(crate) fn shown(&self) -> String {
        let flags = [(self.has_lane, 'l'), (self.gives_up_at.is_some(), 'g'), (self.is_void, 'v')];
        let flags: String =
            flags.into_iter().filter_map(|(is_set, flag)| is_set.then_some(flag)).collect();
        let due = self.due.map(|due| due.to_string()).unwrap_or_default();
        if due.is_empty() && flags.is_empty() {
            return self.marks.clone();
        }
        format!("{};{due};{flags}", self.marks)
    }
}

impl Tie {
    pub(crate) fn waiters(&self) -> Vec<(u64, String)> {
        match self {
            Self::Few(waiters) => waiters.iter().map(|waiter| (0, waiter.clone())).collect(),
            Self::Many(waiters) => waiters.iter().map(|(at, w)| (*at, w.clone())).collect(),
        }
    }
}

/// A reference without its queue.
pub(super) fn name_of(one: &Prerequisite) -> String {
    one.reference().split_once('/').expect("a reference names its queue").1.to_owned()
}

/// The task and the mark of a waiter.
pub(super) fn parts(queue: &Queue, waiter: &str) -> (TaskId, char) {
    let (id, mark) = waiter.split_at(22);
    let id = queue.tasks.keys().find(|known| known.stored() == id).cloned();
    // One that is gone has no place.
    let id = id.unwrap_or_else(|| TaskId::new(QueueName::new("gone").expect("a name")));
    (id, mark.chars().next().expect("a waiter has a mark"))
}

impl Queue {
    /// The state of a prerequisite: `met`, `open`, or how it ended.
    pub(super) fn state_of_prerequisite(&self, one: &Prerequisite, now: u64) -> &'static str {
        if self.outcomes.contains_key(&name_of(one)) {
            return "met";
        }
        match one {
            Prerequisite::Task(id) => match self.state(id) {
                TaskState::Dead => "dead",
                TaskState::Cancelled if self.is_void(id) => VOID,
                TaskState::Cancelled => "cancelled",
                TaskState::Success => "met",
                TaskState::Forgotten if self.deleted.contains_key(id) => "forgotten",
                _ => "open",
            },
            Prerequisite::Key { .. } => match self.marks.get(&name_of(one)) {
                Some(mark) if mark.done && now < mark.valid_until => "met",
                Some(mark) if !mark.done && self.state(&mark.owner) == TaskState::Dead => "dead",
                _ => "open",
            },
        }
    }

    /// A task waits for those of its prerequisites that are not met, if there are any.
    pub(super) fn begin_wait(
        &mut self,
        now: u64,
        id: &TaskId,
        unmet: &[(usize, &'static str)],
        due: Option<u64>,
    ) -> bool {
        if unmet.is_empty() {
            return false;
        }
        let task = &self.tasks[id];
        let (after, has_lane) = (task.after.clone().expect("it has some"), task.lane.is_some());
        let mut marks = String::new();
        for (at, state) in unmet {
            let (mark, name) = (char::from(MARKS[*at]), name_of(&after.prerequisites[*at]));
            marks.push(mark);
            self.tie(&name, format!("{}{mark}", id.stored()));
            if *state != "open" {
                self.outbox.posting.push(format!("end {state} 0 {name}"));
            }
        }
        let wait = after.give_up_after;
        let gives_up_at = wait.map(|wait| now + u64::try_from(wait.as_millis()).expect("short"));
        let task = self.task(id);
        task.unmet = Some(Unmet { marks, due, has_lane, gives_up_at, is_void: false });
        task.place = Place::Waits;
        self.has_after = true;
        true
    }

    /// Returns the tasks between a task and itself, if it would wait for itself. `all` are its
    /// prerequisites.
    pub(super) fn cycle_of(
        &self,
        id: &TaskId,
        own_mark: Option<&String>,
        all: &[Prerequisite],
        unmet: &[(usize, &str)],
    ) -> Option<Vec<TaskId>> {
        let holder = |one: &Prerequisite| match one {
            Prerequisite::Task(id) => Some(id.clone()),
            one if Some(&name_of(one)) == own_mark => Some(id.clone()),
            Prerequisite::Key { .. } => {
                let mark = self.marks.get(&name_of(one)).filter(|mark| !mark.done);
                mark.map(|mark| mark.owner.clone())
            }
        };
        let mut awaited: Vec<&Prerequisite> = unmet.iter().map(|(at, _)| &all[*at]).collect();
        // Each task with the way to it, in the order in which they are found.
        let (mut walk, mut at) = (Vec::<Vec<TaskId>>::new(), 0);
        let mut way = Vec::new();
        loop {
            for next in awaited.drain(..).filter_map(holder) {
                if next == *id {
                    return Some(way);
                } else if walk.len() < WALK_MAX && !walk.iter().any(|way| way.last() == Some(&next))
                {
                    walk.push([way.clone(), vec![next]].concat());
                }
            }
            way.clone_from(walk.get(at)?);
            at += 1;
            let via = way.last().and_then(|id| self.tasks.get(id));
            if let Some(Task { unmet: Some(unmet), after: Some(after), .. }) = via {
                let marks = unmet.marks.bytes();
                let places = marks.filter_map(|mark| MARKS.iter().position(|m| *m == mark));
                awaited.extend(places.map(|place| &after.prerequisites[place]));
            }
        }
    }

    fn tie(&mut self, name: &str, waiter: String) {
        let tie = self.ties.entry(name.to_owned()).or_insert_with(|| Tie::Few(Vec::new()));
        match tie {
            Tie::Many(waiters) => {
                let last = waiters.keys().next_back().copied().unwrap_or(0);
                waiters.insert(last + 1, waiter);
            }
            Tie::Few(waiters) => {
                let is_full =
                    !waiters.is_empty() && waiters.join(" ").len() + waiter.len() > TIE_BYTES_MAX;
                waiters.push(waiter);
                if is_full {
                    *tie = Tie::Many((1..).zip(std::mem::take(waiters)).collect());
                }
            }
        }
    }

    pub(super) fn untie(&mut self, name: &str, waiter: &str) {
        let Some(tie) = self.ties.get_mut(name) else { return };
        let is_empty = match tie {
            Tie::Few(waiters) => {
                waiters.retain(|other| other != waiter);
                waiters.is_empty()
            }
            Tie::Many(waiters) => {
                waiters.retain(|_, other| other != waiter);
                waiters.is_empty()
            }
        };
        if is_empty {
            self.ties.remove(name);
        }
    }

    /// A task no longer waits, because it ends. If a requeue lets it wait again, it keeps for what.
    pub(super) fn leave_unmet(&mut self, id: &TaskId, kept: Option<Kept>) {
        let task = self.task(id);
        let Some(unmet) = task.unmet.take() else { return };
        let after = task.after.clone().expect("it waits for some");
        if let Some(kept) = kept {
            task.unmet_ended = Some(Unmet { is_void: kept == Kept::Void, ..unmet.clone() });
        }
        for mark in unmet.marks.bytes() {
            let at = MARKS.iter().position(|known| *known == mark).expect("a mark");
            let name = name_of(&after.prerequisites[at]);
            self.untie(&name, &format!("{}{}", id.stored(), char::from(mark)));
        }
    }

    /// For what a task that ended while it waited waits again if it is requeued.
    pub(super) fn open_again(&self, now: u64, id: &TaskId) -> Vec<(usize, &'static str)> {
        let Task { unmet_ended: Some(kept), after: Some(after), .. } = &self.tasks[id] else {
            return Vec::new();
        };
        let open = kept.marks.bytes().filter_map(|mark| {
            let at = MARKS.iter().position(|known| *known == mark).expect("a mark");
            let state = self.state_of_prerequisite(&after.prerequisites[at], now);
            (state != "met").then_some((at, state))
        });
        open.collect()
    }

    /// A requeued task that ended while it waited. Returns whether it waits again.
    pub(super) fn wait_again(&mut self, now: u64, id: &TaskId) -> bool {
        let open = self.open_again(now, id);
        self.task(id).unmet_ended = None;
        self.begin_wait(now, id, &open, None)
    }

    /// The names under which others may wait for a task.
    fn names_of(&self, id: &TaskId) -> Vec<String> {
        let mark = self.tasks.get(id).and_then(Task::mark);
        std::iter::once(id.stored()).chain(mark).collect()
    }

    fn is_void(&self, id: &TaskId) -> bool {
        self.tasks[id].unmet_ended.as_ref().is_some_and(|kept| kept.is_void)
    }

    /// A task has ended without success. The tasks that wait for it learn of it later.
    pub(super) fn tell_end(&mut self, id: &TaskId, state: TaskState) {
        let is_void = state == TaskState::Cancelled && self.is_void(id);
        for (place, name) in self.names_of(id).iter().enumerate() {
            // Who waits for a biz id that the task has lost before waits for another task.
            let has_lost = state == TaskState::Forgotten && !self.owns_mark(name, id);
            if self.ties.contains_key(name) && (place == 0 || !has_lost) {
                // Another task may come under its biz id.
                let state = if place == 0 && is_void { VOID } else { state.as_str() };
                self.outbox.posting.push(format!("end {state} 0 {name}"));
            }
        }
    }

    pub(super) fn strike(&mut self, id: &TaskId, mark: char) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        let Some(unmet) = &mut task.unmet else { return };
        unmet.marks.retain(|other| other != mark);
        if unmet.marks.is_empty() {
            let unmet = task.unmet.take().expect("it has waited");
            self.outbox.free.push((id.clone(), unmet));
        }
    }

    /// Tasks have succeeded, under these names. The tasks that wait for them are released.
    pub(super) fn answer_success(&mut self, names: &[String]) {
        let mut struck = Vec::new();
        for name in names {
            match self.ties.get(name).cloned() {
                Some(Tie::Few(waiters)) if struck.len() < STRUCK_MAX => {
                    struck.extend(waiters);
                    self.ties.remove(name);
                }
                Some(_) => self.outbox.posting.push(format!("end success 0 {name}")),
                None => {}
            }
        }
        for waiter in struck {
            let (id, mark) = parts(self, &waiter);
            self.strike(&id, mark);
        }
    }

    /// The released tasks are ready, wait for their due time, or will join their lanes.
    pub(super) fn let_go(&mut self, now: u64) {
        for (id, unmet) in std::mem::take(&mut self.outbox.free) {
            let due = unmet.due.unwrap_or(0);
            if due > now || unmet.has_lane {
                self.task(&id).place = Place::Delayed(due.max(now));
                self.due_at_latest(due.max(now));
            } else {
                self.make_ready(now, &id, Some(now));
            }
        }
    }
}
