//! A submitted task, as its submitter sees it: [`TaskHandle`].

use std::{any::TypeId, fmt, marker::PhantomData, sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Client, Inner, siblings::Place};
use crate::{
    Error,
    broker::{BrokerError, End, Ends, Returned, StoredBy},
    id::TaskId,
    state::TaskState,
};

/// How often a waiting handle looks for itself, in case its mail got lost.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// How a handle that waits looks for itself.
pub(super) struct Pace {
    /// One is taken for each look; without any, looks are not limited.
    pub(super) looks: Option<Arc<Semaphore>>,
    /// How often.
    pub(super) every: Duration,
}

impl Pace {
    /// That of a handle which is awaited by itself.
    const ALONE: Self = Self { looks: None, every: LOOK_EVERY };

    /// Waits until a look may begin, which lasts until this is dropped.
    async fn look(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.looks.as_ref()?.acquire().await.ok()
    }
}

/// A submitted task whose handler returns `T`. Dropping it changes nothing.
pub struct TaskHandle<T> {
    client: Client,
    id: TaskId,
    origin: Origin,
    /// Among those that were submitted with it.
    place: Option<Place>,
    output: PhantomData<fn() -> T>,
}

/// How a handle came to its task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Its client submitted it, under an id that was made for that, in the call of this number.
    Call(u64),
    /// Its client submitted it under a given id, in the call of this number. A task of that id may
    /// have succeeded before.
    Given(u64),
    /// Its client submitted another one with the same biz id.
    Owner,
    /// By its id.
    Elsewhere,
}

impl<T> Clone for TaskHandle<T> {
    fn clone(&self) -> Self {
        let (client, id, place) = (self.client.clone(), self.id.clone(), self.place.clone());
        Self { client, id, origin: self.origin, place, output: PhantomData }
    }
}

impl<T> fmt::Debug for TaskHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskHandle({})", self.id)
    }
}

impl<T> TaskHandle<T> {
    pub(super) fn new(client: Client, id: TaskId, origin: Origin) -> Self {
        Self { client, id, origin, place: None, output: PhantomData }
    }

    /// The same, with its place among those that were submitted together.
    pub(super) fn among(self, place: Place) -> Self {
        Self { place: Some(place), ..self }
    }

    /// The task's id. For a duplicate: that of the task that has the biz id.
    pub fn id(&self) -> &TaskId {
        &self.id
    }

    /// Nothing was submitted: the biz id was taken, and the handle is the first task's; or a task
    /// of the [given id](crate::Call::id) was stored before.
    pub fn is_duplicate(&self) -> bool {
        self.origin == Origin::Owner
    }

    /// The state that the task is in now. A success is known as long as the client lives that
    /// submitted the task; of others, `Forgotten` once their history has rolled away.
    ///
    /// # Errors
    /// [`Error::is_unavailable`].
    pub async fn status(&self) -> Result<TaskState, Error> {
        Ok(self.client.0.broker.state_of(&self.id, self.stored_by()).await?)
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
        if self.runs_once() && self.client.0.readahead.has(&self.id) {
            return Ok(TaskState::Success);
        }
        Ok(self.end(false, &Pace::ALONE).await?.0.state)
    }

    /// The call that submitted it, if its client did.
    fn stored_by(&self) -> Option<StoredBy<'_>> {
        let (Origin::Call(number) | Origin::Given(number)) = self.origin else { return None };
        Some(StoredBy { client: self.client.0.submitter.client(), number })
    }

    /// Whether a success of its id can only be that of this submit. An id that was given, or that
    /// somebody else submitted, may be submitted again after its success, so what was heard of it
    /// earlier may be of another run.
    fn runs_once(&self) -> bool {
        matches!(self.origin, Origin::Call(_))
    }

    /// Waits for its end. A completion message tells of a success, but not what was returned: where
    /// that is wanted, it is looked for with what others have returned.
    async fn end<'a>(
        &self,
        wants_result: bool,
        pace: &'a Pace,
    ) -> Result<(End, Option<SemaphorePermit<'a>>), Error> {
        loop {
            let mut subscription = self.client.0.completion_listeners.subscribe(&self.id);
            let permit = pace.look().await;
            if wants_result && let Some(end) = self.read_ahead() {
                return Ok((end, permit));
            }
            let look = match self.look().await {
                Ok(Some(end)) => return Ok((end, permit)),
                Ok(None) => pace.every,
                Err(problem) if problem.is_transient() => LOOK_AGAIN,
                Err(problem) => return Err(problem.into()),
            };
            drop(permit);
            // The success of a task that runs once is final. Any other completion message may be
            // older than a requeue or another submit of the id, so it is only a reason to look.
            if let Ok(Some(TaskState::Success)) =
                tokio::time::timeout(look, subscription.completion()).await
                && !wants_result
                && self.runs_once()
            {
                self.note_answer();
                let returned = Returned::Elsewhere;
                return Ok((End { state: TaskState::Success, returned }, None));
            }
        }
    }

    /// Looks at it, and at those behind it that may be asked for next.
    async fn look(&self) -> Result<Option<End>, BrokerError> {
        let Inner { broker, completion_listeners, readahead, .. } = &*self.client.0;
        let (me, stored_by) = (completion_listeners.address(), self.stored_by());
        let Some(place) = &self.place else {
            return broker.wait_for_end(&self.id, me, stored_by).await;
        };
        let along = readahead.along(place);
        let Ends { end, next } =
            broker.wait_with_next(&self.id, me, stored_by, &along.tasks).await?;
        readahead.learn(along, end.is_some(), next);
        if end.is_some() {
            self.note_answer();
        }
        Ok(end)
    }

    /// What it returned, if another handle's look has brought that.
    fn read_ahead(&self) -> Option<End> {
        if !self.runs_once() {
            return None;
        }
        let returned = self.client.0.readahead.take(&self.id)?;
        self.note_answer();
        Some(End { state: TaskState::Success, returned })
    }

    fn note_answer(&self) {
        if let Some(place) = &self.place {
            place.answered();
        }
    }
}

impl<T: DeserializeOwned + 'static> TaskHandle<T> {
    /// Waits for the task's end, through retries and outages, and returns what its handler
    /// returned.
    ///
    /// # Errors
    /// [`Error::is_dead`] with the last attempt's error, [`Error::is_cancelled`],
    /// [`Error::is_forgotten`] if its result is gone, which is kept for the `result_ttl` of the
    /// task, or if nothing is known of the task any more.
    pub async fn result(&self) -> Result<T, Error> {
        self.result_at(&Pace::ALONE).await
    }

    /// As [`result`](Self::result), with looks that others may limit.
    pub(super) async fn result_at(&self, pace: &Pace) -> Result<T, Error> {
        let (end, _permit) = match self.read_ahead() {
            Some(end) => (end, None),
            None => self.end(!returns_nothing::<T>(), pace).await?,
        };
        loop {
            match self.outcome(&end).await {
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
    async fn outcome(&self, end: &End) -> Result<T, Error> {
        match end.state {
            TaskState::Success => self.returned(&end.returned).await,
            TaskState::Cancelled => Err(Error::cancelled(self.id.clone())),
            TaskState::Dead => {
                let task = self.client.inspector().get(&self.id).await?;
                let last = task.and_then(|task| task.errors.last().cloned());
                Err(Error::dead(self.id.clone(), last))
            }
            _ => Err(Error::forgotten(self.id.clone())),
        }
    }

    async fn returned(&self, returned: &Returned) -> Result<T, Error> {
        let kept;
        let json = match returned {
            Returned::Json(json) => Some(json.as_slice()),
            // Tasks that return nothing keep nothing.
            _ if returns_nothing::<T>() => Some(&b"null"[..]),
            Returned::Nothing => None,
            Returned::Elsewhere => {
                kept = self.client.0.broker.result(&self.id).await?;
                kept.as_deref()
            }
        };
        let Some(json) = json else { return Err(Error::result_gone(self.id.clone())) };
        serde_json::from_slice(json)
            .map_err(|problem| Error::wrong_result(self.id.clone(), problem))
    }
}

fn returns_nothing<T: 'static>() -> bool {
    TypeId::of::<T>() == TypeId::of::<()>()
}
