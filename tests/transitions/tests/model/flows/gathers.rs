//! Calls that run together: when a run starts, and which calls it has. The model is exact for calls
//! that no worker had; of the others it only knows that they start in the end.

use optimus_core::{Lease, TaskId};

use super::reference::{Departure, Place, Task, World};

/// From this many losses on, a call may run alone.
const ALONE_LOSSES: u32 = 2;

/// The calls of a queue with the same key that were tried as often.
#[derive(Debug, Default)]
pub(crate) struct Key {
    /// The call that leads a run and has not collected the others.
    leader: Option<TaskId>,
    /// A leader ended before it collected, so the next may lead at once.
    is_free: bool,
}

fn wait_ms(task: &Task) -> u64 {
    let gather = task.gather.as_ref().expect("it runs together with others");
    u64::try_from(gather.wait.as_millis()).expect("it waits for a short time")
}

impl World {
    fn key_of(&self, id: &TaskId) -> (usize, String) {
        let task = &self.tasks[id];
        let by = task.gather.as_ref().map_or("", |gather| &gather.by);
        (task.queue, format!("{}:{}:{by}", task.failures, task.losses))
    }

    /// The calls that wait with this one, and itself.
    fn mates(&self, id: &TaskId) -> Vec<(&TaskId, &Task)> {
        let key = self.key_of(id);
        let waits = |task: &Task| task.gather.is_some() && matches!(task.place, Place::Waits(_));
        let all = self.tasks.iter().filter(|(_, task)| waits(task));
        all.filter(|(other, _)| self.key_of(other) == key).collect()
    }

    /// A call that came back leads a run of its own, so only one that did not leads for the others.
    fn live_leader(&self, id: &TaskId) -> Option<&TaskId> {
        let leader = self.keys.get(&self.key_of(id))?.leader.as_ref()?;
        let lives =
            !matches!(self.tasks[leader].place, Place::Dead | Place::Cancelled | Place::Gone);
        (lives && leader != id).then_some(leader)
    }

    /// A worker starts a run with this call.
    pub(crate) fn leads(&mut self, now: u64, id: &TaskId) -> Result<(), Departure> {
        let task = &self.tasks[id];
        let mates = self.mates(id);
        let max = task.gather.as_ref().map_or(1, |gather| gather.max as usize);
        if let Some(leader) = self.live_leader(id)
            && !task.came_back
            && !self.tasks[leader].came_back
        {
            return Err(format!("another run while {leader} leads"));
        }
        let key = self.key_of(id);
        let is_late = |other: &Task| other.joined + wait_ms(other) <= now;
        let is_due = mates.len() >= max
            || task.losses >= ALONE_LOSSES
            || mates.iter().any(|(_, other)| other.came_back || is_late(other))
            || self.keys.get(&key).is_some_and(|key| key.is_free);
        if !is_due {
            return Err(format!("a run at {now} before its time with {} calls", mates.len()));
        }
        let key = self.keys.entry(key).or_default();
        (key.leader, key.is_free) = (Some(id.clone()), false);
        Ok(())
    }

    /// Returns when the limits of its time let a call that no worker had start a run.
    pub(crate) fn leads_at(&self, id: &TaskId, now: u64) -> Option<u64> {
        let key = self.keys.get(&self.key_of(id));
        let is_led = key.is_some_and(|key| key.leader.is_some());
        let fresh = self.mates(id);
        let fresh: Vec<_> = fresh.iter().filter(|(_, task)| !task.came_back).collect();
        let max = self.tasks[id].gather.as_ref()?.max as usize;
        if is_led || self.tasks[id].came_back {
            return None;
        }
        if fresh.len() >= max {
            return Some(now);
        }
        fresh.iter().map(|(_, task)| task.joined + wait_ms(task)).min()
    }

    /// The leader of a run has collected these calls.
    pub(crate) fn collected(
        &mut self,
        (leader, want): (&Lease, usize),
        (leases, more): (&[Lease], bool),
    ) -> Result<(), Departure> {
        let key = self.key_of(&leader.id);
        if leases.len() > want {
            return Err(format!("{} calls are collected, not {want}", leases.len()));
        }
        for lease in leases {
            let other = self.tasks.get(&lease.id).ok_or("an unknown call is collected")?;
            let waits = matches!(other.place, Place::Waits(_)) && other.gather.is_some();
            if !waits || self.key_of(&lease.id) != key {
                return Err(format!("{} is collected from {:?}", lease.id, other.place));
            }
            self.task(&lease.id).place = Place::Working(lease.clone());
        }
        let left = self.mates(&leader.id).into_iter().find(|(_, task)| !task.came_back);
        let is_fresh = !self.tasks[&leader.id].came_back;
        if let Some((id, _)) = left.filter(|_| is_fresh && leases.len() < want && !more) {
            return Err(format!("{id} is left by a run that takes more"));
        }
        let known = self.keys.entry(key).or_default();
        if !more && known.leader.as_ref() == Some(&leader.id) {
            known.leader = None;
        }
        Ok(())
    }

    /// A call no longer leads a run that has not collected.
    pub(crate) fn leave_lead(&mut self, id: &TaskId) {
        if self.tasks[id].gather.is_none() {
            return;
        }
        let key = self.key_of(id);
        if let Some(known) = self.keys.get_mut(&key)
            && known.leader.as_ref() == Some(id)
        {
            (known.leader, known.is_free) = (None, true);
        }
    }

    /// A call that may have been the first of its key, or have led it, no longer waits. Then the
    /// others start at the time of that call, or at once.
    pub(crate) fn free_key(&mut self, id: &TaskId) {
        if self.tasks[id].gather.is_some() {
            self.keys.entry(self.key_of(id)).or_default().is_free = true;
        }
    }

    /// Whether a call leads a run that has not collected.
    pub(crate) fn is_leading(&self, id: &TaskId) -> bool {
        let is_gathered = self.tasks[id].gather.is_some();
        is_gathered
            && self.keys.get(&self.key_of(id)).is_some_and(|key| key.leader.as_ref() == Some(id))
    }
}
