//! Waits at the wakeup lists, so that a worker need not poll for work or for attempts to stop.

use std::time::Duration;

use super::{Broker, BrokerError, ScriptCall, reply, scripts};
use crate::{
    id::{QueueName, TaskId, WorkerId},
    lease::{Lease, Token},
};

/// The shortest wait that a call requests from Redis.
const WAIT_MIN: Duration = Duration::from_millis(1);
/// The server ends a wait by itself. If it does not answer within this additional time, the
/// connection is dead.
const PATIENCE: Duration = Duration::from_secs(10);

/// The wakeup that also says that schedules have changed; see `lua/include/schedule_wakeup.lua`.
const SCHEDULES_CHANGED: &[u8] = b"s";

/// The event that ended a wait for work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Woken {
    /// This queue has work.
    Work(QueueName),
    /// This queue may have work, and its schedules have changed.
    Schedules(QueueName),
    /// [`Broker::interrupt`] ended the wait.
    Interrupted,
}

/// What a worker is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// The attempt with this lease should stop.
    Stop(Lease),
    /// The process should attend, because an operator has a wish.
    Attend,
}

impl Broker {
    /// Waits until one of the queues has work, or this worker is interrupted in `home`; `None`
    /// after `timeout`.
    pub async fn wait_for_work(
        &self,
        queues: &[QueueName],
        (home, worker): (&QueueName, &WorkerId),
        timeout: Duration,
    ) -> Result<Option<Woken>, BrokerError> {
        let mut lists: Vec<String> =
            queues.iter().map(|queue| self.keys(queue).of("wake")).collect();
        lists.push(self.interrupt_key(home, worker));
        let woken = self.block(&lists, timeout).await?;
        Ok(woken.and_then(|(list, wakeup)| {
            let at = lists.iter().position(|other| *other == list)?;
            Some(match queues.get(at).cloned() {
                None => Woken::Interrupted,
                Some(queue) if wakeup == SCHEDULES_CHANGED => Woken::Schedules(queue),
                Some(queue) => Woken::Work(queue),
            })
        }))
    }

    /// Waits until an attempt of this worker should stop, or its process should attend; `None`
    /// after `timeout`. The worker's id may differ between queues.
    pub async fn wait_until_asked(
        &self,
        registrations: &[(QueueName, WorkerId)],
        (fleet, process): (&QueueName, &WorkerId),
        timeout: Duration,
    ) -> Result<Option<Asked>, BrokerError> {
        let list_of =
            |(queue, worker): &(QueueName, WorkerId)| self.keys(queue).cancel_listener(worker);
        let mut lists: Vec<String> = registrations.iter().map(list_of).collect();
        lists.push(self.keys(fleet).cancel_listener(process));
        let woken = self.block(&lists, timeout).await?;
        Ok(woken.and_then(|(list, asked)| {
            let at = lists.iter().position(|other| *other == list)?;
            let Some((queue, worker)) = registrations.get(at) else {
                return Some(Asked::Attend);
            };
            let (id, token) = std::str::from_utf8(&asked).ok()?.split_once(' ')?;
            let id = TaskId::from_stored(queue.clone(), id).ok()?;
            let token = Token::parse(token)?;
            Some(Asked::Stop(Lease { id, worker: worker.clone(), token }))
        }))
    }

    /// Interrupts this worker's own wait for work from another connection, because it has to wait
    /// for more queues.
    pub async fn interrupt(&self, home: &QueueName, worker: &WorkerId) -> Result<(), BrokerError> {
        let call = ScriptCall::new(&scripts::INTERRUPT, &self.keys(home), worker.as_str());
        self.run(call).await.map(drop)
    }

    fn interrupt_key(&self, home: &QueueName, worker: &WorkerId) -> String {
        self.keys(home).interrupt(worker)
    }

    /// Passes on a wakeup for work that this worker can't take.
    pub async fn wake(&self, queue: &QueueName) -> Result<(), BrokerError> {
        let mut command = redis::cmd("RPUSH");
        command.arg(self.keys(queue).of("wake")).arg("1");
        self.send(vec![command]).await.pop().expect("an answer for each call").map(drop)
    }

    /// Blocks on lists. Call this only on a connection of [`Broker::blocking`].
    pub(super) async fn block(
        &self,
        keys: &[String],
        timeout: Duration,
    ) -> Result<Option<(String, Vec<u8>)>, BrokerError> {
        let mut command = redis::cmd("BLPOP");
        for key in keys {
            command.arg(key);
        }
        // Zero would wait without a limit.
        let timeout = timeout.max(WAIT_MIN);
        command.arg(format!("{:.3}", timeout.as_secs_f64()));
        let patience = timeout.saturating_add(PATIENCE);
        let Ok(mut answers) = tokio::time::timeout(patience, self.send(vec![command])).await else {
            // The connection is half open: a later command on it would wait behind this one.
            self.connection.reset();
            return Err(BrokerError::Unknown("a blocking wait got no answer".into()));
        };
        let answer = answers.pop().expect("an answer for each call")?;
        let mut items = reply::plain_list("BLPOP", answer)?.into_iter();
        match (items.next(), items.next()) {
            (Some(key), Some(item)) => Ok(Some((String::from_utf8_lossy(&key).into_owned(), item))),
            _ => Ok(None),
        }
    }
}
