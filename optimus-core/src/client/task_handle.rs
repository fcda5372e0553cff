//! A submitted task, as its submitter uses it: [`TaskHandle`].

use std::{any::TypeId, fmt, marker::PhantomData, sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{CancelCall, Client, Inner, promise::Promise, siblings::Place};
use crate::{
    Error,
    broker::{BrokerError, End, Ends, Returned, StoredBy},
    id::TaskId,
    obstacle::Obstacle,
    state::{AttemptError, Reason, TaskState},
};

/// How often a waiting handle checks its task, in case its completion message was lost.
pub(super) const CHECK_EVERY: Duration = Duration::from_secs(5);
/// How often a waiting handle looks for a task that a transaction has promised.
const PROMISED_EVERY: Duration = Duration::from_millis(50);
const CHECK_AGAIN: Duration = Duration::from_millis(500);
/// How long a wait that has taken too long reads the state of its task.
const STATE_WITHIN: Duration = Duration::from_secs(1);

/// How a waiting handle checks its task.
pub(super) struct Pace {
    /// Permits for checks; without them, checks are not limited.
    pub(super) checks: Option<Arc<Semaphore>>,
    /// The interval between checks.
    pub(super) every: Duration,
}

impl Pace {
    /// The pace of a handle that is awaited alone.
    const ALONE: Self = Self { checks: None, every: CHECK_EVERY };

    /// Waits until a check may start. The check lasts until the permit is dropped.
    async fn check(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.checks.as_ref()?.acquire().await.ok()
    }
}

/// A submitted task whose handler returns `T`. Dropping it changes nothing.
pub struct TaskHandle<T> {
    client: Client,
    id: TaskId,
    origin: Origin,
    /// The place of the task among the tasks that were submitted with it.
    place: Option<Place>,
    /// It was submitted as a task that returns `()`, which `T` may not show.
    has_no_result: bool,
    /// What is known of a task that a transaction has promised.
    promise: Option<Arc<Promise>>,
    output: PhantomData<fn() -> T>,
}

/// What a caller that waits for an end wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    State,
    Result,
}

/// The source of a handle's task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The handle's client submitted the task under a new id, in the call with this number.
    Call(u64),
    /// The handle's client submitted the task under a given id, in the call with this number. An
    /// earlier task with that id may have succeeded.
    Given(u64),
    /// The handle's client submitted another task with the same biz id.
    Owner,
    /// The program made the handle from an id.
    Elsewhere,
    /// A transaction stored the call, and a relay submits it after the commit.
    Promised,
}

impl<T> Clone for TaskHandle<T> {
    fn clone(&self) -> Self {
        let (client, id, place) = (self.client.clone(), self.id.clone(), self.place.clone());
        let (origin, has_no_result) = (self.origin, self.has_no_result);
        let promise = self.promise.clone();
        Self { client, id, origin, place, has_no_result, promise, output: PhantomData }
    }
}

impl<T> fmt::Debug for TaskHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskHandle({})", self.id())
    }
}

impl<T> TaskHandle<T> {
    pub(super) fn new(client: Client, id: TaskId, origin: Origin) -> Self {
        let (place, has_no_result, promise) = (None, false, None);
        Self { client, id, origin, place, has_no_result, promise, output: PhantomData }
    }

    /// Makes the handle of a task that is not in Redis yet.
    pub(super) fn promised(client: Client, id: TaskId) -> Self {
        Self { promise: Some(Arc::default()), ..Self::new(client, id, Origin::Promised) }
    }

    /// Returns this handle as that of a task that returns `()`.
    pub(super) fn without_result(self) -> Self {
        Self { has_no_result: true, ..self }
    }

    /// Returns this handle as that of a task that returns `R`.
    pub(super) fn returning<R>(self) -> TaskHandle<R> {
        let Self { client, id, origin, place, has_no_result, promise, .. } = self;
        TaskHandle { client, id, origin, place, has_no_result, promise, output: PhantomData }
    }

    /// Returns the handle with its place among the tasks that were submitted together.
    pub(super) fn among(self, place: Place) -> Self {
        Self { place: Some(place), ..self }
    }

    /// Returns the task's id. For a duplicate, this is the id of the task that holds the biz id. A
    /// handle from a transaction knows that only after it has looked for its task.
    pub fn id(&self) -> &TaskId {
        self.promise.as_ref().and_then(|promise| promise.owner()).unwrap_or(&self.id)
    }

    /// Returns whether nothing was submitted, because the biz id was taken or a task with the
    /// [given id](crate::Call::id) was already stored. The handle is then for that task.
    pub fn is_duplicate(&self) -> bool {
        self.origin == Origin::Owner || *self.id() != self.id
    }

    /// Returns the current state of the task. The client that submitted the task knows its success
    /// as long as the client lives. Otherwise, the state is `Forgotten` once the history of the
    /// task was removed.
    ///
    /// # Errors
    /// [`Error::is_unavailable`]; [`Error::is_invalid`] if the id is that of a group.
    pub async fn status(&self) -> Result<TaskState, Error> {
        let state = self.client.0.broker.state_of(self.id(), self.stored_by()).await?;
        if state == TaskState::Forgotten && self.finds_owner().await? {
            return Ok(self.client.0.broker.state_of(self.id(), None).await?);
        }
        self.unless_a_group(state).await
    }

    /// Returns the state, unless nothing is known of the task and the id is that of a group.
    async fn unless_a_group(&self, state: TaskState) -> Result<TaskState, Error> {
        if state == TaskState::Forgotten {
            let problem = self.client.no_task(self.id()).await;
            if problem.is_invalid() {
                return Err(problem);
            }
        }
        Ok(state)
    }

    /// Cancels the task, or asks its worker to stop it. Returns which of the two was done;
    /// [`cancel().confirmed()`](CancelCall::confirmed) waits for the end.
    ///
    /// # Errors
    /// See [`Client::cancel`].
    pub fn cancel(&self) -> CancelCall {
        self.client.cancel(self.id())
    }

    /// Waits for the task's end, through retries and outages, without a limit.
    ///
    /// # Errors
    /// [`Error::is_rejected`] if Redis refuses a check. [`Error::is_invalid`] in the transaction
    /// that submits the task with its commit.
    pub async fn ended(&self) -> Result<TaskState, Error> {
        if self.runs_once() && self.client.0.readahead.has(self.id()) {
            return Ok(TaskState::Success);
        }
        self.unless_a_group(self.end(Wanted::State, &Pace::ALONE).await?.0.state).await
    }

    /// Returns the call that submitted the task, if the handle's client did.
    fn stored_by(&self) -> Option<StoredBy<'_>> {
        let (Origin::Call(number) | Origin::Given(number)) = self.origin else { return None };
        Some(StoredBy { client: self.client.0.submitter.client(), number })
    }

    /// Returns whether only this submit can have succeeded under its id. A given id, or an id that
    /// another program submitted, may be submitted again after its success. An earlier message may
    /// then belong to another run.
    fn runs_once(&self) -> bool {
        matches!(self.origin, Origin::Call(_))
    }

    /// Waits for the task's end. A completion message contains no result. If the caller wants the
    /// result, a check reads it together with those of other tasks.
    async fn end<'a>(
        &self,
        wanted: Wanted,
        pace: &'a Pace,
    ) -> Result<(End, Option<SemaphorePermit<'a>>), Error> {
        if self.promise.is_some() {
            Client::check_awaited(&self.id)?;
        }
        loop {
            let mut subscription = self.client.0.completion_listeners.subscribe(self.id());
            let permit = pace.check().await;
            if wanted == Wanted::Result
                && let Some(end) = self.read_ahead()
            {
                return Ok((end, permit));
            }
            let next_check = match self.check().await {
                Ok(Some(end)) if self.is_awaited(&end) => match self.finds_owner().await {
                    Ok(true) => continue,
                    Ok(false) => PROMISED_EVERY,
                    Err(problem) if problem.is_transient() => CHECK_AGAIN,
                    Err(problem) => return Err(problem.into()),
                },
                Ok(Some(end)) => return Ok((end, permit)),
                Ok(None) => {
                    self.note_seen();
                    pace.every
                }
                Err(problem) if problem.is_transient() => CHECK_AGAIN,
                Err(problem) => return Err(problem.into()),
            };
            drop(permit);
            // The success of a task that runs once is final. Any other completion message may be
            // older than a requeue or another submit of the id, so it only starts a check.
            if let Ok(Some(TaskState::Success)) =
                tokio::time::timeout(next_check, subscription.completion()).await
                && wanted == Wanted::State
                && self.runs_once()
            {
                self.note_answer();
                let returned = Returned::Elsewhere;
                return Ok((End { state: TaskState::Success, returned }, None));
            }
        }
    }

    /// Checks the task, and tasks after it that may be awaited next.
    async fn check(&self) -> Result<Option<End>, BrokerError> {
        let Inner { broker, completion_listeners, readahead, .. } = &*self.client.0;
        let (me, stored_by) = (completion_listeners.address(), self.stored_by());
        let Some(place) = &self.place else {
            return broker.wait_for_end(self.id(), me, stored_by).await;
        };
        let along = readahead.along(place);
        let Ends { end, next } =
            broker.wait_with_next(self.id(), me, stored_by, &along.tasks).await?;
        readahead.learn(along, end.as_ref(), next);
        if end.is_some() {
            self.note_answer();
        }
        Ok(end)
    }

    /// Returns the result of the task, if the check of another handle has read it.
    fn read_ahead(&self) -> Option<End> {
        if !self.runs_once() {
            return None;
        }
        let returned = self.client.0.readahead.take(self.id())?;
        self.note_answer();
        Some(End { state: TaskState::Success, returned })
    }

    /// Returns whether nothing is known of the task because no relay has submitted it yet.
    fn is_awaited(&self, end: &End) -> bool {
        end.state == TaskState::Forgotten && self.is_unseen()
    }

    /// Returns whether a transaction has promised the task, and nobody has seen it yet.
    fn is_unseen(&self) -> bool {
        self.promise.as_ref().is_some_and(|promise| !promise.is_seen())
    }

    fn note_seen(&self) {
        self.promise.iter().for_each(|promise| promise.note_seen());
    }

    /// Looks whether another task held the biz id of a promised one. From then on, this is the
    /// handle of that task.
    async fn finds_owner(&self) -> Result<bool, BrokerError> {
        match self.promise.as_ref().filter(|_| self.is_unseen()) {
            Some(promise) => promise.finds_owner(&self.client.0.broker, &self.id).await,
            None => Ok(false),
        }
    }

    fn note_answer(&self) {
        if let Some(place) = &self.place {
            place.answered();
        }
    }
}

impl<T: DeserializeOwned + 'static> TaskHandle<T> {
    /// Waits for the task's end, through retries and outages, and returns the handler's result.
    ///
    /// # Errors
    /// [`Error::is_dead`] with the last attempt's error, [`Error::is_cancelled`],
    /// [`Error::is_forgotten`] if the store has no data about the task, or if it has no result
    /// (results are kept for the `result_ttl` of the task, and a task that returns `()` has none).
    pub async fn result(&self) -> Result<T, Error> {
        self.result_at(&Pace::ALONE).await
    }

    /// Waits as [`result`](Self::result), with checks that may be limited.
    pub(super) async fn result_at(&self, pace: &Pace) -> Result<T, Error> {
        let (end, _permit) = match self.read_ahead() {
            Some(end) => (end, None),
            None if self.returns_nothing() => self.end(Wanted::State, pace).await?,
            None => self.end(Wanted::Result, pace).await?,
        };
        loop {
            match self.outcome(&end).await {
                Err(problem) if problem.is_unavailable() => tokio::time::sleep(CHECK_AGAIN).await,
                outcome => return outcome,
            }
        }
    }

    /// Waits as [`result`](Self::result), but no longer than `timeout`, and then reads the state of
    /// the task for the error, which takes at most another second.
    ///
    /// # Errors
    /// The errors of [`result`](Self::result), and [`Error::is_timeout`], which does not change the
    /// task. Its message has the state of the task, for example that it is still ready.
    pub async fn result_within(&self, timeout: Duration) -> Result<T, Error> {
        if let Ok(result) = tokio::time::timeout(timeout, self.result()).await {
            return result;
        }
        Err(self.waited_too_long(timeout).await)
    }

    /// Returns the error of a wait that was limited.
    pub(super) async fn waited_too_long(&self, timeout: Duration) -> Error {
        // The task may have ended since. Its state is of use only if it is known at once.
        let found = tokio::time::timeout(STATE_WITHIN, self.state_and_obstacle()).await;
        let (state, why) = found.ok().and_then(Result::ok).unzip();
        Error::waited_too_long(self.id().clone(), timeout, state, why.flatten())
    }

    /// Reads the state of the task, and what blocks it.
    async fn state_and_obstacle(&self) -> Result<(TaskState, Option<Obstacle>), Error> {
        let state = self.status().await?;
        if state != TaskState::Blocked {
            return Ok((state, None));
        }
        let why = self.client.inspector().explain(self.id()).await?;
        Ok((state, why.obstacles.into_iter().next()))
    }

    /// Returns the result of the ended task, or its error.
    async fn outcome(&self, end: &End) -> Result<T, Error> {
        match end.state {
            TaskState::Success => self.returned(&end.returned).await,
            TaskState::Cancelled => {
                let last = self.last_error().await?;
                let because = last.filter(|last| last.reason == Reason::Unmet);
                Err(Error::cancelled(self.id().clone(), because))
            }
            TaskState::Dead => Err(Error::dead(self.id().clone(), self.last_error().await?)),
            _ => Err(self.client.no_task(self.id()).await),
        }
    }

    async fn last_error(&self) -> Result<Option<AttemptError>, Error> {
        let task = self.client.inspector().get(self.id()).await?;
        Ok(task.and_then(|task| task.errors.last().cloned()))
    }

    async fn returned(&self, returned: &Returned) -> Result<T, Error> {
        let kept;
        let json = match returned {
            Returned::Json(json) => Some(json.as_slice()),
            // Tasks that return nothing store no result.
            _ if self.returns_nothing() => Some(&b"null"[..]),
            Returned::Nothing => None,
            Returned::Elsewhere => {
                kept = self.client.0.broker.result(self.id()).await?;
                kept.as_deref()
            }
        };
        let Some(json) = json else { return Err(Error::result_gone(self.id().clone())) };
        serde_json::from_slice(json)
            .map_err(|problem| Error::wrong_result(self.id().clone(), problem))
    }

    fn returns_nothing(&self) -> bool {
        self.has_no_result || TypeId::of::<T>() == TypeId::of::<()>()
    }
}
