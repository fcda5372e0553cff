//! What users know of two queues: the specification. [`World`] has the tasks, and the other files
//! add the limits, the groups and the calls that run together.

use std::collections::BTreeMap;

use optimus_core::{Gather, Lease, PrerequisiteFailure, TaskId, TaskLimit, WorkerId};

use super::{
    gathers::Key,
    groups::{Effect, Group},
    limits::Gates,
};

/// Two queues.
#[derive(Default)]
pub(crate) struct World {
    /// Every task that was submitted.
    pub(crate) tasks: BTreeMap<TaskId, Task>,
    /// The same in the order of their submits.
    pub(crate) order: Vec<TaskId>,
    pub(crate) gates: [Gates; 2],
    pub(crate) groups: Vec<Group>,
    /// The calls that run together, by queue and key.
    pub(crate) keys: BTreeMap<(usize, String), Key>,
    /// What relays have yet to carry.
    pub(crate) effects: Vec<Effect>,
}

/// A task.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) queue: usize,
    pub(crate) limits: Vec<TaskLimit>,
    /// How many tokens it takes.
    pub(crate) cost: u32,
    pub(crate) gather: Option<Gather>,
    pub(crate) joined: u64,
    /// Whether a worker or an operator had it, or it was delayed.
    pub(crate) came_back: bool,
    /// How often it has failed and was lost, since it was submitted or requeued.
    pub(crate) failures: u32,
    pub(crate) losses: u32,
    pub(crate) place: Place,
    /// The gates of which it has permits.
    pub(crate) permits: Vec<String>,
    pub(crate) stop_asked: bool,
    /// The group that counts it, and its position.
    pub(crate) member: Option<(usize, u32)>,
    pub(crate) waits_for: Option<Wait>,
}

/// Where a task is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Not before this time.
    Waits(u64),
    Working(Lease),
    Dead,
    Cancelled,
    /// It has succeeded, or was deleted.
    Gone,
}

/// A task's wait for a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) group: usize,
    pub(crate) policy: PrerequisiteFailure,
    /// Whether it is sure to know the end of the group.
    pub(crate) is_told: bool,
}

/// A difference between the store and the specification.
pub(crate) type Departure = String;

impl Task {
    /// A task that was just submitted.
    pub(crate) fn new(queue: usize, now: u64) -> Self {
        Self {
            queue,
            limits: Vec::new(),
            cost: 1,
            gather: None,
            joined: now,
            came_back: false,
            failures: 0,
            losses: 0,
            place: Place::Waits(now),
            permits: Vec::new(),
            stop_asked: false,
            member: None,
            waits_for: None,
        }
    }

    pub(crate) fn is_due(&self, now: u64) -> bool {
        matches!(self.place, Place::Waits(due) if due <= now)
    }

    pub(crate) fn lease(&self) -> Option<&Lease> {
        match &self.place {
            Place::Working(lease) => Some(lease),
            _ => None,
        }
    }
}

impl World {
    pub(crate) fn add(&mut self, id: TaskId, task: Task) {
        self.order.push(id.clone());
        self.tasks.insert(id, task);
    }

    pub(crate) fn task(&mut self, id: &TaskId) -> &mut Task {
        self.tasks.get_mut(id).expect("only known tasks are moved")
    }

    /// The leases of a worker, in the order of the ids.
    pub(crate) fn held(&self, worker: &WorkerId) -> Vec<Lease> {
        let leases = self.tasks.values().filter_map(Task::lease);
        leases.filter(|lease| lease.worker == *worker).cloned().collect()
    }

    /// Compares the grants of a claim with what it may grant, and with what it must.
    pub(crate) fn claimed(
        &mut self,
        now: u64,
        (queue, want): (usize, usize),
        (leases, more): (&[Lease], bool),
    ) -> Result<(), Departure> {
        for lease in leases {
            self.granted(now, queue, lease).map_err(|why| format!("{} starts {why}", lease.id))?;
        }
        if leases.len() >= want || more {
            return Ok(());
        }
        let late = self.tasks.iter().find(|(id, _)| self.starts_at(id, queue, now) == Some(now));
        late.map_or(Ok(()), |(id, _)| Err(format!("{id} may start, and a claim left it")))
    }

    fn granted(&mut self, now: u64, queue: usize, lease: &Lease) -> Result<(), Departure> {
        let task = self.tasks.get(&lease.id).ok_or("and was never submitted")?;
        if task.queue != queue || !task.is_due(now) {
            return Err(format!("at {now} from {:?}", task.place));
        }
        if self.may_start(task) == Some(false) {
            return Err("before the group that it waits for".into());
        }
        if task.gather.is_some() {
            self.leads(now, &lease.id)?;
        }
        let permits = self.pass(now, &lease.id)?;
        let task = self.task(&lease.id);
        (task.permits, task.place) = (permits, Place::Working(lease.clone()));
        // What has started needs its prerequisites no more.
        task.waits_for = None;
        Ok(())
    }

    /// Returns whether the prerequisites of a task are met, if that is sure.
    fn may_start(&self, task: &Task) -> Option<bool> {
        let Some(wait) = task.waits_for else { return Some(true) };
        let goes_on = self.groups[wait.group].lets_go(wait.policy);
        (!goes_on || wait.is_told).then_some(goes_on)
    }

    /// Returns when a task of this queue may start, if no other call is needed for that.
    pub(crate) fn starts_at(&self, id: &TaskId, queue: usize, now: u64) -> Option<u64> {
        let task = &self.tasks[id];
        let Place::Waits(due) = task.place else { return None };
        if task.queue != queue || self.may_start(task) != Some(true) {
            return None;
        }
        let due = if task.gather.is_some() { self.leads_at(id, now)? } else { due };
        Some(self.kept_until(now, id)?.max(due).max(now))
    }

    /// A worker no longer has a task.
    pub(crate) fn leave_worker(&mut self, id: &TaskId, to: Place) {
        self.leave_lead(id);
        let task = self.task(id);
        task.permits.clear();
        (task.place, task.came_back, task.stop_asked) = (to, true, false);
    }
}
