//! The wakeup lists: how a worker hears of work and of attempts to stop without asking.

use std::time::Duration;

use super::{Broker, BrokerError, ScriptCall, reply, scripts};
use crate::{
    id::{QueueName, TaskId, WorkerId},
    lease::{Lease, Token},
};

/// The shortest wait that Redis is asked for.
const WAIT_MIN: Duration = Duration::from_millis(1);
/// The server ends a wait by itself; so much later it is gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// What ended a wait for work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Woken {
    /// This queue rang.
    Work(QueueName),
    /// [`Broker::interrupt`].
    Interrupted,
}

impl Broker {
    /// Waits until one of the queues rings for work, or this worker is interrupted in `home`;
    /// `None` after `timeout`.
    pub async fn wait_for_work(
        &self,
        queues: &[QueueName],
        (home, worker): (&QueueName, &WorkerId),
        timeout: Duration,
    ) -> Result<Option<Woken>, BrokerError> {
        let mut bells: Vec<String> =
            queues.iter().map(|queue| self.keys(queue).of("wake")).collect();
        bells.push(self.interrupt_key(home, worker));
        let rung = self.block(&bells, timeout).await?;
        Ok(rung.and_then(|(bell, _)| {
            let at = bells.iter().position(|b| *b == bell)?;
            Some(queues.get(at).map_or(Woken::Interrupted, |queue| Woken::Work(queue.clone())))
        }))
    }

    /// Waits until an attempt of this worker is asked to stop, whose id may differ from queue to
    /// queue; `None` after `timeout`.
    pub async fn wait_for_stop(
        &self,
        standings: &[(QueueName, WorkerId)],
        timeout: Duration,
    ) -> Result<Option<Lease>, BrokerError> {
        let bell_of =
            |(queue, worker): &(QueueName, WorkerId)| self.keys(queue).cancel_listener(worker);
        let bells: Vec<String> = standings.iter().map(bell_of).collect();
        let rung = self.block(&bells, timeout).await?;
        Ok(rung.and_then(|(bell, asked)| {
            let (queue, worker) = &standings[bells.iter().position(|b| *b == bell)?];
            let (id, token) = std::str::from_utf8(&asked).ok()?.split_once(' ')?;
            let id = TaskId::from_stored(queue.clone(), id).ok()?;
            Some(Lease { id, worker: worker.clone(), token: Token::parse(token)? })
        }))
    }

    /// Ends this worker's own wait for work, on another connection: it has to wait for more queues.
    pub async fn interrupt(&self, home: &QueueName, worker: &WorkerId) -> Result<(), BrokerError> {
        let call = ScriptCall::new(&scripts::INTERRUPT, &self.keys(home), worker.as_str());
        self.run(call).await.map(drop)
    }

    fn interrupt_key(&self, home: &QueueName, worker: &WorkerId) -> String {
        self.keys(home).interrupt(worker)
    }

    /// Rings for work that this worker was woken for and can't take.
    pub async fn ring(&self, queue: &QueueName) -> Result<(), BrokerError> {
        let mut command = redis::cmd("RPUSH");
        command.arg(self.keys(queue).of("wake")).arg("1");
        self.send(vec![command]).await.pop().expect("an answer for each call").map(drop)
    }

    /// Blocks on lists; only on a connection of [`Broker::blocking`].
    pub(super) async fn block(
        &self,
        keys: &[String],
        timeout: Duration,
    ) -> Result<Option<(String, Vec<u8>)>, BrokerError> {
        let mut command = redis::cmd("BLPOP");
        for key in keys {
            command.arg(key);
        }
        // Zero would be without end.
        let timeout = timeout.max(WAIT_MIN);
        command.arg(format!("{:.3}", timeout.as_secs_f64()));
        let patience = timeout.saturating_add(PATIENCE);
        let Ok(mut answers) = tokio::time::timeout(patience, self.send(vec![command])).await else {
            // It is half open, and what is sent over it next would wait behind this.
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
