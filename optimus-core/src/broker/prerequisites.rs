//! Plain reads of what a task waits for.

use super::{
    Broker, BrokerError,
    inspect::{get, stored_id, texts},
};
use crate::{
    after::{After, Prerequisite},
    group::GroupProgress,
    id::{QueueName, TaskId},
    state::TaskState,
};

/// A prerequisite of a task, as an inspector shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrerequisiteDetails {
    /// The task that is waited for.
    pub prerequisite: Prerequisite,
    /// Whether the task no longer waits for it.
    pub is_met: bool,
    /// The state of the task that is waited for. `Forgotten`: it was not submitted yet, or nothing
    /// is known of it any more.
    pub state: TaskState,
    /// How far it is, if it is a [group](fn@crate::group) of tasks.
    pub group: Option<GroupProgress>,
}

impl Broker {
    /// Reads the state of each prerequisite of a task.
    pub async fn prerequisites(
        &self,
        id: &TaskId,
        after: &After,
    ) -> Result<Vec<PrerequisiteDetails>, BrokerError> {
        let (keys, stored) = (self.keys(id.queue()), id.stored());
        let marks = |key| get(&["HMGET", &keys.of(key), &stored]);
        let mut unmet = String::new();
        for answer in self.read(["unmet", "unmet_ended"].map(marks).into()).await {
            unmet.extend(texts("HMGET", answer?)?);
        }
        let marks = unmet.split(';').next().unwrap_or_default();
        let mut found = Vec::new();
        for (mark, prerequisite) in after.marked() {
            let mut state = self.state_of_prerequisite(prerequisite).await?;
            let group = match prerequisite {
                Prerequisite::Task(id) if state == TaskState::Forgotten => self.group(id).await?,
                _ => None,
            };
            if let Some(group) = &group {
                state = group.ended.unwrap_or(TaskState::Working);
            }
            let (prerequisite, is_met) = (prerequisite.clone(), !marks.contains(mark));
            found.push(PrerequisiteDetails { prerequisite, is_met, state, group });
        }
        Ok(found)
    }

    /// Reads whether a task was cancelled because of what no requeue can change, such as a group
    /// that was cancelled.
    pub async fn is_void(&self, id: &TaskId) -> Result<bool, BrokerError> {
        let unmet_ended = self.keys(id.queue()).of("unmet_ended");
        let found = self.read_one(get(&["HMGET", &unmet_ended, &id.stored()])).await?;
        let found = texts("HMGET", found)?;
        let flags = found.first().and_then(|value| value.split(';').nth(2));
        Ok(flags.is_some_and(|flags| flags.contains('v')))
    }

    /// Finds the task that a biz id belongs to, or has belonged to if its outcome is remembered.
    pub async fn find(
        &self,
        queue: &QueueName,
        task: &str,
        biz_id: &str,
    ) -> Result<Option<TaskId>, BrokerError> {
        let (outcome, holder) = self.outcome_and_holder(queue, task, biz_id).await?;
        let mut ids = [holder.split(':').next(), outcome.split(' ').next()].into_iter().flatten();
        Ok(ids.find_map(|id| stored_id(queue, id)))
    }

    /// Reads the remembered outcome of a biz id, and its mark; empty if there is none.
    async fn outcome_and_holder(
        &self,
        queue: &QueueName,
        task: &str,
        biz_id: &str,
    ) -> Result<(String, String), BrokerError> {
        let keys = self.keys(queue);
        let outcome = keys.of(&format!("outcome:{task}:{biz_id}"));
        let answer = self.read_one(get(&["MGET", &outcome, &keys.biz(task, biz_id)])).await?;
        match <[String; 2]>::try_from(texts("MGET", answer)?) {
            Ok([outcome, holder]) => Ok((outcome, holder)),
            Err(_) => Err(BrokerError::UnexpectedReply("MGET answered another number".into())),
        }
    }

    async fn state_of_prerequisite(
        &self,
        prerequisite: &Prerequisite,
    ) -> Result<TaskState, BrokerError> {
        let (queue, task, biz_id) = match prerequisite {
            Prerequisite::Task(id) => return self.state_of(id, None).await,
            Prerequisite::Key { queue, task, biz_id } => (queue, task, biz_id),
        };
        let (outcome, holder) = self.outcome_and_holder(queue, task, biz_id).await?;
        if !outcome.is_empty() {
            return Ok(TaskState::Success);
        }
        match stored_id(queue, holder.split(':').next().unwrap_or_default()) {
            Some(id) => self.state_of(&id, None).await,
            None => Ok(TaskState::Forgotten),
        }
    }
}
