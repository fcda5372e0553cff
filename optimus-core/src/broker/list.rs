//! `list`: the tasks in a state, a page at a time.

use super::{Broker, BrokerError, Reply, ScriptCall, claim::read_tries, scripts};
use crate::{
    id::{QueueName, TaskId, WorkerId},
    state::TaskState,
};

/// One page of the tasks in a state.
#[derive(Debug, Default)]
pub struct Listed {
    /// The tasks, in the order in which they leave the state, or the latest first.
    pub rows: Vec<Row>,
    /// The start of the next page; empty if there is none.
    pub next: String,
}

/// The row of one task on a page.
#[derive(Debug)]
pub struct Row {
    /// The id of the task.
    pub id: TaskId,
    /// The worker that holds the task.
    pub worker: Option<WorkerId>,
    /// When the task is due or ended, in ms; of a ready one, since when it is ready, if that is not
    /// its submit.
    pub at_ms: Option<u64>,
    /// The header of the record, as stored; empty for a success.
    pub header: Vec<u8>,
    /// Counts of failures, losses and misfits so far.
    pub tries: (u32, u32, u32),
    /// The last line of the error history.
    pub error: String,
    /// The summary of a success.
    pub summary: String,
}

impl Broker {
    /// Reads up to `limit` (and [`BATCH_MAX`](super::BATCH_MAX)) tasks in a state, starting at
    /// `cursor`, which is empty for the first page.
    pub async fn list(
        &self,
        queue: &QueueName,
        state: TaskState,
        limit: usize,
        cursor: &str,
    ) -> Result<Listed, BrokerError> {
        let call = self.list_call(queue, state, limit, cursor);
        Self::read_list(queue, self.run_read(call).await?)
    }

    /// Reads as [`list`](Self::list), ended tasks with the oldest first.
    pub async fn list_oldest(
        &self,
        queue: &QueueName,
        state: TaskState,
        limit: usize,
        cursor: &str,
    ) -> Result<Listed, BrokerError> {
        let call = ScriptCall::new(&scripts::LIST, &self.keys(queue), "").arg(state.as_str());
        let call = call.arg(limit).arg(cursor).text("oldest");
        Self::read_list(queue, self.run_read(call).await?)
    }

    pub(super) fn list_call(
        &self,
        queue: &QueueName,
        state: TaskState,
        limit: usize,
        cursor: &str,
    ) -> ScriptCall {
        let call = ScriptCall::new(&scripts::LIST, &self.keys(queue), "").arg(state.as_str());
        call.arg(limit).arg(cursor).text("")
    }

    pub(super) fn read_list(queue: &QueueName, mut reply: Reply) -> Result<Listed, BrokerError> {
        let next = String::from_utf8_lossy(&reply.bytes()?).into_owned();
        let mut listed = Listed { rows: Vec::new(), next };
        while !reply.is_empty() {
            // Another program may have added a foreign entry to the list, of any bytes.
            let id = String::from_utf8_lossy(&reply.bytes()?).into_owned();
            let id = TaskId::from_stored(queue.clone(), &id);
            let worker = Some(reply.text()?).filter(|worker| !worker.is_empty());
            let at_ms = reply.text()?.parse::<f64>().ok().map(super::inspect::whole);
            let (header, tries) = (reply.bytes()?, read_tries(&reply.text()?));
            let (error, summary) = (reply.text()?, reply.text()?);
            let worker = worker.map(|worker| WorkerId::from_stored(&worker));
            if let Ok(id) = id {
                listed.rows.push(Row { id, worker, at_ms, header, tries, error, summary });
            }
        }
        Ok(listed)
    }
}
