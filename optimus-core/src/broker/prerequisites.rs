//! Plain reads of what a task waits for.

use super::{
    Broker, BrokerError,
    inspect::{get, texts},
};
use crate::{
    after::{After, Prerequisite},
    id::TaskId,
    state::TaskState,
};

/// The mark of each prerequisite, by its place in the record.
const MARKS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";

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
        let marks = unmet.split(';').next().unwrap_or_default().as_bytes();
        let mut found = Vec::new();
        for (prerequisite, mark) in after.prerequisites.iter().zip(MARKS) {
            let state = self.state_of_prerequisite(prerequisite).await?;
            let (prerequisite, is_met) = (prerequisite.clone(), !marks.contains(mark));
            found.push(PrerequisiteDetails { prerequisite, is_met, state });
        }
        Ok(found)
    }

    async fn state_of_prerequisite(
        &self,
        prerequisite: &Prerequisite,
    ) -> Result<TaskState, BrokerError> {
        let (queue, task, biz_id) = match prerequisite {
            Prerequisite::Task(id) => return self.state_of(id, None).await,
            Prerequisite::Key { queue, task, biz_id } => (queue, task, biz_id),
        };
        let keys = self.keys(queue);
        let outcome = keys.of(&format!("outcome:{task}:{biz_id}"));
        let answer = self.read_one(get(&["MGET", &outcome, &keys.biz(task, biz_id)])).await?;
        let [outcome, holder] = &texts("MGET", answer)?[..] else {
            return Err(BrokerError::UnexpectedReply("MGET answered another number".into()));
        };
        if !outcome.is_empty() {
            return Ok(TaskState::Success);
        }
        match TaskId::from_stored(queue.clone(), holder.split(':').next().unwrap_or_default()) {
            Ok(id) => self.state_of(&id, None).await,
            Err(_) => Ok(TaskState::Forgotten),
        }
    }
}
