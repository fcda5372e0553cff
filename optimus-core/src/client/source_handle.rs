//! Reads and controls a source: [`SourceHandle`].

use std::fmt;

use super::Client;
use crate::{
    Error,
    broker::{BrokerError, Refusal},
    operator_answers::PauseAnswer,
    roster::{POSTS_MAX, RosterName},
    source_details::{SourceDetails, details, shards},
};

/// A source, for operators; from [`Client::source`].
#[derive(Clone)]
pub struct SourceHandle {
    client: Client,
    name: String,
    by: String,
    why: String,
}

impl fmt::Debug for SourceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceHandle").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Client {
    /// Returns a handle for the source with this name.
    ///
    /// ```no_run
    /// # async fn doc(client: &optimus_core::Client) -> Result<(), optimus_core::Error> {
    /// let unpaid = client.source("unpaid");
    /// unpaid.because("ann", "the bank is away").pause().await?;
    /// for slice in unpaid.look().await?.slices {
    ///     println!("{}: {:?} has read {} rows", slice.index, slice.holder, slice.scans.rows);
    /// }
    /// unpaid.resume().await?;
    /// unpaid.scan_now().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn source(&self, name: impl Into<String>) -> SourceHandle {
        let (by, why) = (String::new(), String::new());
        SourceHandle { client: self.clone(), name: name.into(), by, why }
    }

    /// Returns the names of all sources that a worker has ever served in this namespace.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn sources(&self) -> Result<Vec<String>, Error> {
        Ok(self.0.broker.source_rosters().await?)
    }
}

impl SourceHandle {
    /// Returns a handle that says who pauses and why, for people who [look](Self::look) later.
    #[must_use = "it is the returned handle that says why"]
    pub fn because(&self, by: impl Into<String>, why: impl Into<String>) -> Self {
        Self { by: by.into(), why: why.into(), ..self.clone() }
    }

    /// Stops the source: each holder ends its page and gives its slices back, within a heartbeat.
    /// Tasks that are in their queue still run. A source that no worker has served yet can be
    /// paused, too: the answer says that it is not [known](PauseAnswer::is_known).
    ///
    /// # Errors
    /// [`Error::is_invalid`] for a name that can't exist; [`Error::is_unavailable`];
    /// [`Error::is_unknown_outcome`] if the request was sent twice and not answered, which is safe
    /// to repeat. These are the errors of all methods here.
    pub async fn pause(&self) -> Result<PauseAnswer, Error> {
        let broker = &self.client.0.broker;
        let done = broker.suspend(&self.roster()?, None, &self.by, &self.why).await;
        done.map_err(|problem| self.failed("pause", problem))
    }

    /// Ends a pause. Returns whether there was one, and whether a worker has ever served the
    /// source.
    ///
    /// # Errors
    /// As for [`pause`](Self::pause).
    pub async fn resume(&self) -> Result<PauseAnswer, Error> {
        let done = self.client.0.broker.resume_posts(&self.roster()?, None).await;
        done.map_err(|problem| self.failed("resume", problem))
    }

    /// Begins a pass over all tables, within a second or two, without waiting for `every`. A source
    /// that is slow because its tasks fail is no longer slow.
    ///
    /// # Errors
    /// As for [`pause`](Self::pause); [`Error::is_invalid`] if no worker has ever served the
    /// source.
    pub async fn scan_now(&self) -> Result<(), Error> {
        let done = self.client.0.broker.rescan(&self.roster()?).await;
        done.map_err(|problem| self.failed("scan_now", problem))
    }

    /// Sets into how many slices the source is cut, while workers run. Holders give their slices
    /// back first, and passes begin again. Returns the number before. Redis keeps the number: the
    /// one in the code applies only to the first start.
    ///
    /// # Errors
    /// As for [`pause`](Self::pause); [`Error::is_invalid`] for 0 or above 1,024, and if no worker
    /// has ever served the source.
    pub async fn set_slices(&self, count: u16) -> Result<u16, Error> {
        if count == 0 || count > POSTS_MAX {
            return Err(Error::invalid(format!(
                "source {:?}: the number of slices is {count}; use 1 to {POSTS_MAX}, or pause() to \
                 stop all of them",
                self.name
            )));
        }
        let before = self.client.0.broker.recount(&self.roster()?, count).await;
        before.map_err(|problem| self.failed("set_slices", problem))
    }

    /// Reads who holds which slice, what was read and submitted, and whether the source is paused
    /// or slow.
    ///
    /// # Errors
    /// As for [`pause`](Self::pause).
    pub async fn look(&self) -> Result<SourceDetails, Error> {
        let (roster, broker) = (self.roster()?, &self.client.0.broker);
        let holders = broker.roster(&roster).await?;
        Ok(details(&broker.source_seen(&roster).await?, shards(&self.name, &holders)))
    }

    fn roster(&self) -> Result<RosterName, Error> {
        RosterName::sources(&self.name)
            .map_err(|problem| Error::invalid(format!("the name of a source: {problem}")))
    }

    fn failed(&self, verb: &str, problem: BrokerError) -> Error {
        match problem {
            BrokerError::Refused(Refusal::Absent, _) => Error::invalid(format!(
                "source {:?}: no worker has ever served it; start a worker with this source first, \
                 and check the name and the namespace",
                self.name
            )),
            BrokerError::Unknown(why) => Error::unknown_operation(
                format!("{verb} of the source {:?}", self.name),
                Vec::new(),
                why,
            ),
            problem => problem.into(),
        }
    }
}
