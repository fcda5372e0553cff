//! A task with its arguments and options, not yet submitted: [`Call`].

use std::{any::TypeId, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use crate::{
    Error,
    after::Prerequisite,
    arguments,
    client::{Client, TaskHandle},
    context::{AttemptFacts, Context},
    control_words::BoxError,
    data::Data,
    headers::{self, Headers},
    id::{QueueName, TaskId},
    lane::{Lane, LaneFailure},
    limit::TaskLimit,
    options::{CallOptions, Due, OnLost},
    rate::Rate,
    retry::Backoff,
    submission::Submission,
    task::Task,
};

/// A task with its arguments. Nothing happens until a verb (`perform_…`) is awaited.
#[must_use = "a call does nothing until a verb submits it, such as `.perform_async().await`"]
#[derive(Debug, Clone)]
pub struct Call<T: Task> {
    pub(crate) task: T,
    pub(crate) options: CallOptions,
    headers: Headers,
    pub(crate) prerequisites: Vec<Result<Prerequisite, Error>>,
}

impl<T: Task> Call<T> {
    /// Makes a call with the definition's options.
    pub fn new(task: T) -> Self {
        let options = CallOptions::default();
        Self { task, options, headers: Headers::new(), prerequisites: Vec::new() }
    }

    /// Submits to another queue. Biz ids and lanes are separate for each queue: the call is not a
    /// duplicate of a task in the definition's queue, and does not wait for that queue's lane.
    pub fn queue(mut self, queue: impl AsRef<str>) -> Self {
        self.options.queue = Some(queue.as_ref().to_owned());
        self
    }

    /// Submits the task under an id that was made before, in the id's queue. If a task with that id
    /// is already stored, in any state, nothing is added. The handle is then for that task, and [is
    /// a duplicate](TaskHandle::is_duplicate). So a program that does not know whether its submit
    /// was stored may submit again, as long as the task has not succeeded.
    ///
    /// It is best to make the id with [`TaskId::new`] and to store it with the data that the task
    /// is about. A uuid of another version than 7 (one that the program already has, or version 5
    /// of its own key) works as well, but contains no time: once the task's summary is gone and the
    /// queue has purged any task, the handle may return *forgotten* instead of *succeeded*. If the
    /// id was not made within the last second, the task counts as ready since its submit, which
    /// costs Redis a little more for the tasks of that call. A version 7 uuid with a time more than
    /// a day ahead of this machine's clock is refused at submit with [`Error::is_invalid`].
    pub fn id(mut self, id: TaskId) -> Self {
        self.options.id = Some(id);
        self
    }

    /// Sets the priority, from -100 to 100. Each step counts as a minute of waiting, so no task
    /// starves.
    pub fn priority(mut self, priority: i8) -> Self {
        self.options.priority = Some(priority);
        self
    }

    /// Sets how long one attempt may run.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.options.timeout = Some(timeout);
        self
    }

    /// Sets how many attempts may follow the first failed one.
    pub fn max_retry(mut self, max_retry: u32) -> Self {
        self.options.max_retry = Some(max_retry);
        self
    }

    /// Sets the wait before each retry. A function can't be stored, so [`Backoff::Custom`] is
    /// refused here unless it is the definition's.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.options.backoff = Some(backoff);
        self
    }

    /// Sets the biz id. Calls with the same biz id are one task until that task has succeeded. The
    /// id is unique per task name and queue. A running task holds its biz id, so a task that
    /// submits itself needs another one.
    pub fn biz_id(mut self, biz_id: impl Into<String>) -> Self {
        self.options.biz_id = Some(biz_id.into());
        self
    }

    /// Sets how long after the submit the biz id stays taken at least, even if the task succeeds
    /// earlier. A task that takes longer keeps its biz id until its end.
    pub fn biz_window(mut self, window: Duration) -> Self {
        self.options.biz_window = Some(window);
        self
    }

    /// Sets how long the result is kept. With zero it is not kept.
    pub fn result_ttl(mut self, ttl: Duration) -> Self {
        self.options.result_ttl = Some(ttl);
        self
    }

    /// Lets the task expire if it has not started within this time of its submit. Retries and
    /// snoozes do not expire. A requeue starts the time again. A delay must be shorter.
    pub fn expires_in(mut self, expires_in: Duration) -> Self {
        self.options.expires_in = Some(expires_in);
        self
    }

    /// Sets what happens to the task when its worker is lost.
    pub fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.options.on_lost = Some(on_lost);
        self
    }

    /// Sets after how many lost workers the task is marked Dead; see
    /// [`TaskOptions::max_losses`](crate::TaskOptions::max_losses).
    pub fn max_losses(mut self, max_losses: u32) -> Self {
        self.options.max_losses = Some(max_losses);
        self
    }

    /// Puts the task into a lane of its queue. The tasks of a lane start one after the other, in
    /// the order of their submits, and never overlap. The first one keeps the lane until it has
    /// ended, through its retries and lost workers. Tasks of other lanes do not wait for it. Tasks
    /// of several names can share a lane.
    ///
    /// A task with a delay takes its place when it is due. The key has 1 to 512 bytes and no
    /// control characters; another key is refused at submit with [`Error::is_invalid`].
    pub fn lane(mut self, key: impl Into<String>) -> Self {
        self.options.lane = Some(key.into());
        self
    }

    /// Sets how many tasks of the [lane](Self::lane) may run at once. With 1, the default, they run
    /// in order. All calls of a lane should have one width: the width of the task that joins or
    /// leaves the lane counts.
    pub fn lane_width(mut self, width: u16) -> Self {
        self.options.lane_width = Some(width);
        self
    }

    /// Sets what happens to the [lane](Self::lane) when the task ends as Dead.
    pub fn on_lane_failure(mut self, on_failure: LaneFailure) -> Self {
        self.options.on_lane_failure = Some(on_failure);
        self
    }

    /// Names the limit of its queue that the task passes, instead of that of the definition; see
    /// [`TaskOptions::limit`](crate::TaskOptions::limit). The name has letters, digits, `.`, `_`
    /// and `-`.
    pub fn limit(mut self, name: impl Into<String>) -> Self {
        self.options.limit = Some(name.into());
        self
    }

    /// Sets how many tasks of the [lane](Self::lane) may start in a time.
    pub fn lane_rate(mut self, rate: Rate) -> Self {
        self.options.lane_rate = Some(rate);
        self
    }

    /// Sets how much of a rate the task uses: a task of cost 3 counts as three.
    pub fn cost(mut self, cost: u32) -> Self {
        self.options.cost = Some(cost);
        self
    }

    /// Adds a header, and replaces an earlier one of the same name. A header is a text about the
    /// call, such as its tenant or trace, that is not an argument. It is stored with the task, and
    /// each attempt reads it with [`Context::header`].
    ///
    /// A name has letters, digits, `.`, `_` and `-`, and is case-sensitive. A task has at most 32
    /// headers with 4 KiB in total; more are refused at submit with [`Error::is_invalid`].
    ///
    /// ```
    /// # use optimus_core::{BoxError, Call, Context, Task};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct Invoice { order: u64 }
    ///
    /// impl Task for Invoice {
    ///     const NAME: &'static str = "invoice";
    ///     type Output = String;
    ///
    ///     async fn run(self, ctx: Context) -> Result<String, BoxError> {
    ///         let tenant = ctx.header("tenant").ok_or("it has no tenant")?;
    ///         Ok(format!("order {} of {tenant}", self.order))
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let call = Invoice { order: 7 }.call().header("tenant", "acme");
    /// assert_eq!(call.perform_inline().await.unwrap(), "order 7 of acme");
    /// # }
    /// ```
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Sets when the task becomes ready. Use this for the calls of a [`Client::submit_all`].
    pub fn due(mut self, due: Due) -> Self {
        self.options.due = due;
        self
    }

    /// Submits the call. Inside a handler, it goes to the store of the handler's worker; elsewhere,
    /// through the installed client; see [`Client::install`]. In a future that a handler spawns,
    /// use [`Context::client`].
    ///
    /// # Errors
    /// See [`Client::submit`]; [`Error::is_invalid`] if no client was installed.
    pub async fn perform_async(self) -> Result<TaskHandle<T::Output>, Error> {
        Client::current()?.submit(self).await
    }

    /// Submits as [`perform_async`](Self::perform_async), to run no sooner than `delay` from now.
    ///
    /// # Errors
    /// The errors of [`perform_async`](Self::perform_async).
    pub async fn perform_in(self, delay: Duration) -> Result<TaskHandle<T::Output>, Error> {
        self.due(Due::In(delay)).perform_async().await
    }

    /// Submits as [`perform_async`](Self::perform_async), to run no sooner than `at` by Redis'
    /// clock.
    ///
    /// # Errors
    /// The errors of [`perform_async`](Self::perform_async).
    pub async fn perform_at(self, at: DateTime<Utc>) -> Result<TaskHandle<T::Output>, Error> {
        self.due(Due::At(at)).perform_async().await
    }

    /// Runs the task in place, without a queue, for unit tests. Timeout and retries do not apply,
    /// and no [`Layer`](crate::Layer) is called. Values that a layer would
    /// [insert](Context::insert) can be passed to
    /// [`perform_inline_with`](Self::perform_inline_with).
    ///
    /// # Errors
    /// The error of the handler.
    pub async fn perform_inline(self) -> Result<T::Output, BoxError> {
        self.perform_inline_with(Data::new()).await
    }

    /// Runs the task as [`perform_inline`](Self::perform_inline) does, with these values for its
    /// `#[data]` parameters.
    ///
    /// # Errors
    /// The error of the handler, or an error that names the type of a missing value.
    pub async fn perform_inline_with(self, data: Data) -> Result<T::Output, BoxError> {
        if let Some(missing) = T::required_data().into_iter().find(|key| !data.holds(*key)) {
            let name = missing.name();
            return Err(format!("no data of type {name}: add it with Data::with").into());
        }
        let submission = self.prepare()?;
        let options = self.options.over(T::options());
        let deadline = (Instant::now() + options.timeout).into_std();
        let first = AttemptFacts {
            task: T::NAME,
            max_retry: options.max_retry,
            age: Some(Duration::ZERO),
            lane: submission.lane.map(|lane| lane.key),
            headers: submission.headers,
            ..AttemptFacts::first(submission.id, deadline)
        };
        let ctx = Context::new(first, Arc::new(data));
        let handler = async { self.task.run(ctx.clone()).await };
        ctx.within(handler).await
    }

    /// Erases the task's type, so that calls of several tasks can go in one batch.
    ///
    /// # Errors
    /// [`Error::is_invalid`] for options or arguments that can't be stored.
    pub fn erase(self) -> Result<ErasedCall, Error> {
        self.prepare().map(ErasedCall)
    }

    /// Checks the options and encodes the arguments. This is the last step that knows the type.
    fn prepare(&self) -> Result<Submission, Error> {
        let definition = T::options();
        let options = self.options.over(definition);
        options.validate(T::NAME)?;
        let biz_id = self.options.biz_id.clone().or_else(|| self.task.biz_id());
        let lane = self.options.lane.clone().or_else(|| self.task.lane());
        self.options.check(T::NAME, &definition, &options, biz_id.as_deref(), lane.as_deref())?;
        let after = self.wait(&options, biz_id.as_deref())?;
        let unkept = definition.result_ttl.is_zero() && !options.result_ttl.is_zero();
        let returns_nothing = TypeId::of::<T::Output>() == TypeId::of::<()>();
        if unkept && returns_nothing {
            return Err(Error::invalid(format!(
                "task {:?}: it has no result that result_ttl could keep, since its definition says \
                 result_ttl = 0; set a time there",
                T::NAME
            )));
        }
        headers::check(&self.headers, T::NAME)?;
        let queue = self.options.queue.as_deref().unwrap_or(options.queue);
        let queue = QueueName::new(queue)
            .map_err(|problem| Error::invalid(format!("task {:?}: {problem}", T::NAME)))?;
        let id = match &self.options.id {
            Some(id) if self.options.queue.is_some() && *id.queue() != queue => {
                return Err(Error::invalid(format!(
                    "task {:?}: the id {id} is of another queue than {queue}; remove .queue(…)",
                    T::NAME
                )));
            }
            Some(id) => id.clone(),
            None => TaskId::new(queue),
        };
        let payload = arguments::encode(&self.task).map_err(|problem| {
            Error::invalid(format!("task {:?}: arguments as JSON: {problem}", T::NAME))
        })?;
        let name = self.options.limit.as_deref().or(options.limit);
        let limits = TaskLimit::of(T::NAME, lane.as_deref(), name, &options);
        Ok(Submission {
            id,
            may_exist: self.options.id.is_some(),
            task: T::NAME.into(),
            returns_nothing,
            options,
            biz_id,
            lane: lane.map(|key| Lane::of(key, &options)),
            member: None,
            after,
            limits,
            due: self.options.due,
            headers: self.headers.clone(),
            payload,
        })
    }
}

/// A call whose task type is erased: see [`Call::erase`]. Each submit of a clone is a separate
/// task, unless the call has an [id](Call::id). Its result is JSON, `null` for a task of `()`.
#[derive(Debug, Clone)]
#[must_use = "a call does nothing until it is submitted"]
pub struct ErasedCall(pub(crate) Submission);

/// Types that a client can submit: [`Call`] and [`ErasedCall`].
pub trait Submit {
    /// The type of the task's result.
    type Output;
    /// Checks and encodes the call.
    ///
    /// # Errors
    /// [`Error::is_invalid`] for options or arguments that can't be stored.
    fn into_submission(self) -> Result<Submission, Error>;
}

impl<T: Task> Submit for Call<T> {
    type Output = T::Output;
    fn into_submission(self) -> Result<Submission, Error> {
        self.prepare()
    }
}

impl Submit for ErasedCall {
    type Output = serde_json::Value;
    fn into_submission(self) -> Result<Submission, Error> {
        let Self(mut submission) = self;
        if !submission.may_exist {
            // Clones of the call have the same id, which may be much older than the submit.
            submission.id = TaskId::new(submission.id.queue().clone());
        }
        Ok(submission)
    }
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
