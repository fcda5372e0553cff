//! Groups: members count once each, and the group ends once it is sealed and all have counted.

use std::collections::{BTreeMap, BTreeSet};

use optimus_core::{
    MemberResult,
    PrerequisiteFailure::{self, Cancel, Run},
    TaskId, TaskState,
};

use super::reference::{Place, World};

/// A group.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) id: TaskId,
    pub(crate) queue: usize,
    pub(crate) policy: PrerequisiteFailure,
    pub(crate) total: u32,
    /// How many members the first addition had.
    pub(crate) first: u32,
    /// The time of the first addition, in ms by Redis' clock.
    pub(crate) born: Option<u64>,
    pub(crate) is_sealed: bool,
    pub(crate) counted: BTreeMap<u32, MemberResult>,
    lost: BTreeSet<u32>,
    failed: u32,
    cancelled: u32,
    pub(crate) ended: Option<TaskState>,
}

/// The end of a member, which a relay carries to the group.
#[derive(Debug, Clone)]
pub(crate) struct Effect {
    /// The queue of the member.
    from: usize,
    group: usize,
    index: u32,
    state: TaskState,
}

/// What a member that succeeds returns.
pub(crate) fn result_of(index: u32) -> Vec<u8> {
    format!("{{\"n\":{index}}}").into_bytes()
}

impl Group {
    pub(crate) fn new(id: TaskId, queue: usize, policy: PrerequisiteFailure) -> Self {
        Self {
            id,
            queue,
            policy,
            total: 0,
            first: 0,
            born: None,
            is_sealed: false,
            counted: BTreeMap::new(),
            lost: BTreeSet::new(),
            failed: 0,
            cancelled: 0,
            ended: None,
        }
    }

    /// Whether a task with this policy may start after the group.
    pub(crate) fn lets_go(&self, policy: PrerequisiteFailure) -> bool {
        self.ended == Some(TaskState::Success) || self.ended.is_some() && policy == Run
    }

    /// How many members there are, have counted, have failed, were cancelled, and are waited for.
    pub(crate) fn progress(&self) -> [usize; 5] {
        let (failed, cancelled) = (self.failed as usize, self.cancelled as usize);
        [self.total as usize, self.counted.len(), failed, cancelled, self.lost.len()]
    }

    fn count(&mut self, index: u32, state: TaskState) {
        if self.ended.is_some() || index >= self.total || self.counted.contains_key(&index) {
            return;
        }
        match state {
            TaskState::Success => {
                self.counted.insert(index, MemberResult::Value(result_of(index)));
            }
            _ if self.policy == Run => {
                self.counted.insert(index, MemberResult::Failed(state));
                let kind =
                    if state == TaskState::Dead { &mut self.failed } else { &mut self.cancelled };
                *kind += 1;
            }
            // Nobody can requeue what was deleted.
            _ if self.policy == Cancel || state == TaskState::Forgotten => {
                self.ended = Some(TaskState::Cancelled);
            }
            _ => {
                self.lost.insert(index);
                return;
            }
        }
        self.lost.remove(&index);
        self.end_if_done();
    }

    pub(crate) fn end_if_done(&mut self) {
        if self.ended.is_none() && self.is_sealed && self.counted.len() == self.total as usize {
            self.ended = Some(TaskState::Success);
        }
    }
}

impl World {
    /// A member has ended. Its group counts a success here at once, and all else by a relay.
    pub(crate) fn count(&mut self, id: &TaskId, state: TaskState) {
        let task = &self.tasks[id];
        let Some((group, index)) = task.member else { return };
        if state == TaskState::Success && self.groups[group].queue == task.queue {
            self.groups[group].count(index, state);
        } else {
            let from = task.queue;
            self.effects.push(Effect { from, group, index, state });
        }
    }

    /// Relays have carried everything: groups have counted, and the tasks that wait know of their
    /// ends.
    pub(crate) fn relayed(&mut self) {
        // The relay carries the effects of one queue after those of the other.
        let mut effects = std::mem::take(&mut self.effects);
        effects.sort_by_key(|effect| effect.from);
        for Effect { group, index, state, .. } in effects {
            self.groups[group].count(index, state);
        }
        let mut cancelled = Vec::new();
        for (id, task) in &mut self.tasks {
            let (Some(wait), Place::Waits(_)) = (&mut task.waits_for, &task.place) else {
                continue;
            };
            let group = &self.groups[wait.group];
            wait.is_told = group.ended.is_some();
            if wait.is_told && !group.lets_go(wait.policy) {
                cancelled.push(id.clone());
            }
        }
        for id in cancelled {
            self.task(&id).place = Place::Cancelled;
        }
    }

    /// Whether a task may have been cancelled because of its group, which not every relay has told.
    pub(crate) fn may_be_cancelled(&self, id: &TaskId) -> bool {
        let wait = self.tasks[id].waits_for;
        wait.is_some_and(|wait| {
            let group = &self.groups[wait.group];
            group.ended.is_some() && !group.lets_go(wait.policy)
        })
    }
}
