//! A submitted task, as its submitter sees it: [`TaskHandle`].

use std::{any::TypeId, fmt, marker::PhantomData, time::Duration};

use serde::de::DeserializeOwned;

use super::Client;
use crate::{Error, id::TaskId, state::TaskState};

/// How often a waiting handle looks for itself, in case its mail got lost.
const LOOK_EVERY: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// A submitted task whose handler returns `T`. Dropping it changes nothing.
pub struct TaskHandle<T> {
    client: Client,
    id: TaskId,
    duplicate: bool,
    output: PhantomData<fn() -> T>,
}

impl<T> Clone for TaskHandle<T> {
    fn clone(&self) -> Self {
        Self { id: self.id.clone(), client: self.client.clone(), ..*self }
    }
}

impl<T> fmt::Debug for TaskHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskHandle({})", self.id)
    }
}

impl<T> TaskHandle<T> {
    pub(super) fn new(client: Client, id: TaskId, duplicate: bool) -> Self {
        Self { client, id, duplicate, output: PhantomData }
    }

    /// The task's id. For a duplicate: that of the task that has the biz id.
    pub fn id(&self) -> &TaskId {
        &self.id
    }

    /// The biz id was taken, so nothing was submitted; the handle is the first task's.
    pub fn is_duplicate(&self) -> bool {
        self.duplicate
    }

    /// The state that the task is in now; `Forgotten` once its history has rolled away.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn status(&self) -> Result<TaskState, Error> {
        Ok(self.client.0.broker.wait_for_end(&self.id, "").await?)
    }

    /// Cancels it, or asks its worker to. Answers whether it is cancelled already.
    ///
    /// # Errors
    /// See [`Client::cancel`].
    pub async fn cancel(&self) -> Result<bool, Error> {
        self.client.cancel(&self.id).await
    }

    /// Waits for the task's end, through retries and outages, as long as it takes.
    ///
    /// # Errors
    /// [`Error::is_rejected`] if Redis refuses the look.
    pub async fn ended(&self) -> Result<TaskState, Error> {
        let mut letters = self.client.0.mailboxes.subscribe(&self.id);
        loop {
            let me = self.client.0.mailboxes.address();
            let look = match self.client.0.broker.wait_for_end(&self.id, me).await {
                Ok(state) if state.is_terminal() => return Ok(state),
                Ok(_) => LOOK_EVERY,
                Err(problem) if problem.is_transient() => LOOK_AGAIN,
                Err(problem) => return Err(problem.into()),
            };
            if let Ok(Ok(state)) = tokio::time::timeout(look, letters.changed()).await {
                return Ok(state);
            }
        }
    }
}

impl<T: DeserializeOwned + 'static> TaskHandle<T> {
    /// Waits for the task's end, through retries and outages, and returns what its handler
    /// returned.
    ///
    /// # Errors
    /// [`Error::is_dead`] with the last attempt's error, [`Error::is_cancelled`],
    /// [`Error::is_forgotten`] if it ended so long ago that its result is gone.
    pub async fn result(&self) -> Result<T, Error> {
        let state = self.ended().await?;
        loop {
            match self.outcome(state).await {
                Err(problem) if problem.is_unavailable() => tokio::time::sleep(LOOK_AGAIN).await,
                outcome => return outcome,
            }
        }
    }

    /// As [`result`](Self::result), but no longer than `timeout`.
    ///
    /// # Errors
    /// As [`result`](Self::result), and [`Error::is_timeout`]; the task itself goes on.
    pub async fn result_within(&self, timeout: Duration) -> Result<T, Error> {
        tokio::time::timeout(timeout, self.result())
            .await
            .unwrap_or_else(|_| Err(Error::waited_too_long(self.id.clone(), timeout)))
    }

    /// What became of it, once it has ended.
    async fn outcome(&self, state: TaskState) -> Result<T, Error> {
        match state {
            TaskState::Success => self.kept_result().await,
            TaskState::Cancelled => Err(Error::cancelled(self.id.clone())),
            TaskState::Dead => {
                let task = self.client.inspector().get(&self.id).await?;
                let last = task.and_then(|task| task.errors.last().cloned());
                Err(Error::dead(self.id.clone(), last))
            }
            _ => Err(Error::forgotten(self.id.clone())),
        }
    }

    async fn kept_result(&self) -> Result<T, Error> {
        let kept = self.client.0.broker.result(&self.id).await?;
        let json = match kept.as_deref() {
            Some(json) => json,
            // Tasks that return nothing keep nothing.
            None if TypeId::of::<T>() == TypeId::of::<()>() => b"null",
            None => return Err(Error::forgotten(self.id.clone())),
        };
        serde_json::from_slice(json)
            .map_err(|problem| Error::wrong_result(self.id.clone(), problem))
    }
}
