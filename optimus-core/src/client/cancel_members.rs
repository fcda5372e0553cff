//! Cancels the members of a group, and the steps and groups within them.

use futures_util::future::{BoxFuture, join_all};

use super::{Client, part_ids::is_part};
use crate::{
    Error,
    after::{Prerequisite, PrerequisiteFailure},
    broker::BATCH_MAX,
    group::{GroupProgress, Member},
    id::TaskId,
    record::TaskRecord,
};

/// How many records are read at the same time.
const READS_MAX: usize = 64;

/// A step of a member, or the member itself, which is its last step.
pub(super) struct Part {
    member: TaskId,
    pub(super) id: TaskId,
}

impl Part {
    pub(super) fn of_member(id: &TaskId) -> Self {
        Self { member: id.clone(), id: id.clone() }
    }
}

impl Client {
    /// Cancels all members of a group. Returns how many are cancelled now, or were asked to stop.
    pub(super) async fn cancel_members(
        &self,
        group: &TaskId,
        progress: &GroupProgress,
    ) -> Result<u32, Error> {
        let (mut cancelled, indexes) = (0, (0..progress.total).collect::<Vec<_>>());
        let has_parts = self.broker().group_has_parts(group).await?;
        for queue in &progress.queues {
            for indexes in indexes.chunks(BATCH_MAX) {
                let ids = indexes.iter().map(|index| Member::id(group, queue, *index));
                let ids: Vec<TaskId> = ids.collect();
                for answer in self.cancel_all(ids.iter().cloned()).await {
                    cancelled += u32::from(was_cancelled(answer)?);
                }
                if has_parts {
                    self.cancel_parts(&ids).await?;
                }
            }
        }
        Ok(cancelled)
    }

    /// Cancels what members wait for within the group: the steps before the last one of each. An
    /// inner group is cancelled as a whole. The records of what was cancelled are still there.
    async fn cancel_parts(&self, members: &[TaskId]) -> Result<(), Error> {
        let mut waiting: Vec<Part> = members.iter().map(Part::of_member).collect();
        while !waiting.is_empty() {
            let parts = self.parts_before(&waiting).await?;
            for some in parts.chunks(BATCH_MAX) {
                let ids = some.iter().map(|part| part.id.clone());
                for (part, answer) in some.iter().zip(self.cancel_all(ids).await) {
                    if !was_cancelled(answer)? {
                        self.cancel_inner(&part.id).await?;
                    }
                }
            }
            waiting = parts;
        }
        Ok(())
    }

    /// Returns what steps wait for within their members.
    pub(super) async fn parts_before(&self, waiting: &[Part]) -> Result<Vec<Part>, Error> {
        let mut parts = Vec::new();
        for some in waiting.chunks(READS_MAX) {
            for found in join_all(some.iter().map(|part| self.part_before(part))).await {
                parts.extend(found?);
            }
        }
        Ok(parts)
    }

    /// Returns what a step waits for, if that is a part of the same member.
    async fn part_before(&self, Part { member, id }: &Part) -> Result<Option<Part>, Error> {
        let former = self.former_of(id).await?.map(|(former, _)| former);
        let former = former.filter(|former| is_part(member, former));
        Ok(former.map(|id| Part { member: member.clone(), id }))
    }

    /// Returns what a task or a group waits for first, and what the failure of that means. All
    /// members of a group wait for the same.
    pub(super) fn former_of<'a>(
        &'a self,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<(TaskId, PrerequisiteFailure)>, Error>> {
        Box::pin(async move {
            let record = self.broker().inspect(id).await?.record;
            if let Ok(record) = TaskRecord::decode(record) {
                return Ok(record.after.and_then(|after| {
                    match after.prerequisites.into_iter().next()? {
                        Prerequisite::Task(former) => Some((former, after.on_failure)),
                        Prerequisite::Key { .. } => None,
                    }
                }));
            }
            let queues = self.broker().group(id).await?.map(|group| group.queues);
            for queue in queues.unwrap_or_default() {
                let member = Member::id(id, &queue, 0);
                let mut former = self.former_of(&member).await?;
                while let Some((part, _)) = former.take_if(|(former, _)| is_part(&member, former)) {
                    former = self.former_of(&part).await?;
                }
                if former.is_some() {
                    return Ok(former);
                }
            }
            Ok(None)
        })
    }

    /// Cancels a group within a member, if the id is one.
    fn cancel_inner<'a>(&'a self, id: &'a TaskId) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            if self.broker().group(id).await?.is_some() {
                self.group::<()>(id.clone()).cancel().await?;
            }
            Ok(())
        })
    }
}

/// Returns whether a task was cancelled or asked to stop; it is no error if it has ended.
fn was_cancelled<T>(answer: Result<T, Error>) -> Result<bool, Error> {
    match answer {
        Ok(_) => Ok(true),
        Err(problem) if problem.is_wrong_state() || problem.is_forgotten() => Ok(false),
        Err(problem) => Err(problem),
    }
}
