//! Finds out what a group waits for, and at which task a chain of prerequisites waits.

use std::collections::BTreeSet;

use crate::{
    after::Prerequisite,
    broker::BrokerError,
    explanation::Obstacle,
    group::{GroupProgress, Member},
    group_details::{LostMember, MemberPlace},
    id::TaskId,
    inspect::{Inspector, PrerequisiteDetails},
    record::TaskRecord,
    state::TaskState,
};

/// How many prerequisites of prerequisites are followed.
const HOPS_MAX: u32 = 16;

/// How many members are read to find one that has failed. The others were requeued since.
const LOST_MAX: usize = 64;

impl Inspector {
    /// Explains a group: how far it is, which member has failed, and what its members wait for.
    pub(crate) async fn of_group(&self, id: &TaskId) -> Result<Vec<Obstacle>, BrokerError> {
        let Some(progress) = self.broker.group(id).await? else {
            return Ok(vec![Obstacle::Forgotten]);
        };
        let mut obstacles = vec![Obstacle::Group { id: id.clone(), progress: progress.clone() }];
        if progress.ended.is_some() {
            return Ok(obstacles);
        }
        obstacles.extend(self.lost_member(id, &progress).await?.map(Obstacle::LostMember));
        // All members of a group wait for the same step before it.
        if progress.done == 0 {
            let firsts = progress.queues.iter().map(|queue| Member::id(id, queue, 0));
            for first in firsts {
                obstacles.extend(self.waits_for(&first).await?);
            }
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

    /// Returns the obstacles that the unmet prerequisites of a task are: each of them, and where
    /// the first one waits.
    pub(crate) async fn of_prerequisites(
        &self,
        unmet: Vec<PrerequisiteDetails>,
    ) -> Result<Vec<Obstacle>, BrokerError> {
        let (mut through, mut next) = (0, most_telling(&unmet).cloned());
        let mut obstacles: Vec<Obstacle> = unmet.into_iter().map(Obstacle::Prerequisite).collect();
        let (mut last, mut seen) = (next.clone(), BTreeSet::new());
        while through < HOPS_MAX
            && let Some(found) = next.take_if(|found| found.state == TaskState::Blocked)
            && let Some(id) = self.task_of(&found.prerequisite).await?
            // Tasks that wait for each other are followed once.
            && seen.insert(id.clone())
        {
            next = most_telling(&self.unmet_of_task(&id).await?).cloned();
            if next.is_some() {
                last.clone_from(&next);
                through += 1;
            }
        }
        let Some(last) = last else { return Ok(obstacles) };
        if let (Prerequisite::Task(group), Some(progress)) = (&last.prerequisite, &last.group) {
            let member = self.lost_member(group, progress).await?;
            if through > 0 {
                obstacles.push(Obstacle::Origin { through, prerequisite: last.clone() });
            }
            obstacles.extend(member.map(Obstacle::LostMember));
        } else if through > 0 {
            obstacles.push(Obstacle::Origin { through, prerequisite: last });
        }
        Ok(obstacles)
    }

    /// Returns what a task waits for, as obstacles.
    async fn waits_for(&self, id: &TaskId) -> Result<Vec<Obstacle>, BrokerError> {
        let unmet = self.unmet_of_task(id).await?;
        Box::pin(self.of_prerequisites(unmet)).await
    }

    async fn unmet_of_task(&self, id: &TaskId) -> Result<Vec<PrerequisiteDetails>, BrokerError> {
        let record = TaskRecord::decode(self.broker.inspect(id).await?.record).ok();
        let Some(after) = record.and_then(|record| record.after) else { return Ok(Vec::new()) };
        let found = self.broker.prerequisites(id, &after).await?.into_iter();
        Ok(found.filter(|found| !found.is_met).collect())
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
        let progress = self.broker.group(group).await?;
        Ok(Some(MemberPlace { group: group.clone(), position: *index, progress }))
    }
}

/// Returns the most useful prerequisite: one that must be requeued, or else one that waits.
fn most_telling(unmet: &[PrerequisiteDetails]) -> Option<&PrerequisiteDetails> {
    unmet.iter().min_by_key(|found| match (found.state, &found.group) {
        (TaskState::Dead | TaskState::Cancelled, _) => 0,
        (_, Some(group)) if group.lost > 0 => 1,
        (TaskState::Blocked, _) => 2,
        (_, Some(_)) => 3,
        _ => 4,
    })
}
