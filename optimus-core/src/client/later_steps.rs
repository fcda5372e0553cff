//! Refuses steps and members that would wait for what can't end before they have: [`LaterSteps`].

use std::{collections::BTreeSet, iter};

use futures_util::future::try_join_all;

use super::Client;
use crate::{
    Error,
    after::{After, NOT_SUBMITTED, Prerequisite},
    broker::{Broker, BrokerError},
    flow::Stage,
    id::TaskId,
    record::TaskRecord,
    submission::{Fields, Submission},
};

/// At most this many tasks are read to find out whether the members of a batch wait for themselves.
const WALK_MAX: usize = 64;

/// What waits for the part of a flow that is being stored: the steps after it, and the groups
/// around it. Each waits for the one that was added after it.
#[derive(Default)]
pub(super) struct LaterSteps {
    all: Vec<(Prerequisite, TaskId)>,
}

impl LaterSteps {
    /// Adds a task, for which others may wait by its id or by its biz id.
    pub(super) fn add_task(&mut self, task: &Submission) {
        if let Some(biz_id) = task.biz_id.clone() {
            let (queue, name) = (task.id.queue().clone(), task.task.clone().into_owned());
            let key = Prerequisite::Key { queue, task: name, biz_id };
            self.all.push((key, task.id.clone()));
        }
        self.add(&task.id);
    }

    /// Adds a group.
    pub(super) fn add(&mut self, id: &TaskId) {
        self.all.push((Prerequisite::Task(id.clone()), id.clone()));
    }

    /// Removes a group that has ended: it waits for nothing.
    pub(super) fn remove(&mut self, group: &TaskId) {
        self.all.retain(|(_, id)| id != group);
    }

    /// Returns a mark for [`forget`](Self::forget).
    pub(super) fn mark(&self) -> usize {
        self.all.len()
    }

    /// Forgets what was added after the mark.
    pub(super) fn forget(&mut self, mark: usize) {
        self.all.truncate(mark);
    }

    /// Refuses a task that waits for one of these.
    pub(super) fn check(&self, task: &str, after: Option<&After>) -> Result<(), Error> {
        let mut awaited = after.into_iter().flat_map(|after| &after.prerequisites);
        awaited.find_map(|one| self.path_from(one)).map_or(Ok(()), |path| Err(refusal(task, path)))
    }

    /// Refuses members of a group that wait for one of these. Returns what others of them wait for,
    /// with the names of their tasks.
    pub(super) fn check_members(
        &self,
        members: &[Vec<Stage<'_>>],
    ) -> Result<Vec<(Prerequisite, String)>, Error> {
        let (mut awaited, mut seen) = (Vec::new(), BTreeSet::new());
        for stage in members.iter().flatten() {
            let Stage::Task(step) = stage else { continue };
            let Ok(submission) = &step.made else { continue };
            let Fields { task, after, .. } = &**submission;
            self.check(task, after.as_ref())?;
            for one in after.iter().flat_map(|after| &after.prerequisites) {
                if seen.len() < WALK_MAX && seen.insert(one.reference()) {
                    awaited.push((one.clone(), task.clone().into_owned()));
                }
            }
        }
        Ok(awaited)
    }

    /// Refuses members that wait for one of these through stored tasks. It follows what these wait
    /// for.
    pub(super) async fn check_stored(
        &self,
        client: &Client,
        awaited: Vec<(Prerequisite, String)>,
    ) -> Result<(), Error> {
        let (broker, mut seen) = (client.broker(), BTreeSet::new());
        let mut level: Vec<Way> =
            awaited.into_iter().map(|(to, task)| Way { to, task, past: Vec::new() }).collect();
        while !level.is_empty() {
            let ids = try_join_all(level.iter().map(|way| id_of(broker, &way.to))).await?;
            let known: Vec<(TaskId, Way)> = iter::zip(ids, level)
                .filter_map(|(id, way)| Some((id?, way)))
                .filter(|(id, _)| seen.len() < WALK_MAX && seen.insert(id.clone()))
                .collect();
            let ids: Vec<&TaskId> = known.iter().map(|(id, _)| id).collect();
            let records = broker.stored_records(&ids).await?;
            level = Vec::new();
            for ((id, Way { task, mut past, .. }), record) in known.into_iter().zip(records) {
                past.push(id);
                let after = TaskRecord::decode(record).ok().and_then(|record| record.after);
                for to in after.into_iter().flat_map(|after| after.prerequisites) {
                    if let Some(rest) = self.path_from(&to) {
                        past.extend(rest);
                        return Err(refusal(&task, past));
                    }
                    level.push(Way { to, task: task.clone(), past: past.clone() });
                }
            }
        }
        Ok(())
    }

    /// Returns this one and those for which it waits, in their order.
    fn path_from(&self, one: &Prerequisite) -> Option<Vec<TaskId>> {
        let at = self.all.iter().position(|(later, _)| later == one)?;
        let mut path: Vec<TaskId> = self.all[at..].iter().map(|(_, id)| id.clone()).collect();
        path.dedup();
        Some(path)
    }
}

/// How a member comes to wait for a prerequisite: through these stored tasks.
struct Way {
    to: Prerequisite,
    task: String,
    past: Vec<TaskId>,
}

async fn id_of(broker: &Broker, one: &Prerequisite) -> Result<Option<TaskId>, BrokerError> {
    match one {
        Prerequisite::Task(id) => Ok(Some(id.clone())),
        Prerequisite::Key { queue, task, biz_id } => broker.find(queue, task, biz_id).await,
    }
}

fn refusal(task: &str, path: Vec<TaskId>) -> Error {
    Error::waits_for_itself(format!("task {task:?}"), path, NOT_SUBMITTED)
}
