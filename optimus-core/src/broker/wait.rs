//! `await` and completion messages: what clients ask that wait for the end of a task.

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
    /// In which state.
    pub state: TaskState,
    /// After a success, what its handler returned.
    pub returned: Returned,
}

/// What is kept of what a handler returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Returned {
    /// Nothing (any more), or it did not succeed.
    Nothing,
    /// This JSON.
    Json(Vec<u8>),
    /// More than a script passes on, or it was not asked for: [`Broker::result`] has what is kept.
    Elsewhere,
}

/// How tasks of one client have ended.
#[derive(Debug)]
pub struct Ends {
    /// The one that is waited for, if it has ended.
    pub end: Option<End>,
    /// Of each of the others what its handler returned, if it has succeeded.
    pub next: Vec<Option<Returned>>,
}

/// The word for a success whose result no script passes on.
const LARGE: &str = "large";
/// The word for a task that has not ended.
const OPEN: &str = "open";

/// Letters that are taken at once, behind the first.
const COMPLETIONS_MAX: &str = "1000";
/// How long taking them may last.
const MORE_WITHIN: Duration = Duration::from_secs(5);

/// Keys of `await` for who waits; who looks needs all.
const WAIT_KEYS: usize = 7;

impl Broker {
    /// Registers `client` as waiting for the task's end; `None` while it has not ended. Whoever
    /// knows by which call it was submitted learns of a success however long ago it was.
    pub async fn wait_for_end(
        &self,
        id: &TaskId,
        client: &str,
        stored_by: Option<StoredBy<'_>>,
    ) -> Result<Option<End>, BrokerError> {
        Ok(self.wait_with_next(id, client, stored_by, &[]).await?.end)
    }

    /// The same, and tells in that call which of these others have succeeded. Each stands with the
    /// number of the call by which the same client submitted it.
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
        let mut reply = self.look(call).await?;
        let end = read_end(&mut reply)?;
        let next = next.iter().map(|_| {
            let end = read_end(&mut reply)?;
            Ok(end.filter(|end| end.state == TaskState::Success).map(|end| end.returned))
        });
        Ok(Ends { end, next: next.collect::<Result<_, BrokerError>>()? })
    }

    /// The state that a task is in. `stored_by` as for [`wait_for_end`](Self::wait_for_end).
    pub async fn state_of(
        &self,
        id: &TaskId,
        stored_by: Option<StoredBy<'_>>,
    ) -> Result<TaskState, BrokerError> {
        let all = scripts::AWAIT.keys.len();
        match self.look(self.await_call(all, id, "", stored_by)).await?.text()?.as_str() {
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

    /// Waits for mail of ended tasks in one queue, and takes what has come; nothing after
    /// `timeout`.
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
        // The first is taken already; if more can't be had, they stay for the next time.
        let more = self.one(get(&["LPOP", &completion_listener, COMPLETIONS_MAX]));
        if let Ok(Ok(more)) = tokio::time::timeout(MORE_WITHIN, more).await {
            completions.extend(reply::plain_list("LPOP", more)?);
        }
        completions.into_iter().map(|completion| read_completion(queue, completion)).collect()
    }

    /// What a finished task returned, while it is kept.
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
