//! Finds out what a group waits for, and at which task a chain of prerequisites waits.

use std::{cmp::Reverse, collections::BTreeSet, mem};

use crate::{
    after::{After, Prerequisite},
    broker::BrokerError,
    group::{GroupProgress, Member},
    group_details::{LostMember, MemberPlace},
    id::TaskId,
    inspect::{Inspector, PrerequisiteDetails},
    obstacle::Obstacle,
    record::TaskRecord,
    state::TaskState,
};

/// How many tasks are read to find where a chain of prerequisites waits.
const TASKS_MAX: usize = 32;

/// How many members are read to find one that has failed. The others were requeued since.
const LOST_MAX: usize = 64;

impl Inspector {
    /// Explains a group: how far it is, which member has failed, and what its members wait for.
    pub(crate) async fn of_group(&self, id: &TaskId) -> Result<Vec<Obstacle>, BrokerError> {
        let Some(mut progress) = self.broker.group(id).await? else {
            return Ok(vec![Obstacle::Forgotten]);
        };
        let lost = self.lost_or_requeued(id, &mut progress).await?;
        let mut obstacles = vec![Obstacle::Group { id: id.clone(), progress: progress.clone() }];
        if progress.ended.is_some() {
            return Ok(obstacles);
        }
        obstacles.extend(lost.map(Obstacle::LostMember));
        for first in first_members(id, &progress) {
            let unmet = self.unmet_of_task(&first).await?;
            obstacles.extend(self.of_prerequisites(unmet).await?);
        }
        Ok(obstacles)
    }

    /// Finds a member that has failed, and that the group waits for.
    pub(crate) async fn lost_member(
        &self,
        group: &TaskId,
        progress: &GroupProgress,
    ) -> Result<Option<LostMember>, BrokerError> {
        if progress.lost == 0 || progress.ended.is_some() {
            return Ok(None);
        }
        let positions = self.broker.lost_members(group).await?;
        for position in positions.into_iter().take(LOST_MAX) {
            for queue in &progress.queues {
                let id = Member::id(group, queue, position);
                let found = self.broker.inspect(&id).await?;
                if matches!(found.state, TaskState::Dead | TaskState::Cancelled) {
                    return Ok(Some(LostMember::of(group, position, id, found)));
                }
            }
        }
        Ok(None)
    }

    /// Finds such a member. If there is none, those that have failed were requeued: this is said of
    /// the group then.
    async fn lost_or_requeued(
        &self,
        group: &TaskId,
        progress: &mut GroupProgress,
    ) -> Result<Option<LostMember>, BrokerError> {
        let lost = self.lost_member(group, progress).await?;
        if lost.is_none() && progress.ended.is_none() {
            progress.requeued = mem::take(&mut progress.lost);
        }
        Ok(lost)
    }

    /// Reads what a task waits for or has waited for, as it is now.
    pub(crate) async fn prerequisites_after(
        &self,
        id: &TaskId,
        after: Option<&After>,
    ) -> Result<Vec<PrerequisiteDetails>, BrokerError> {
        let Some(after) = after else { return Ok(Vec::new()) };
        let mut all = self.broker.prerequisites(id, after).await?;
        self.see_requeued(&mut all).await?;
        Ok(all)
    }

    /// Looks for the members of the groups among these that have failed.
    pub(crate) async fn see_requeued(
        &self,
        all: &mut [PrerequisiteDetails],
    ) -> Result<(), BrokerError> {
        for found in all {
            if let (Prerequisite::Task(group), Some(progress)) =
                (&found.prerequisite, &mut found.group)
            {
                self.lost_or_requeued(group, progress).await?;
            }
        }
        Ok(())
    }

    /// Returns the obstacles that the unmet prerequisites of a task are: each of them, and where
    /// they wait.
    pub(crate) async fn of_prerequisites(
        &self,
        unmet: Vec<PrerequisiteDetails>,
    ) -> Result<Vec<Obstacle>, BrokerError> {
        let origin = self.origin(&unmet).await?;
        let mut obstacles: Vec<Obstacle> = unmet.into_iter().map(Obstacle::Prerequisite).collect();
        let Some(Hop { through, from, found }) = origin else { return Ok(obstacles) };
        if through > 0 {
            let prerequisite = found.clone();
            obstacles.push(Obstacle::Origin { from, through, prerequisite });
        }
        if let (Prerequisite::Task(group), Some(progress)) = (&found.prerequisite, &found.group) {
            let member = self.lost_member(group, progress).await?;
            obstacles.extend(member.map(Obstacle::LostMember));
        }
        Ok(obstacles)
    }

    /// Finds what tasks with these prerequisites wait for in the end: the first one that must be
    /// requeued, or else the end of the first way.
    pub(crate) async fn origin(
        &self,
        unmet: &[PrerequisiteDetails],
    ) -> Result<Option<Hop>, BrokerError> {
        let firsts = unmet.iter().map(|found| (0, found.prerequisite.clone(), found.clone()));
        let mut hops: Vec<Hop> = firsts.map(Hop::of).collect();
        hops.sort_by_key(|hop| Reverse(telling(&hop.found)));
        let (mut end, mut seen) = (None, BTreeSet::new());
        while let Some(hop) = hops.pop() {
            if must_be_requeued(&hop.found) {
                return Ok(Some(hop));
            }
            let mut next = self.waits_behind(&hop.found, &mut seen).await?;
            if next.is_empty() {
                end.get_or_insert(hop);
                continue;
            }
            next.sort_by_key(|found| Reverse(telling(found)));
            let next = next.into_iter().map(|found| (hop.through + 1, hop.from.clone(), found));
            hops.extend(next.map(Hop::of));
        }
        Ok(end)
    }

    /// Returns what a prerequisite waits for itself: a task, or the members of a group.
    async fn waits_behind(
        &self,
        found: &PrerequisiteDetails,
        seen: &mut BTreeSet<TaskId>,
    ) -> Result<Vec<PrerequisiteDetails>, BrokerError> {
        let ids: Vec<TaskId> = match (&found.prerequisite, &found.group) {
            (Prerequisite::Task(group), Some(progress)) => first_members(group, progress).collect(),
            (named, None) if found.state == TaskState::Blocked => {
                self.task_of(named).await?.into_iter().collect()
            }
            _ => Vec::new(),
        };
        for id in ids {
            // Tasks that wait for each other are followed once.
            if seen.len() < TASKS_MAX && seen.insert(id.clone()) {
                let unmet = self.unmet_of_task(&id).await?;
                if !unmet.is_empty() {
                    return Ok(unmet);
                }
            }
        }
        Ok(Vec::new())
    }

    /// Returns what the members of a group wait for or have waited for; empty if that is not known
    /// any more.
    pub(crate) async fn before_members(
        &self,
        group: &TaskId,
    ) -> Result<Vec<PrerequisiteDetails>, BrokerError> {
        let Some(progress) = self.broker.group(group).await? else { return Ok(Vec::new()) };
        for id in first_members(group, &progress) {
            let found = self.prerequisites_of(&id).await?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    async fn unmet_of_task(&self, id: &TaskId) -> Result<Vec<PrerequisiteDetails>, BrokerError> {
        let found = self.prerequisites_of(id).await?.into_iter();
        Ok(found.filter(|found| !found.is_met).collect())
    }

    async fn prerequisites_of(&self, id: &TaskId) -> Result<Vec<PrerequisiteDetails>, BrokerError> {
        let record = TaskRecord::decode(self.broker.inspect(id).await?.record).ok();
        self.prerequisites_after(id, record.and_then(|record| record.after).as_ref()).await
    }

    async fn task_of(&self, named: &Prerequisite) -> Result<Option<TaskId>, BrokerError> {
        match named {
            Prerequisite::Task(id) => Ok(Some(id.clone())),
            Prerequisite::Key { queue, task, biz_id } => {
                self.broker.find(queue, task, biz_id).await
            }
        }
    }

    /// Reads the place of a member in its group.
    pub(crate) async fn member_place(
        &self,
        record: Option<&TaskRecord>,
    ) -> Result<Option<MemberPlace>, BrokerError> {
        let member = record.and_then(|record| record.member.as_ref());
        let Some(Member { group, index, .. }) = member else { return Ok(None) };
        let mut progress = self.broker.group(group).await?;
        if let Some(progress) = &mut progress {
            self.lost_or_requeued(group, progress).await?;
        }
        Ok(Some(MemberPlace { group: group.clone(), position: *index, progress }))
    }
}

/// A prerequisite on a way through tasks that wait.
#[derive(Debug)]
pub(crate) struct Hop {
    /// How many tasks, or members of groups, wait between it and the first one of the way.
    pub(crate) through: u32,
    /// The first one of the way.
    pub(crate) from: Prerequisite,
    pub(crate) found: PrerequisiteDetails,
}

impl Hop {
    fn of((through, from, found): (u32, Prerequisite, PrerequisiteDetails)) -> Self {
        Self { through, from, found }
    }
}

/// The ids that the first member of a group may have. All members of a group wait for the same step
/// before it, so there is none once a member has ended.
fn first_members<'a>(
    group: &'a TaskId,
    progress: &'a GroupProgress,
) -> impl Iterator<Item = TaskId> + 'a {
    let waits = progress.ended.is_none() && progress.done == 0;
    let queues = progress.queues.iter().filter(move |_| waits);
    queues.map(|queue| Member::id(group, queue, 0))
}

/// Returns how useful a prerequisite is to know: 0 is one that must be requeued, then those that
/// wait.
fn telling(found: &PrerequisiteDetails) -> u8 {
    match (found.state, &found.group) {
        (TaskState::Dead | TaskState::Cancelled, _) => 0,
        (_, Some(group)) if group.lost > 0 => 1,
        (TaskState::Blocked, _) => 2,
        (_, Some(_)) => 3,
        _ => 4,
    }
}

/// Returns whether it waits until somebody requeues it.
pub(crate) fn must_be_requeued(found: &PrerequisiteDetails) -> bool {
    telling(found) <= 1
}
