//! The verbs of a [`Call`]: what submits it, or runs it in place.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use crate::{
    Error,
    attempt_facts::AttemptFacts,
    call::Call,
    call_submit::{ErasedCall, Submit as _},
    client::{Client, TaskHandle},
    context::Context,
    control_words::BoxError,
    data::Data,
    options::Due,
    parameter::Arguments,
    submission::Fields,
    task::Task,
};

impl<T: Task> Call<T> {
    /// Submits the call. Inside a handler, it goes to the store of the handler's worker; elsewhere,
    /// through the installed client; see [`Client::install`]. In a future that a handler spawns,
    /// use [`Context::client`]. Inside a transaction of `optimus_sql`, the call is submitted once
    /// the transaction is committed.
    ///
    /// # Errors
    /// See [`Client::submit`]; [`Error::is_invalid`] if no client was installed.
    pub async fn perform_async(self) -> Result<TaskHandle<T::Output>, Error> {
        Client::perform(self).await
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
        let Fields { id, lane, headers, .. } = self.prepare()?.into_fields();
        let options = self.over(&T::options());
        let Arguments::All(task) = self.arguments else { unreachable!("it takes no result") };
        let deadline = (Instant::now() + options.timeout).into_std();
        let first = AttemptFacts {
            task: T::NAME,
            max_retry: options.max_retry,
            age: Some(Duration::ZERO),
            lane: lane.map(|lane| lane.key),
            headers,
            ..AttemptFacts::first(id, deadline)
        };
        let ctx = Context::new(first, Arc::new(data));
        let handler = async { task.run(ctx.clone()).await };
        ctx.within(handler).await
    }

    /// Erases the task's type, so that calls of several tasks can go in one batch.
    ///
    /// # Errors
    /// [`Error::is_invalid`] for options or arguments that can't be stored.
    pub fn erase(self) -> Result<ErasedCall, Error> {
        self.into_submission().map(ErasedCall)
    }
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
