//! Cancels the members of a group, and the steps and groups within them.

use std::{collections::BTreeSet, mem};

use futures_util::future::{BoxFuture, try_join_all};

use super::{Client, part_ids::is_part};
use crate::{
    Error,
    after::{Prerequisite, PrerequisiteFailure},
    broker::BATCH_MAX,
    group::{GroupProgress, Member},
    id::{QueueName, TaskId},
    record::TaskRecord,
};

/// How many groups are read or cancelled at the same time.
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

    /// Returns what it waits for, if that is a part of the same member.
    fn before(&self, former: Option<(TaskId, PrerequisiteFailure)>) -> Option<Self> {
        let (id, _) = former.filter(|(former, _)| is_part(&self.member, former))?;
        Some(Self { member: self.member.clone(), id })
    }
}

/// What a cancel of groups has done so far.
#[derive(Default)]
struct Progress {
    /// How many members are cancelled, or were asked to stop.
    cancelled: u32,
    /// The queues with effects for a relay.
    posted: BTreeSet<QueueName>,
    /// The groups within the members.
    inner: Vec<TaskId>,
}

impl Client {
    /// Cancels all members of a group, and the steps and groups within them. Returns how many
    /// members are cancelled now, or were asked to stop.
    pub(super) async fn cancel_members(
        &self,
        group: &TaskId,
        progress: &GroupProgress,
    ) -> Result<u32, Error> {
        let (mut done, mut of_outer) = (Progress::default(), None);
        let mut groups = vec![(group.clone(), progress.clone())];
        // All groups of one depth share calls: one after the other, they take a second for a few
        // hundred.
        let ended = loop {
            if let Err(problem) = self.cancel_all_members(&groups, &mut done).await {
                break Err(problem);
            }
            let cancelled = *of_outer.get_or_insert(done.cancelled);
            let inner = mem::take(&mut done.inner);
            if inner.is_empty() {
                break Ok(cancelled);
            }
            match self.disband_all(&inner, &mut done).await {
                Ok(found) => groups = found,
                Err(problem) => break Err(problem),
            }
        };
        for queue in &done.posted {
            self.carry(queue).await;
        }
        ended
    }

    /// Cancels the members of some groups, and the steps before the last one of each.
    async fn cancel_all_members(
        &self,
        groups: &[(TaskId, GroupProgress)],
        done: &mut Progress,
    ) -> Result<(), Error> {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        for some in groups.chunks(READS_MAX) {
            let have_parts = some.iter().map(|(group, _)| self.broker().group_has_parts(group));
            let have_parts = try_join_all(have_parts).await?;
            for ((group, progress), has_parts) in some.iter().zip(have_parts) {
                for queue in &progress.queues {
                    for index in 0..progress.total {
                        batch.push((Member::id(group, queue, index), has_parts));
                        if batch.len() == BATCH_MAX {
                            self.cancel_batch(mem::take(&mut batch), done).await?;
                        }
                    }
                }
            }
        }
        self.cancel_batch(batch, done).await
    }

    /// Cancels members, each of which may have steps before it.
    async fn cancel_batch(
        &self,
        members: Vec<(TaskId, bool)>,
        done: &mut Progress,
    ) -> Result<(), Error> {
        let ids = members.iter().map(|(id, _)| id.clone()).collect();
        for was_cancelled in self.cancel_found(ids, &mut done.posted).await? {
            done.cancelled += u32::from(was_cancelled);
        }
        let with_parts = members.iter().filter(|(_, has_parts)| *has_parts);
        let mut waiting: Vec<Part> = with_parts.map(|(id, _)| Part::of_member(id)).collect();
        // The records of what was cancelled are still there.
        while !waiting.is_empty() {
            let parts = self.parts_before(&waiting).await?;
            let ids = parts.iter().map(|part| part.id.clone()).collect();
            let cancelled = self.cancel_found(ids, &mut done.posted).await?;
            let others = parts.iter().zip(cancelled).filter(|(_, was_cancelled)| !was_cancelled);
            // Some have ended, and some are groups.
            done.inner.extend(others.map(|(part, _)| part.id.clone()));
            waiting = parts;
        }
        Ok(())
    }

    /// Cancels those of these groups that exist; returns how far they were.
    async fn disband_all(
        &self,
        groups: &[TaskId],
        done: &mut Progress,
    ) -> Result<Vec<(TaskId, GroupProgress)>, Error> {
        let mut found = Vec::new();
        for some in groups.chunks(READS_MAX) {
            let answers =
                try_join_all(some.iter().map(|group| self.broker().disband(group))).await?;
            for (group, answer) in some.iter().zip(answers) {
                let Some((progress, posted)) = answer else { continue };
                if posted {
                    done.posted.insert(group.queue().clone());
                }
                found.push((group.clone(), progress));
            }
        }
        Ok(found)
    }

    /// Cancels tasks; returns for each whether it is cancelled now, or was asked to stop. It is no
    /// error if a task has ended.
    async fn cancel_found(
        &self,
        ids: Vec<TaskId>,
        posted: &mut BTreeSet<QueueName>,
    ) -> Result<Vec<bool>, Error> {
        let (answers, queues) = self.cancel_and_tell_later(ids).await;
        posted.extend(queues);
        answers.into_iter().map(was_cancelled).collect()
    }

    /// Returns what steps wait for within their members.
    pub(super) async fn parts_before(&self, waiting: &[Part]) -> Result<Vec<Part>, Error> {
        let mut parts = Vec::new();
        for some in waiting.chunks(BATCH_MAX) {
            let ids: Vec<&TaskId> = some.iter().map(|part| &part.id).collect();
            let records = self.broker().stored_records(&ids).await?;
            let mut without = Vec::new();
            for (part, record) in some.iter().zip(records) {
                match TaskRecord::decode(record) {
                    Ok(record) => parts.extend(part.before(first_of(record))),
                    // It may be a group.
                    Err(_) => without.push(part),
                }
            }
            for some in without.chunks(READS_MAX) {
                let formers = some.iter().map(|part| self.former_of(&part.id));
                for (part, former) in some.iter().zip(try_join_all(formers).await?) {
                    parts.extend(part.before(former));
                }
            }
        }
        Ok(parts)
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
                return Ok(first_of(record));
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
}

/// Returns what a task waits for first, and what the failure of that means.
fn first_of(record: TaskRecord) -> Option<(TaskId, PrerequisiteFailure)> {
    let after = record.after?;
    match after.prerequisites.into_iter().next()? {
        Prerequisite::Task(former) => Some((former, after.on_failure)),
        Prerequisite::Key { .. } => None,
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
