//! Finds a task of which only the uuid is known: [`Inspector::holders`].

use uuid::Uuid;

use crate::{
    Error,
    id::{QueueName, TaskId},
    inspect::Inspector,
};

/// How many queues one write asks.
const QUEUES_A_WRITE: usize = 500;

impl Inspector {
    /// Returns the tasks with this uuid in these queues: one command a queue, 500 queues in a
    /// write. A task that has succeeded is not found.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn holders(&self, uuid: Uuid, queues: &[QueueName]) -> Result<Vec<TaskId>, Error> {
        let mut found = Vec::new();
        for part in queues.chunks(QUEUES_A_WRITE) {
            let Some(first) = part.first() else { break };
            let id = |queue: &QueueName| format!("{queue}/{uuid}").parse::<TaskId>();
            let stored = id(first)?.stored();
            for queue in self.broker.holders(&stored, part).await? {
                found.push(id(&queue)?);
            }
        }
        Ok(found)
    }
}
