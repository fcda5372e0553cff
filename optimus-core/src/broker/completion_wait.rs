//! `await` and completion messages: how clients wait for the end of a task.

use std::time::Duration;

use super::{
    Broker, BrokerError, LEDGER_SLOTS, Reply, ScriptCall, StoredBy,
    inspect::{get, state},
    reply, scripts,
};
use crate::{
    id::{QueueName, TaskId},
    state::TaskState,
};

/// How a task has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The state of the task.
    pub state: TaskState,
    /// The result of the handler, after a success.
    pub returned: Returned,
}

/// The part of a handler's result that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Returned {
    /// No result is kept, or the task did not succeed.
    Nothing,
    /// The result as JSON.
    Json(Vec<u8>),
    /// The result is too large for a script to return, or was not requested; see
    /// [`Broker::result`].
    Elsewhere,
}

/// How tasks of one client have ended.
#[derive(Debug)]
pub struct Ends {
    /// The task that is waited for, if it has ended.
    pub end: Option<End>,
    /// The result of each of the other tasks that has succeeded.
    pub next: Vec<Option<Returned>>,
}

/// The word for a success whose result is too large for a script to return.
const LARGE: &str = "large";
/// The word for a task that has not ended.
const OPEN: &str = "open";

/// The maximum number of completion messages that are taken at once, after the first.
const COMPLETIONS_MAX: &str = "1000";
/// How long taking them may last.
const MORE_WITHIN: Duration = Duration::from_secs(5);

/// The number of keys of `await` that a wait needs. A read of the state needs all keys.
const WAIT_KEYS: usize = 7;

impl Broker {
    /// Registers `client` as waiting for the task's end; `None` while it has not ended. If the call
    /// that submitted the task is known, its success is found no matter how long ago it was.
    pub async fn wait_for_end(
        &self,
        id: &TaskId,
        client: &str,
        stored_by: Option<StoredBy<'_>>,
    ) -> Result<Option<End>, BrokerError> {
        Ok(self.wait_with_next(id, client, stored_by, &[]).await?.end)
    }

    /// Waits as [`wait_for_end`](Self::wait_for_end), and also returns which of these other tasks
    /// have succeeded. Each has the number of the call with which the same client submitted it.
    pub async fn wait_with_next(
        &self,
        id: &TaskId,
        client: &str,
        stored_by: Option<StoredBy<'_>>,
        next: &[(TaskId, u64)],
    ) -> Result<Ends, BrokerError> {
        let mut call = self.await_call(WAIT_KEYS, id, client, stored_by);
        for (id, number) in next {
            push_asked(&mut call, id, Some(*number));
        }
        let mut reply = self.run_read(call).await?;
        let end = read_end(&mut reply)?;
        let next = next.iter().map(|_| {
            let end = read_end(&mut reply)?;
            Ok(end.filter(|end| end.state == TaskState::Success).map(|end| end.returned))
        });
        Ok(Ends { end, next: next.collect::<Result<_, BrokerError>>()? })
    }

    /// Reads the state of a task. For `stored_by` see [`wait_for_end`](Self::wait_for_end).
    pub async fn state_of(
        &self,
        id: &TaskId,
        stored_by: Option<StoredBy<'_>>,
    ) -> Result<TaskState, BrokerError> {
        let all = scripts::AWAIT.keys.len();
        match self.run_read(self.await_call(all, id, "", stored_by)).await?.text()?.as_str() {
            LARGE => Ok(TaskState::Success),
            word => state(word),
        }
    }

    fn await_call(
        &self,
        key_count: usize,
        id: &TaskId,
        client: &str,
        stored_by: Option<StoredBy<'_>>,
    ) -> ScriptCall {
        let keys = self.keys(id.queue());
        let owner = stored_by.map_or("", |stored| stored.client);
        let mut call = ScriptCall::short(&scripts::AWAIT, key_count, &keys, owner).arg(client);
        push_asked(&mut call, id, stored_by.map(|stored| stored.number));
        call
    }

    /// Waits for completion messages in one queue and takes those that have come; returns none
    /// after `timeout`.
    pub async fn wait_for_completions(
        &self,
        queue: &QueueName,
        client: &str,
        timeout: Duration,
    ) -> Result<Vec<(TaskId, TaskState)>, BrokerError> {
        let completion_listener = self.keys(queue).completions(client);
        let Some((_, first)) =
            self.block(std::slice::from_ref(&completion_listener), timeout).await?
        else {
            return Ok(Vec::new());
        };
        let mut completions = vec![first];
        // The first message is already taken. If taking more fails, they stay for the next call.
        let more = self.one(get(&["LPOP", &completion_listener, COMPLETIONS_MAX]));
        if let Ok(Ok(more)) = tokio::time::timeout(MORE_WITHIN, more).await {
            completions.extend(reply::plain_list("LPOP", more)?);
        }
        completions.into_iter().map(|completion| read_completion(queue, completion)).collect()
    }

    /// Reads the result of a finished task, while it is kept.
    pub async fn result(&self, id: &TaskId) -> Result<Option<Vec<u8>>, BrokerError> {
        let key = self.keys(id.queue()).result(id);
        reply::plain_bytes("GET", self.read_one(get(&["GET", &key])).await?)
    }
}

fn push_asked(call: &mut ScriptCall, id: &TaskId, number: Option<u64>) {
    call.push_id(id);
    if let Some(number) = number {
        call.push(number);
        call.push(number % LEDGER_SLOTS);
    } else {
        call.push("");
        call.push("");
    }
}

fn read_end(reply: &mut Reply) -> Result<Option<End>, BrokerError> {
    let (word, returned) = (reply.text()?, reply.bytes()?);
    let (state, returned) = match word.as_str() {
        OPEN => return Ok(None),
        LARGE => (TaskState::Success, Returned::Elsewhere),
        word if returned.is_empty() => (state(word)?, Returned::Nothing),
        word => (state(word)?, Returned::Json(returned)),
    };
    Ok(Some(End { state, returned }))
}

fn read_completion(
    queue: &QueueName,
    completion: Vec<u8>,
) -> Result<(TaskId, TaskState), BrokerError> {
    let unexpected =
        || BrokerError::UnexpectedReply("a completion message that is not ours".into());
    let completion = String::from_utf8(completion).map_err(|_| unexpected())?;
    let (id, word) = completion.split_once(' ').ok_or_else(unexpected)?;
    Ok((TaskId::from_stored(queue.clone(), id).map_err(|_| unexpected())?, state(word)?))
}
