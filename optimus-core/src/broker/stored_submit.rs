//! What relays store besides the calls of a database: the owners of biz ids that were taken.

use std::time::Duration;

use super::{Broker, BrokerError, inspect::get, reply::plain_bytes};
use crate::id::TaskId;

impl Broker {
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
