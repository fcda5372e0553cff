//! The facts about a running attempt: [`Context`].

use std::{
    collections::BTreeMap,
    future::pending,
    mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::pin,
    slice,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot},
};

use crate::{
    Error,
    attempt_facts::AttemptFacts,
    attempt_values::Values,
    blocking_threads::Threads,
    client::{Client, OwnClient},
    data::Data,
    group::Member,
    id::{QueueName, TaskId},
    layers::Layers,
    log_desk::LogSeat,
    panic_place::PanicPlace,
    said::Said,
    stop_signal::StopSignal,
    tick::Tick,
};

/// One attempt at a task, as its handler sees it. A context is cheap to clone.
#[derive(Debug, Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    attempt: AttemptFacts,
    /// The calls of the run, if they are gathered, and the retries that each of them has left.
    calls: OnceLock<(Box<[TaskId]>, u32)>,
    stop: StopSignal,
    data: Arc<Data>,
    /// Values of this attempt alone.
    values: Values,
    /// What the handler has said.
    said: Said,
    /// The worker's threads. Without a worker, the runtime's threads are used.
    threads: Option<Arc<Threads>>,
    /// The worker's client.
    client: Option<Arc<OwnClient>>,
    /// Calls of `run_blocking` whose closure has not returned.
    blocking: AtomicUsize,
    unblocked: Notify,
}

impl Context {
    /// Returns the context of an attempt without a worker.
    #[doc(hidden)]
    pub fn new(attempt: AttemptFacts, data: Arc<Data>) -> Self {
        Self::build(attempt, data, None)
    }

    /// Returns the context of an attempt of a worker, with the worker's client and its threads for
    /// blocking code.
    #[doc(hidden)]
    pub fn build(
        attempt: AttemptFacts,
        data: Arc<Data>,
        worker: Option<(Arc<Threads>, Arc<OwnClient>, LogSeat)>,
    ) -> Self {
        let (threads, client, seat) = match worker {
            Some((threads, client, seat)) => (Some(threads), Some(client), Some(seat)),
            None => (None, None, None),
        };
        let (blocking, unblocked) = (AtomicUsize::new(0), Notify::new());
        Self {
            inner: Arc::new(Inner {
                attempt,
                calls: OnceLock::new(),
                stop: StopSignal::default(),
                data,
                values: Values::default(),
                said: Said::new(seat),
                threads,
                client,
                blocking,
                unblocked,
            }),
        }
    }

    /// Returns the instant of the [schedule](crate::Schedule) that has submitted the task; `None`
    /// if no schedule has.
    pub fn tick(&self) -> Option<&Tick> {
        self.inner.attempt.tick.as_deref()
    }

    /// Returns what the handler has said, and the attempt that says it.
    pub(crate) fn said(&self) -> (&Said, &AttemptFacts) {
        (&self.inner.said, &self.inner.attempt)
    }

    /// Returns the task's id.
    pub fn id(&self) -> &TaskId {
        &self.inner.attempt.id
    }

    /// Returns the ids of the calls that this attempt runs, in their order. There are several only
    /// if the definition [gathers](crate::TaskOptions::gather) its calls. The other methods then
    /// tell about the first of them.
    pub fn calls(&self) -> &[TaskId] {
        let calls = self.inner.calls.get().map(|(ids, _)| &**ids);
        calls.unwrap_or_else(|| slice::from_ref(self.id()))
    }

    /// Sets the calls of the run, and the fewest retries that any of them has left; for workers.
    #[doc(hidden)]
    pub fn set_calls(&self, calls: Vec<TaskId>, retries_left: u32) {
        // A run is gathered once.
        self.inner.calls.set((calls.into(), retries_left)).ok();
    }

    /// Returns the task's name, as it is stored.
    pub fn task(&self) -> &'static str {
        self.inner.attempt.task
    }

    /// Returns the queue that the task is in.
    pub fn queue(&self) -> &QueueName {
        self.inner.attempt.id.queue()
    }

    /// Returns the key of the [lane](crate::Call::lane) that the task is in.
    pub fn lane(&self) -> Option<&str> {
        self.inner.attempt.lane.as_deref()
    }

    pub(crate) fn member(&self) -> Option<&Member> {
        self.inner.attempt.member.as_ref()
    }

    /// Returns the header of that name, as [`Call::header`](crate::Call::header) or a layer set it.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().get(name).map(String::as_str)
    }

    /// Returns all headers of the task, by name.
    pub fn headers(&self) -> &BTreeMap<String, String> {
        &self.inner.attempt.headers
    }

    /// Returns the number of this attempt, from 1. Attempts whose worker was lost count, too.
    pub fn attempt(&self) -> u32 {
        self.inner.attempt.number
    }

    /// Returns how long before this attempt the task was submitted, over all attempts and snoozes.
    /// With it, a handler that [snoozes](crate::Snooze) can give up. A requeue does not change the
    /// time of the submit.
    ///
    /// The time of the submit is part of an id that Optimus has made. For a
    /// [given id](crate::Call::id) that is not a UUID of version 7, Redis notes the time. A release
    /// that does not know this stores none; then this is `None`.
    pub fn age(&self) -> Option<Duration> {
        self.inner.attempt.age
    }

    /// Returns how many attempts may follow the first failed one, by the call or the definition.
    pub fn max_retry(&self) -> u32 {
        self.inner.attempt.max_retry
    }

    /// Returns whether the task ends Dead if this attempt fails, because no retries are left. If
    /// the worker is lost, the task may run again nevertheless.
    ///
    /// The calls of a run were tried as often, so they have their last attempt together. If they
    /// have different `max_retry`, this is true if it is the last attempt of any of them.
    ///
    /// Inside [`perform_inline`](crate::Call::perform_inline) this is true if the task or the call
    /// has a `max_retry` of 0.
    ///
    /// ```
    /// # use optimus_core as optimus;
    /// use optimus::{BoxError, Context};
    ///
    /// async fn charge(order: u64, ctx: Context) -> Result<(), BoxError> {
    ///     let charged: Result<(), BoxError> = Err("the bank is away".into());
    ///     if charged.is_err() && ctx.is_last_attempt() {
    ///         eprintln!("{} of order {order} failed for good; calling support", ctx.task());
    ///     }
    ///     charged
    /// }
    /// # let _ = charge;
    /// ```
    pub fn is_last_attempt(&self) -> bool {
        let least = self.inner.calls.get().map(|(_, retries_left)| *retries_left);
        !self.inner.attempt.has_retries_left() || least == Some(0)
    }

    /// Returns a number that is larger in every later attempt at this task. Store it with your own
    /// writes (`UPDATE … SET fence = $1 WHERE fence < $1`). Then a worker that lost its lease can't
    /// overwrite the work of the next one.
    pub fn fence(&self) -> u64 {
        self.inner.attempt.fence
    }

    /// Returns a client of the worker's store, also for futures that the handler spawns. It is the
    /// installed client if that is connected to the same URL and namespace. Otherwise it is a
    /// client of the worker, with the default settings. Without a worker it is the client of
    /// `.perform_async()`.
    ///
    /// # Errors
    /// Without a worker, [`Error::is_invalid`] if no client was installed.
    pub fn client(&self) -> Result<Client, Error> {
        self.inner.client.as_ref().map_or_else(Client::current, |own| Ok(own.client()))
    }

    /// Returns the layers of the worker.
    pub(crate) fn layers(&self) -> Option<&Layers> {
        self.inner.client.as_ref()?.layers()
    }

    /// Returns when the attempt times out.
    pub fn deadline(&self) -> Instant {
        self.inner.attempt.deadline
    }

    /// Returns the time until the deadline.
    pub fn remaining(&self) -> Duration {
        self.deadline().saturating_duration_since(tokio::time::Instant::now().into_std())
    }

    /// Resolves when the attempt should stop: it was cancelled or timed out, its worker shuts down,
    /// or its lease may have passed to another worker.
    ///
    /// An `async` handler is dropped at its timeout. So only futures that it has spawned, and its
    /// code on other threads, can observe the timeout here.
    pub async fn cancelled(&self) {
        self.inner.stop.asked().await;
    }

    /// Returns whether the attempt should stop; for handlers that do not await.
    pub fn is_cancelled(&self) -> bool {
        self.inner.stop.is_asked()
    }

    /// Asks the handler to stop, on a thread that it may block; for workers.
    #[doc(hidden)]
    pub fn cancel(&self) {
        self.inner.stop.stop();
    }

    /// Asks the handler to stop; for workers, on any thread. The futures that wait for this are
    /// woken on the worker's runtime.
    #[doc(hidden)]
    pub fn cancel_elsewhere(&self) {
        match self.inner.client.as_ref().and_then(|own| own.runtime()) {
            Some(runtime) => StopSignal::stop_on(&self.inner, runtime),
            None => self.inner.stop.stop(),
        }
    }

    /// Runs `work` on a thread that it may block, as for a plain `fn` with `#[task]`. `work` runs
    /// inside the current tracing span and has the handle of the runtime. A panic is passed on.
    ///
    /// A thread can't be stopped. So the attempt keeps its slot and its lease until `work` has
    /// returned, even if this future is dropped, for example after a timeout, a cancel or the start
    /// of a shutdown. `work` can check [`is_cancelled`](Self::is_cancelled) and return early.
    ///
    /// # Panics
    /// If the operating system can't start a thread, or outside a runtime.
    pub async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        #[cfg(feature = "simulation")]
        if crate::platform::is_simulated() {
            return work();
        }
        let (answer, answered) = oneshot::channel();
        let (span, runtime) = (tracing::Span::current(), Handle::current());
        let blocking = Blocking::begin(self.inner.clone());
        let client = self.inner.client.clone().or_else(OwnClient::current);
        let ctx = self.clone();
        let work = move || match client {
            Some(client) => client.enter(|| ctx.enter(work)),
            None => ctx.enter(work),
        };
        let entered = runtime.clone();
        let work = move || {
            let _runtime = entered.enter();
            let returned = catch_unwind(AssertUnwindSafe(|| span.in_scope(work)));
            let returned = returned.map_err(|panic| (PanicPlace::take(&*panic), panic));
            // If the future was dropped, the value is dropped here, and its drop may panic.
            let dropped = AssertUnwindSafe(|| drop(answer.send(returned)));
            catch_unwind(dropped).unwrap_or_else(mem::forget);
            drop(blocking);
        };
        match &self.inner.threads {
            None => drop(runtime.spawn_blocking(work)),
            Some(threads) => {
                threads.run(Box::new(work)).expect("a thread for a handler that blocks");
            }
        }
        match answered.await {
            Ok(returned) => returned.unwrap_or_else(|(place, panic)| {
                PanicPlace::pass(place);
                resume_unwind(panic)
            }),
            // The runtime is shutting down and never started the work.
            Err(_) => pending().await,
        }
    }

    /// Returns whether work of [`run_blocking`](Self::run_blocking) is still running; for workers.
    #[doc(hidden)]
    pub fn is_blocking(&self) -> bool {
        self.inner.blocking.load(Ordering::Acquire) > 0
    }

    /// Resolves when no such work is running; for workers.
    #[doc(hidden)]
    pub async fn unblocked(&self) {
        loop {
            let mut unblocked = pin!(self.inner.unblocked.notified());
            unblocked.as_mut().enable();
            if !self.is_blocking() {
                return;
            }
            unblocked.await;
        }
    }

    /// Returns the value of type `T`, as a `#[data]` parameter gets it: the one
    /// [added](Self::insert) to this attempt, else that of the worker.
    pub fn data<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.inner.values.get().or_else(|| self.inner.data.get())
    }

    /// Adds a value to this attempt, and replaces an earlier one of the same type. With it a layer
    /// passes a value to the handler, which reads it with [`data`](Self::data) or as a `#[data]`
    /// parameter. The value is dropped when the attempt ends.
    pub fn insert<T: Clone + Send + Sync + 'static>(&self, value: T) {
        self.inner.values.insert(value);
    }

    /// Takes out the values of an attempt that has ended; for workers.
    #[doc(hidden)]
    pub fn take_values(&self) -> Option<Data> {
        self.inner.values.take()
    }
}

impl AsRef<StopSignal> for Inner {
    fn as_ref(&self) -> &StopSignal {
        &self.stop
    }
}

/// A call of `run_blocking` whose work has not returned.
struct Blocking(Arc<Inner>);

impl Blocking {
    fn begin(inner: Arc<Inner>) -> Self {
        inner.blocking.fetch_add(1, Ordering::AcqRel);
        Self(inner)
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        self.0.blocking.fetch_sub(1, Ordering::AcqRel);
        self.0.unblocked.notify_waiters();
    }
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
