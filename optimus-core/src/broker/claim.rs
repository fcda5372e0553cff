//! `claim` and `reap`: how a worker gets tasks.

use std::time::Duration;

use redis::Value;

use super::{Broker, BrokerError, Reply, ScriptCall, reply, scripts};
use crate::{
    id::{QueueName, TaskId, WorkerId},
    lease::Token,
    state::TaskState,
};

/// The answer to a claim.
#[derive(Debug)]
pub struct Claimed {
    /// The token of all tasks of this claim.
    pub token: Token,
    /// Redis' clock at the time of the claim, in ms.
    pub now_ms: u64,
    /// Whether the queue has more ready tasks.
    pub more: bool,
    /// The time until the next delayed task or retry is due.
    pub next_due: Option<Duration>,
    /// How many workers the queue has, if another one waits for the next due task. This worker only
    /// needs to wait for it as a standby.
    pub standby: Option<usize>,
    /// The tasks.
    pub grants: Vec<Grant>,
}

/// One claimed task.
#[derive(Debug)]
pub struct Grant {
    /// The id of the task.
    pub id: TaskId,
    /// The record of the task, as stored.
    pub record: Vec<u8>,
    /// Counts of failures, losses and misfits so far.
    pub tries: (u32, u32, u32),
    /// Whether counts of tries or an error history are stored for the task.
    pub was_tried: bool,
    /// The latest time at which the task may start.
    pub start_by: StartBy,
}

/// The latest time at which a task that can expire may start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum StartBy {
    /// The time in the task's record, counted from its submit.
    #[default]
    AsSubmitted,
    /// This instant, in ms, because the task was requeued.
    At(u64),
    /// None: the task was started before, so it does not expire.
    Started,
}

/// The result of a reap.
#[derive(Debug)]
pub struct Reaped {
    /// How many tasks were taken from lapsed workers.
    pub tasks: usize,
    /// Whether more tasks are left to reap.
    pub more: bool,
    /// The time until the earliest lease of another worker is over.
    pub next_expiry: Option<Duration>,
    /// The workers whose lease was over.
    pub lapsed: Vec<String>,
    /// The tasks that those workers held.
    pub lost: Vec<Lost>,
}

/// A task whose worker was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The id of the task.
    pub id: TaskId,
    /// The worker that held it.
    pub worker: WorkerId,
    /// The task's name; `None` if its record can't be read.
    pub task: Option<String>,
    /// The number of the lost attempt, from 1.
    pub attempt: u32,
    /// The state of the task now: ready, delayed, dead or cancelled.
    pub state: TaskState,
    /// With which calls it ran, if they were gathered.
    pub run: Option<String>,
}

impl Broker {
    /// Returns the call that claims up to `want` tasks.
    pub fn claim_call(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        seq: u64,
        want: usize,
    ) -> ScriptCall {
        self.call(&scripts::CLAIM, queue, worker.as_str())
            .text(worker.as_str())
            .number(seq)
            .number(want)
    }

    /// Returns the call that claims one task for a worker that holds no other task in any queue,
    /// and claims none until this task has ended. If the worker dies meanwhile, this task caused
    /// it.
    pub fn claim_alone_call(&self, queue: &QueueName, worker: &WorkerId, seq: u64) -> ScriptCall {
        self.claim_call(queue, worker, seq, 1).arg(1)
    }

    /// Reads the answer to a claim.
    pub fn read_claim(queue: &QueueName, mut reply: Reply) -> Result<Claimed, BrokerError> {
        let token = Token::parse(&reply.text()?)
            .ok_or_else(|| BrokerError::UnexpectedReply("claim answered no token".into()))?;
        let now_ms = reply.number()?;
        let more = reply.flag()?;
        let (next_due, standby) = read_next_due(&reply.text()?)?;
        let count: usize = reply.number()?;
        let ids = reply.next_texts(count)?;
        let mut grants = Vec::with_capacity(ids.len());
        for id in ids {
            let id = TaskId::from_stored(queue.clone(), &id)
                .map_err(|problem| BrokerError::UnexpectedReply(problem.to_string()))?;
            grants.push(Grant {
                id,
                record: reply.bytes()?,
                tries: (0, 0, 0),
                was_tried: false,
                start_by: StartBy::default(),
            });
        }
        for (grant, tries) in grants.iter_mut().zip(reply.rest()?) {
            grant.tries = read_tries(&tries);
            grant.was_tried = !tries.is_empty();
            grant.start_by = read_start_by(&tries, grant.tries);
        }
        Ok(Claimed { token, now_ms, more, next_due, standby, grants })
    }

    /// Claims from one queue.
    pub async fn claim(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        seq: u64,
        want: usize,
    ) -> Result<Claimed, BrokerError> {
        Self::read_claim(queue, self.run(self.claim_call(queue, worker, seq, want)).await?)
    }

    /// Claims one task to run alone; see [`claim_alone_call`](Self::claim_alone_call).
    pub async fn claim_alone(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        seq: u64,
    ) -> Result<Claimed, BrokerError> {
        Self::read_claim(queue, self.run(self.claim_alone_call(queue, worker, seq)).await?)
    }

    /// Fetches payloads that are stored apart from their records; `None` for a record that has
    /// none.
    pub async fn blobs(
        &self,
        queue: &QueueName,
        ids: &[&TaskId],
    ) -> Result<Vec<Option<Vec<u8>>>, BrokerError> {
        let mut command = redis::cmd("HMGET");
        command.arg(self.keys(queue).of("blobs"));
        for id in ids {
            command.arg(id.stored());
        }
        match self.send(vec![command]).await.pop().expect("an answer for each call")? {
            Value::Array(items) => {
                items.into_iter().map(|item| reply::plain_bytes("HMGET", item)).collect()
            }
            other => Err(BrokerError::UnexpectedReply(format!("HMGET answered {other:?}"))),
        }
    }

    /// Takes tasks from workers whose lease is over.
    pub async fn reap(
        &self,
        queue: &QueueName,
        worker: &WorkerId,
        lease: Duration,
        limit: usize,
    ) -> Result<Reaped, BrokerError> {
        let call =
            self.call(&scripts::REAP, queue, "").arg(lease.as_millis()).arg(limit).arg(worker);
        Self::read_reap(queue, self.run(call).await?)
    }

    /// Reads the answer to a reap.
    pub fn read_reap(queue: &QueueName, mut reply: Reply) -> Result<Reaped, BrokerError> {
        let (tasks, more) = (reply.number()?, reply.flag()?);
        let (next_expiry, lapsed, lost) = (reply.wait()?, reply.texts()?, reply.texts()?);
        let lost = lost.chunks(6).map(|words| read_lost(queue, words));
        Ok(Reaped { tasks, more, next_expiry, lapsed, lost: lost.collect::<Result<_, _>>()? })
    }
}

fn read_lost(queue: &QueueName, words: &[String]) -> Result<Lost, BrokerError> {
    let unexpected = || BrokerError::UnexpectedReply(format!("reap: {words:?} is not a lost task"));
    let [id, worker, task, attempt, state, run] = words else { return Err(unexpected()) };
    Ok(Lost {
        id: TaskId::from_stored(queue.clone(), id).map_err(|_| unexpected())?,
        worker: WorkerId::from_stored(worker),
        task: Some(task.clone()).filter(|task| !task.is_empty()),
        attempt: attempt.parse().map_err(|_| unexpected())?,
        state: TaskState::from_word(state).ok_or_else(unexpected)?,
        run: Some(run.clone()).filter(|run| !run.is_empty()),
    })
}

/// `<ms>` for the worker that waits for the due time, `<ms>/<workers>` for a standby, `-1` if
/// nothing is due or work is left.
fn read_next_due(text: &str) -> Result<(Option<Duration>, Option<usize>), BrokerError> {
    let unexpected = |_| {
        BrokerError::UnexpectedReply(format!("claim: {text:?} is not a time until a task is due"))
    };
    if text == "-1" {
        return Ok((None, None));
    }
    let (ms, workers) = text.split_once('/').map_or((text, None), |(ms, n)| (ms, Some(n)));
    let wait = Duration::from_millis(ms.parse().map_err(unexpected)?);
    Ok((Some(wait), workers.map(str::parse).transpose().map_err(unexpected)?))
}

/// Reads `<failures>:<losses>:<misfits>`, before what `lua/include/due_again.lua` adds; any other
/// text reads as zeros.
pub(super) fn read_tries(stored: &str) -> (u32, u32, u32) {
    let counts = stored.split('@').next().unwrap_or_default();
    let mut counts = counts.split(':').map(|count| count.parse().unwrap_or(0));
    let mut next = || counts.next().unwrap_or(0);
    (next(), next(), next())
}

/// Reads what follows the counts in `tries`. A failed or lost attempt had started.
fn read_start_by(stored: &str, (failures, losses, _): (u32, u32, u32)) -> StartBy {
    match stored.splitn(4, ':').nth(3).and_then(|ms| ms.parse().ok()) {
        _ if failures > 0 || losses > 0 => StartBy::Started,
        None => StartBy::AsSubmitted,
        Some(0) => StartBy::Started,
        Some(ms) => StartBy::At(ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_was_started_once_does_not_expire() {
        for (stored, expected) in [
            ("", StartBy::AsSubmitted),
            ("0:0:3", StartBy::AsSubmitted),
            ("0:0:3:1700000000000", StartBy::At(1_700_000_000_000)),
            ("0:0:0:0", StartBy::Started),
            ("1:0:0", StartBy::Started),
            ("0:1:0", StartBy::Started),
        ] {
            assert_eq!(read_start_by(stored, read_tries(stored)), expected, "{stored}");
        }
    }

    #[test]
    fn the_counts_of_a_cancelled_task_end_before_the_time_when_it_was_due() {
        for (stored, expected) in [
            ("2:1:3@1700000000000", (2, 1, 3)),
            ("0:0:3:0@1700000000000", (0, 0, 3)),
            ("@1700000000000", (0, 0, 0)),
        ] {
            assert_eq!(read_tries(stored), expected, "{stored}");
        }
    }

    #[test]
    fn a_claim_reply_that_names_more_tasks_than_it_contains_is_unexpected() {
        let head = "$2\r\nOK\r\n$3\r\n1:2\r\n:3\r\n:0\r\n:-1\r\n";
        let bytes = format!("*6\r\n{head}$20\r\n{}\r\n", u64::MAX);
        let queue = QueueName::new("q").unwrap();
        let reply = Reply::from_bytes("claim", bytes.as_bytes()).unwrap();
        assert!(matches!(Broker::read_claim(&queue, reply), Err(BrokerError::UnexpectedReply(_))));
    }
}
