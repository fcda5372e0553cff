//! Reads and controls the shards of a sharded function: [`ShardsHandle`].

use std::fmt;

use super::Client;
use crate::{
    Error,
    broker::{BrokerError, Refusal},
    operator_answers::PauseAnswer,
    roster::{POSTS_MAX, RosterName},
    shards_details::{ShardsDetails, details},
};

/// The shards of a sharded function, for operators; from [`Client::shards`].
#[derive(Clone)]
pub struct ShardsHandle {
    client: Client,
    name: String,
    by: String,
    why: String,
}

impl fmt::Debug for ShardsHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardsHandle").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Client {
    /// Returns a handle for the shards of the sharded function with this name.
    ///
    /// ```no_run
    /// # async fn doc(client: &optimus_core::Client) -> Result<(), optimus_core::Error> {
    /// let orders = client.shards("orders");
    /// orders.set_count(16).await?; // the workers move to 16 shards, each of which has one holder
    /// orders.because("ann", "shard 3 is being repaired").pause(3).await?;
    /// for shard in orders.look().await?.shards {
    ///     println!("{}: {:?} at {:?}", shard.index, shard.holder, shard.position);
    /// }
    /// orders.resume().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn shards(&self, name: impl Into<String>) -> ShardsHandle {
        let (by, why) = (String::new(), String::new());
        ShardsHandle { client: self.clone(), name: name.into(), by, why }
    }

    /// Returns the names of all sharded functions that a worker has ever served in this namespace.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn shard_names(&self) -> Result<Vec<String>, Error> {
        Ok(self.0.broker.shard_rosters().await?)
    }
}

impl ShardsHandle {
    /// Returns a handle that says who pauses and why, for people who [look](Self::look) later.
    #[must_use = "it is the returned handle that says why"]
    pub fn because(&self, by: impl Into<String>, why: impl Into<String>) -> Self {
        Self { by: by.into(), why: why.into(), ..self.clone() }
    }

    /// Sets how many shards there are, while workers run. Each holder ends its round and gives its
    /// shards back. Once all are back, the new ones are given out, so no row is in a shard of the
    /// old count and in one of the new count at the same time. This takes as long as the longest
    /// round, and up to three heartbeats. Pauses of single shards end. Returns the count before.
    ///
    /// Redis keeps the count: the one in the code applies only to the first start.
    ///
    /// # Errors
    /// [`Error::is_invalid`] for a count of 0 or above 1,024, for a name that can't exist, and if
    /// no worker has ever served these shards; [`Error::is_unavailable`];
    /// [`Error::is_unknown_outcome`] if the request was sent twice and not answered, which is safe
    /// to repeat. These are the errors of all methods here.
    pub async fn set_count(&self, count: u16) -> Result<u16, Error> {
        if count == 0 || count > POSTS_MAX {
            return Err(Error::invalid(format!(
                "shards {:?}: the count is {count}; use 1 to {POSTS_MAX}, or pause_all() to stop \
                 all of them",
                self.name
            )));
        }
        let before = self.client.0.broker.recount(&self.roster()?, count).await;
        before.map_err(|problem| self.failed("set_count", problem))
    }

    /// Forgets all positions, so that a pass over all data begins: the next one with
    /// `walk = "once"`. Holders give their shards back first, as for
    /// [`set_count`](Self::set_count). What is paused stays so.
    ///
    /// # Errors
    /// As for [`set_count`](Self::set_count).
    pub async fn restart(&self) -> Result<(), Error> {
        let done = self.client.0.broker.restart(&self.roster()?).await;
        done.map(drop).map_err(|problem| self.failed("restart", problem))
    }

    /// Stops one shard: its holder ends its round and gives it back, within a heartbeat. Returns
    /// whether it was not paused before.
    ///
    /// # Errors
    /// As for [`set_count`](Self::set_count).
    pub async fn pause(&self, index: u16) -> Result<bool, Error> {
        Ok(self.suspend(Some(index)).await?.is_changed)
    }

    /// Stops all shards, as [`pause`](Self::pause) does for one. The pause of a name that no worker
    /// has served is kept for the first one that does, and the answer says that the name is not
    /// [known](PauseAnswer::is_known); [`Client::shard_names`] has the names.
    ///
    /// # Errors
    /// As for [`set_count`](Self::set_count), but for a name that no worker has served.
    pub async fn pause_all(&self) -> Result<PauseAnswer, Error> {
        self.suspend(None).await
    }

    /// Ends all pauses, also those of single shards. Returns whether there was one, and whether a
    /// worker has ever served the name.
    ///
    /// # Errors
    /// As for [`pause_all`](Self::pause_all).
    pub async fn resume(&self) -> Result<PauseAnswer, Error> {
        let done = self.client.0.broker.resume_posts(&self.roster()?, None).await;
        done.map_err(|problem| self.failed("resume", problem))
    }

    /// Ends the pause of one shard. Returns whether there was one. If all shards are paused, it
    /// stays so.
    ///
    /// # Errors
    /// As for [`set_count`](Self::set_count).
    pub async fn resume_one(&self, index: u16) -> Result<bool, Error> {
        let done = self.client.0.broker.resume_posts(&self.roster()?, Some(index)).await;
        Ok(done.map_err(|problem| self.failed("resume_one", problem))?.is_changed)
    }

    /// Reads who holds which shard, since when and on which machine, what is paused, and how far
    /// each shard has come.
    ///
    /// # Errors
    /// As for [`set_count`](Self::set_count).
    pub async fn look(&self) -> Result<ShardsDetails, Error> {
        let (roster, broker) = (self.roster()?, &self.client.0.broker);
        let seen = broker.roster(&roster).await?;
        Ok(details(&self.name, &seen, &broker.positions(&roster).await?))
    }

    async fn suspend(&self, index: Option<u16>) -> Result<PauseAnswer, Error> {
        let broker = &self.client.0.broker;
        let done = broker.suspend(&self.roster()?, index, &self.by, &self.why).await;
        done.map_err(|problem| self.failed("pause", problem))
    }

    fn roster(&self) -> Result<RosterName, Error> {
        RosterName::shards(&self.name)
            .map_err(|problem| Error::invalid(format!("the name of a sharded function: {problem}")))
    }

    fn failed(&self, verb: &str, problem: BrokerError) -> Error {
        match problem {
            BrokerError::Refused(Refusal::Absent, count) if !matches!(&*count, "" | "0") => {
                Error::invalid(format!(
                    "shards {:?}: there are {count}, so the last one is {}",
                    self.name,
                    count.parse().unwrap_or(1_u64) - 1
                ))
            }
            BrokerError::Refused(Refusal::Absent, _) => Error::invalid(format!(
                "shards {:?}: no worker has ever served them; start a worker with this sharded \
                 function first, and check the name and the namespace",
                self.name
            )),
            BrokerError::Unknown(why) => {
                let what = format!("{verb} of the shards {:?}", self.name);
                Error::unknown_operation(what, Vec::new(), why)
            }
            problem => problem.into(),
        }
    }
}
