//! A task with its arguments and options, not yet submitted: [`Call`].

use std::{fmt, marker::PhantomData, time::Duration};

use crate::{
    Error,
    after::Prerequisite,
    headers::Headers,
    id::TaskId,
    lane::LaneFailure,
    options::{CALL_OPTIONS_NONE, CallOptions, Due, OnLost, TaskOptions},
    parameter::{Arguments, NoInput},
    rate::Rate,
    retry::Backoff,
    task::Task,
};

/// A task with its arguments. Nothing happens until a verb (`perform_…`) is awaited.
///
/// A `Call<T, Takes<R>>` is a step of a [flow](crate::Flow): one of its arguments is the result `R`
/// of the step before it. It has the same options, but only a flow can submit it.
#[must_use = "a call does nothing until a verb submits it, such as `.perform_async().await`"]
#[derive(Clone)]
pub struct Call<T: Task, In = NoInput> {
    pub(crate) arguments: Arguments<T>,
    /// The options that the call sets. Most set none, and calls are moved often.
    options: Option<Box<CallOptions>>,
    pub(crate) headers: Headers,
    pub(crate) prerequisites: Vec<Result<Prerequisite, Error>>,
    input: PhantomData<fn() -> In>,
}

impl<T: Task> Call<T> {
    /// Makes a call with the definition's options.
    pub fn new(task: T) -> Self {
        Self::of(Arguments::All(task))
    }
}

impl<T: Task, In> Call<T, In> {
    pub(crate) fn of(arguments: Arguments<T>) -> Self {
        let (options, headers) = (None, Headers::new());
        Self { arguments, options, headers, prerequisites: Vec::new(), input: PhantomData }
    }

    /// Returns the options that the call sets.
    pub(crate) fn options(&self) -> &CallOptions {
        self.options.as_deref().unwrap_or(&CALL_OPTIONS_NONE)
    }

    /// Returns the definition's options with those that the call sets (except the queue).
    pub(crate) fn over(&self, definition: &TaskOptions) -> TaskOptions {
        self.options.as_ref().map_or(*definition, |set| set.over(*definition))
    }

    /// Returns the options that the call sets, to set one more.
    pub(crate) fn set(&mut self) -> &mut CallOptions {
        self.options.get_or_insert_default()
    }

    /// Submits to another queue. Biz ids and lanes are separate for each queue: the call is not a
    /// duplicate of a task in the definition's queue, and does not wait for that queue's lane.
    pub fn queue(mut self, queue: impl AsRef<str>) -> Self {
        self.set().queue = Some(queue.as_ref().to_owned());
        self
    }

    /// Submits the task under an id that was made before, in the id's queue. If a task with that id
    /// is already stored, in any state, nothing is added. The handle is then for that task, and [is
    /// a duplicate](crate::TaskHandle::is_duplicate). So a program that does not know whether its
    /// submit was stored may submit again, as long as the task has not succeeded.
    ///
    /// It is best to make the id with [`TaskId::new`] and to store it with the data that the task
    /// is about. A uuid of another version than 7 (one that the program already has, or version 5
    /// of its own key) works as well, but contains no time: once the task's summary is gone and the
    /// queue has purged any task, the handle may return *forgotten* instead of *succeeded*. If the
    /// id was not made within the last second, the task counts as ready since its submit, which
    /// costs Redis a little more for the tasks of that call. A version 7 uuid with a time more than
    /// a day ahead of this machine's clock is refused at submit with [`Error::is_invalid`].
    pub fn id(mut self, id: TaskId) -> Self {
        self.set().id = Some(id);
        self
    }

    /// Sets the priority, from -100 to 100. Each step counts as a minute of waiting, so no task
    /// starves.
    pub fn priority(mut self, priority: i8) -> Self {
        self.set().priority = Some(priority);
        self
    }

    /// Sets how long one attempt may run.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.set().timeout = Some(timeout);
        self
    }

    /// Sets how many attempts may follow the first failed one.
    pub fn max_retry(mut self, max_retry: u32) -> Self {
        self.set().max_retry = Some(max_retry);
        self
    }

    /// Sets the wait before each retry. A function can't be stored, so [`Backoff::Custom`] is
    /// refused here unless it is the definition's.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.set().backoff = Some(backoff);
        self
    }

    /// Sets the biz id. Calls with the same biz id are one task until that task has succeeded. The
    /// id is unique per task name and queue. A running task holds its biz id, so a task that
    /// submits itself needs another one. It is a text, a number or anything else that can be
    /// printed.
    pub fn biz_id(mut self, biz_id: impl fmt::Display) -> Self {
        self.set().biz_id = Some(biz_id.to_string());
        self
    }

    /// Sets how long after the submit the biz id stays taken at least, even if the task succeeds
    /// earlier. A task that takes longer keeps its biz id until its end.
    pub fn biz_window(mut self, window: Duration) -> Self {
        self.set().biz_window = Some(window);
        self
    }

    /// Sets how long the result is kept. With zero it is not kept.
    pub fn result_ttl(mut self, ttl: Duration) -> Self {
        self.set().result_ttl = Some(ttl);
        self
    }

    /// Lets the task expire if it has not started within this time of its submit. Retries and
    /// snoozes do not expire. A requeue starts the time again. A delay must be shorter.
    pub fn expires_in(mut self, expires_in: Duration) -> Self {
        self.set().expires_in = Some(expires_in);
        self
    }

    /// Sets what happens to the task when its worker is lost.
    pub fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.set().on_lost = Some(on_lost);
        self
    }

    /// Sets after how many lost workers the task is marked Dead; see
    /// [`TaskOptions::max_losses`](crate::TaskOptions::max_losses).
    pub fn max_losses(mut self, max_losses: u32) -> Self {
        self.set().max_losses = Some(max_losses);
        self
    }

    /// Puts the task into a lane of its queue. The tasks of a lane start one after the other, in
    /// the order of their submits, and never overlap. The first one keeps the lane until it has
    /// ended, through its retries and lost workers. Tasks of other lanes do not wait for it. Tasks
    /// of several names can share a lane.
    ///
    /// A task with a delay takes its place when it is due. The key has 1 to 512 bytes and no
    /// control characters; another key is refused at submit with [`Error::is_invalid`].
    pub fn lane(mut self, key: impl fmt::Display) -> Self {
        self.set().lane = Some(key.to_string());
        self
    }

    /// Sets how many tasks of the [lane](Self::lane) may run at once. With 1, the default, they run
    /// in order. All calls of a lane should have one width: the width of the task that joins or
    /// leaves the lane counts.
    pub fn lane_width(mut self, width: u16) -> Self {
        self.set().lane_width = Some(width);
        self
    }

    /// Sets what happens to the [lane](Self::lane) when the task ends as Dead.
    pub fn on_lane_failure(mut self, on_failure: LaneFailure) -> Self {
        self.set().on_lane_failure = Some(on_failure);
        self
    }

    /// Names the limit of its queue that the task passes, instead of that of the definition; see
    /// [`TaskOptions::limit`](crate::TaskOptions::limit). The name has letters, digits, `.`, `_`
    /// and `-`.
    pub fn limit(mut self, name: impl Into<String>) -> Self {
        self.set().limit = Some(name.into());
        self
    }

    /// Sets how many tasks of the [lane](Self::lane) may start in a time.
    pub fn lane_rate(mut self, rate: Rate) -> Self {
        self.set().lane_rate = Some(rate);
        self
    }

    /// Sets how much of a rate the task uses: a task of cost 3 counts as three.
    pub fn cost(mut self, cost: u32) -> Self {
        self.set().cost = Some(cost);
        self
    }

    /// Sets the key by which the call is gathered: only calls of one key run together. The
    /// definition must [gather](crate::TaskOptions::gather) its calls. The key has 1 to 512 bytes
    /// and no control characters; another key is refused at submit with [`Error::is_invalid`].
    pub fn by(mut self, key: impl fmt::Display) -> Self {
        self.set().by = Some(key.to_string());
        self
    }

    /// Adds a header, and replaces an earlier one of the same name. A header is a text about the
    /// call, such as its tenant or trace, that is not an argument. It is stored with the task, and
    /// each attempt reads it with [`Context::header`](crate::Context::header).
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

    /// Sets when the task becomes ready. Use this for the calls of a
    /// [`Client::submit_all`](crate::Client::submit_all).
    pub fn due(mut self, due: Due) -> Self {
        self.set().due = due;
        self
    }
}
