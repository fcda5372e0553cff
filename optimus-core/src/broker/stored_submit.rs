//! The submits of relays, whose calls come from a database: their ledgers have a mark, and calls
//! that were not needed leave one.

use std::time::Duration;

use super::{Batch, Broker, BrokerError, ScriptCall, Submitted, inspect::get, reply::plain_bytes};
use crate::{
    id::{QueueName, TaskId},
    platform,
};

/// The field of a ledger that has its mark.
const MARK: &str = "mark";

impl Broker {
    /// Stores the tasks of a batch of a relay; see
    /// [`marked_submit_call`](Self::marked_submit_call).
    pub async fn submit_marked(
        &self,
        batch: &Batch<'_>,
        mark: &str,
    ) -> Result<Submitted, BrokerError> {
        let reply = self.run(self.marked_submit_call(batch, mark)).await?;
        Self::read_submit(batch.queue, batch.tasks.len(), reply)
    }

    /// Returns the call of a batch whose ledger must still have this mark. Redis refuses it with
    /// STALE otherwise: it has lost the ledger since, and with it the numbers that it had.
    pub fn marked_submit_call(&self, batch: &Batch<'_>, mark: &str) -> ScriptCall {
        self.submit_call_since(batch, Some(mark))
    }

    /// Reads the mark of a ledger, or gives it one. No mark is used twice, so a ledger that Redis
    /// has lost never gets the same one again.
    pub async fn ledger_mark(
        &self,
        queue: &QueueName,
        client: &str,
    ) -> Result<String, BrokerError> {
        let ledger = self.keys(queue).of(&format!("ledger:{client}"));
        let read = || self.read_one(get(&["HGET", &ledger, MARK]));
        if let Some(mark) = plain_bytes("HGET", read().await?)? {
            return Ok(String::from_utf8_lossy(&mark).into_owned());
        }
        // Of two callers, the later one wins, and the other one is refused once.
        let mark = format!("m{}", platform::new_uuid().simple());
        let set = get(&["HSET", &ledger, MARK, &mark]);
        self.send(vec![set]).await.pop().expect("an answer for each call")?;
        Ok(mark)
    }

    /// Notes for each of these calls which task held its biz id, so that those who wait for the
    /// call find it. Safe to repeat.
    pub async fn note_owners(
        &self,
        owners: &[(&TaskId, &TaskId)],
        kept: Duration,
    ) -> Result<(), BrokerError> {
        let kept_ms = kept.as_millis().to_string();
        let set = |(id, owner): &(&TaskId, &TaskId)| {
            let key = self.keys(id.queue()).same(id);
            get(&["SET", &key, &owner.stored(), "PX", &kept_ms])
        };
        self.send(owners.iter().map(set).collect()).await.into_iter().try_for_each(|a| a.map(drop))
    }

    /// Returns the task that held the biz id of a call that was not submitted.
    pub async fn owner_of(&self, id: &TaskId) -> Result<Option<TaskId>, BrokerError> {
        let key = self.keys(id.queue()).same(id);
        let stored = plain_bytes("GET", self.read_one(get(&["GET", &key])).await?)?;
        let owner = stored.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(owner.and_then(|owner| TaskId::from_stored(id.queue().clone(), &owner).ok()))
    }
}
