//! The results of many tasks: [`Results`], and [`Client::results_in_order`].

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{
    future::BoxFuture,
    stream::{FuturesUnordered, Stream, StreamExt as _},
};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use super::{
    Client, TaskHandle,
    task_handle::{CHECK_EVERY, Pace},
};
use crate::{Error, id::TaskId};

/// The maximum number of checks at the same time, each of which may return one result.
const CHECKS_MAX: usize = 16;
/// Up to this many handles check their task every [`CHECK_EVERY`]; with more, each checks less
/// often.
const HANDLES_AT_ONCE: usize = 1_000;

/// The results of many tasks, each as soon as its task has ended; see [`Client::results`].
#[must_use = "nothing is waited for before `.next().await`"]
pub struct Results<T>(Waits<T, TaskId>);

type Waits<T, K> = FuturesUnordered<BoxFuture<'static, (K, Result<T, Error>)>>;

impl<T> Results<T> {
    /// Waits for the next task that ends; `None` after the last.
    pub async fn next(&mut self) -> Option<(TaskId, Result<T, Error>)> {
        self.0.next().await
    }

    /// Returns how many tasks are left.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether no tasks are left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Stream for Results<T> {
    type Item = (TaskId, Result<T, Error>);

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len(), Some(self.len()))
    }
}

impl Client {
    /// Returns the results of many tasks, in the order in which they end, each with the task's id.
    /// An error concerns only its own task; see [`TaskHandle::result`].
    ///
    /// The result is a `Stream`, and has a [`next`](Results::next) method. It waits for all tasks
    /// at the same time, but loads at most 16 results at a time, and only while the caller waits
    /// for the next one.
    ///
    /// ```
    /// # use optimus_core::{Call, Client, Error, Task};
    /// # async fn print<T>(client: &Client, calls: Vec<Call<T>>) -> Result<(), Error>
    /// # where
    /// #     T: Task<Output = u64>,
    /// # {
    /// let handles = client.submit_all(calls).await?;
    /// let mut results = client.results(handles);
    /// while let Some((id, result)) = results.next().await {
    ///     match result {
    ///         Ok(total) => println!("{id}: {total}"),
    ///         Err(problem) => eprintln!("{problem}"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn results<T: DeserializeOwned + Send + 'static>(
        &self,
        handles: impl IntoIterator<Item = TaskHandle<T>>,
    ) -> Results<T> {
        Results(waits(handles, |_, handle| handle.id().clone()))
    }

    /// Waits until all tasks have ended. Returns their results in the order of the handles.
    ///
    /// ```
    /// # use optimus_core::{Call, Client, Error, Task};
    /// # async fn sum<T>(client: &Client, calls: Vec<Call<T>>) -> Result<u64, Error>
    /// # where
    /// #     T: Task<Output = u64>,
    /// # {
    /// let handles = client.submit_all(calls).await?;
    /// let totals: Result<Vec<u64>, Error> =
    ///     client.results_in_order(handles).await.into_iter().collect();
    /// # Ok(totals?.iter().sum())
    /// # }
    /// ```
    pub async fn results_in_order<T: DeserializeOwned + Send + 'static>(
        &self,
        handles: impl IntoIterator<Item = TaskHandle<T>>,
    ) -> Vec<Result<T, Error>> {
        let mut waits = waits(handles, |place, _| place);
        let mut results: Vec<_> = (0..waits.len()).map(|_| None).collect();
        while let Some((place, result)) = waits.next().await {
            results[place] = Some(result);
        }
        results.into_iter().flatten().collect()
    }
}

/// Returns one wait for each handle, with a key to identify it.
fn waits<T, K>(
    handles: impl IntoIterator<Item = TaskHandle<T>>,
    key: fn(usize, &TaskHandle<T>) -> K,
) -> Waits<T, K>
where
    T: DeserializeOwned + Send + 'static,
    K: Send + 'static,
{
    let handles: Vec<TaskHandle<T>> = handles.into_iter().collect();
    let every = check_every(handles.len());
    let checks = Arc::new(Semaphore::new(CHECKS_MAX));
    let waits = handles.into_iter().enumerate().map(|(place, handle)| {
        let pace = Pace { checks: Some(checks.clone()), every };
        let wait = async move { (key(place, &handle), handle.result_at(&pace).await) };
        Box::pin(wait) as BoxFuture<'static, _>
    });
    waits.collect()
}

/// Limits the rate of checks to some hundred per second for any number of handles.
fn check_every(count: usize) -> Duration {
    let times = count.div_ceil(HANDLES_AT_ONCE).max(1);
    CHECK_EVERY.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX))
}
