//! A cancel that can also wait for the end of the task: [`CancelCall`].

use std::{future::IntoFuture, time::Duration};

use futures_util::future::BoxFuture;

use super::Client;
use crate::{CancelAnswer, Error, id::TaskId, prerequisite_key::Key, state::TaskState};

/// A cancel of one task; from [`Client::cancel`], [`Client::cancel_key`] or
/// [`TaskHandle::cancel`](crate::TaskHandle::cancel). Awaited, it returns what was done at once.
#[must_use = "a cancel does nothing until it is awaited"]
#[derive(Debug)]
pub struct CancelCall {
    client: Client,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Id(TaskId),
    Key(Key),
}

impl Client {
    /// Cancels a waiting task, or asks the worker of a running task to stop it. Returns which of
    /// the two was done. [`confirmed`](CancelCall::confirmed) waits until the task has ended.
    ///
    /// A running handler can wait for this with [`Context::cancelled`](crate::Context::cancelled).
    /// An `async` handler that does not end within 10 s is dropped. A handler that still returns
    /// `Ok` has succeeded. Tasks that wait for this one, also in other queues, learn of it at once,
    /// as their `on_prerequisite_failure` says.
    ///
    /// ```no_run
    /// # async fn doc(client: optimus_core::Client, id: optimus_core::TaskId)
    /// # -> Result<(), optimus_core::Error> {
    /// # use optimus_core as optimus;
    /// use optimus::TaskState;
    ///
    /// match client.cancel(&id).confirmed().await? {
    ///     TaskState::Cancelled => println!("it does not run, and never will"),
    ///     state => println!("its handler was faster: {state}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_wrong_state`] if the task has succeeded or is dead; a task that is cancelled
    /// already is answered as cancelled. [`Error::is_forgotten`] if the store has no data about it;
    /// [`Error::is_invalid`] if the id is that of a group: [`GroupHandle::cancel`] cancels it;
    /// [`Error::is_unknown_outcome`] if the request was sent twice and not answered, which is safe
    /// to repeat.
    ///
    /// [`GroupHandle::cancel`]: crate::GroupHandle::cancel
    pub fn cancel(&self, id: &TaskId) -> CancelCall {
        CancelCall { client: self.clone(), target: Target::Id(id.clone()) }
    }

    /// Cancels the task that has a biz id, as [`cancel`](Self::cancel) does.
    ///
    /// # Errors
    /// As for [`cancel`](Self::cancel), and [`Error::is_forgotten`] if no task has the biz id.
    pub fn cancel_key(&self, key: &Key) -> CancelCall {
        CancelCall { client: self.clone(), target: Target::Key(key.clone()) }
    }
}

impl CancelCall {
    /// Cancels the task and waits until it has ended, through outages. Returns the state in which
    /// it has ended: [`Cancelled`](TaskState::Cancelled), or
    /// [`Success`](TaskState::Success) if its handler returned `Ok` nevertheless.
    ///
    /// A handler has 10 s to stop. If its worker has died, the end comes when the lease of that
    /// worker is over and another worker takes the task back. Without another worker of the
    /// namespace this waits until there is one: [`confirmed_within`](Self::confirmed_within) limits
    /// the wait.
    ///
    /// # Errors
    /// As for [`Client::cancel`].
    pub async fn confirmed(self) -> Result<TaskState, Error> {
        let id = self.id().await?;
        match self.client.cancel_one(&id).await? {
            CancelAnswer::Cancelled => Ok(TaskState::Cancelled),
            CancelAnswer::AskedToStop => self.client.handle::<()>(id).ended().await,
        }
    }

    /// Cancels the task and waits as [`confirmed`](Self::confirmed), but for its end no longer than
    /// `timeout`, and then reads the state of the task for the error, which takes at most another
    /// second. The time counts from the answer to the cancel. While Redis does not answer, that
    /// takes as long as for [`Client::cancel`].
    ///
    /// # Errors
    /// As for [`Client::cancel`], and [`Error::is_timeout`]: the cancel is stored, and a worker
    /// that runs the task still stops it.
    pub async fn confirmed_within(self, timeout: Duration) -> Result<TaskState, Error> {
        let id = self.id().await?;
        if self.client.cancel_one(&id).await? == CancelAnswer::Cancelled {
            return Ok(TaskState::Cancelled);
        }
        let handle = self.client.handle::<()>(id);
        match tokio::time::timeout(timeout, handle.ended()).await {
            Ok(state) => state,
            Err(_) => Err(handle.waited_too_long(timeout).await),
        }
    }

    async fn id(&self) -> Result<TaskId, Error> {
        match &self.target {
            Target::Id(id) => Ok(id.clone()),
            Target::Key(key) => {
                let found = self.client.inspector().find(key).await?;
                found.ok_or_else(|| Error::no_holder(key.to_string()))
            }
        }
    }
}

impl IntoFuture for CancelCall {
    type Output = Result<CancelAnswer, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.client.cancel_one(&self.id().await?).await })
    }
}
