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
    handle::{LOOK_EVERY, Pace},
};
use crate::{Error, id::TaskId};

/// Looks under way together, each of which may bring one result.
const LOOKS_MAX: usize = 16;
/// So many handles look by themselves every [`LOOK_EVERY`]; more of them look less often.
const LOOKERS: usize = 1_000;

/// The results of many tasks, each as soon as its task has ended: see [`Client::results`].
#[must_use = "nothing is waited for before `.next().await`"]
pub struct Results<T>(Waits<T, TaskId>);

type Waits<T, K> = FuturesUnordered<BoxFuture<'static, (K, Result<T, Error>)>>;

impl<T> Results<T> {
    /// The next task that has ended; `None` once each has been told.
    pub async fn next(&mut self) -> Option<(TaskId, Result<T, Error>)> {
        self.0.next().await
    }

    /// How many tasks were not told yet.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether each task was told.
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
    /// The results of many tasks, in the order in which they end, each with its task's id. An error
    /// is that of its task alone; see [`TaskHandle::result`].
    ///
    /// It is a `Stream`, and has a [`next`](Results::next) of its own. It waits for all the tasks
    /// at once, but loads no more than 16 results at a time, and none while nobody asks for the
    /// next.
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

    /// Waits until all of the tasks have ended. Returns their results in the order of the handles.
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

/// One wait for each handle, with what tells them apart.
fn waits<T, K>(
    handles: impl IntoIterator<Item = TaskHandle<T>>,
    key: fn(usize, &TaskHandle<T>) -> K,
) -> Waits<T, K>
where
    T: DeserializeOwned + Send + 'static,
    K: Send + 'static,
{
    let handles: Vec<TaskHandle<T>> = handles.into_iter().collect();
    let every = look_every(handles.len());
    let looks = Arc::new(Semaphore::new(LOOKS_MAX));
    let waits = handles.into_iter().enumerate().map(|(place, handle)| {
        let pace = Pace { looks: Some(looks.clone()), every };
        let wait = async move { (key(place, &handle), handle.result_at(&pace).await) };
        Box::pin(wait) as BoxFuture<'static, _>
    });
    waits.collect()
}

/// However many wait, Redis is not asked more than some hundred times a second in vain.
fn look_every(count: usize) -> Duration {
    let times = count.div_ceil(LOOKERS).max(1);
    LOOK_EVERY.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX))
}
