//! What a running attempt may know of itself: [`Context`].

use std::{
    future::pending,
    mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot},
};

use crate::{data::Data, id::TaskId, threads::Threads};

/// One attempt at a task, as its handler sees it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    id: TaskId,
    attempt: u32,
    fence: u64,
    deadline: Instant,
    cancelled: AtomicBool,
    told: Notify,
    data: Arc<Data>,
    /// Those of the worker; without one, the runtime's.
    threads: Option<Arc<Threads>>,
    /// Calls of `run_blocking` whose work has not returned.
    blocking: AtomicUsize,
    unblocked: Notify,
}

impl Context {
    /// The context of an attempt; for workers, and for handlers called by hand.
    pub fn new(id: TaskId, attempt: u32, fence: u64, deadline: Instant, data: Arc<Data>) -> Self {
        Self::build(id, attempt, fence, deadline, data, None)
    }

    /// As [`new`](Self::new), with threads for work that blocks; for workers.
    #[doc(hidden)]
    pub fn build(
        id: TaskId,
        attempt: u32,
        fence: u64,
        deadline: Instant,
        data: Arc<Data>,
        threads: Option<Arc<Threads>>,
    ) -> Self {
        let (cancelled, told) = (AtomicBool::new(false), Notify::new());
        let (blocking, unblocked) = (AtomicUsize::new(0), Notify::new());
        Self {
            inner: Arc::new(Inner {
                id,
                attempt,
                fence,
                deadline,
                cancelled,
                told,
                data,
                threads,
                blocking,
                unblocked,
            }),
        }
    }

    /// The task's id.
    pub fn id(&self) -> &TaskId {
        &self.inner.id
    }

    /// Which attempt this is, from 1. Attempts cut short by a lost worker count, too.
    pub fn attempt(&self) -> u32 {
        self.inner.attempt
    }

    /// A number that is larger in every later attempt at this task. Stamp it into your own writes
    /// (`UPDATE … SET fence = $1 WHERE fence < $1`), and a worker that was thought dead can't
    /// overwrite its successor's work.
    pub fn fence(&self) -> u64 {
        self.inner.fence
    }

    /// When the attempt times out.
    pub fn deadline(&self) -> Instant {
        self.inner.deadline
    }

    /// What is left until the deadline.
    pub fn remaining(&self) -> Duration {
        self.inner.deadline.saturating_duration_since(tokio::time::Instant::now().into_std())
    }

    /// Resolves when the attempt should stop: it was cancelled, timed out, its worker shuts down,
    /// or its lease may have passed to another worker.
    pub async fn cancelled(&self) {
        let mut told = pin!(self.inner.told.notified());
        // Enabled before the look, so that a call between the two is not missed.
        told.as_mut().enable();
        if !self.is_cancelled() {
            told.await;
        }
    }

    /// Whether the attempt should stop; for handlers that don't await.
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancelled.load(Ordering::Acquire)
    }

    /// Asks the handler to stop; for workers.
    #[doc(hidden)]
    pub fn cancel(&self) {
        if !self.inner.cancelled.swap(true, Ordering::AcqRel) {
            self.inner.told.notify_waiters();
        }
    }

    /// Runs `work` where it may block its thread: what a plain `fn` with `#[task]` does. It is
    /// inside the current tracing span and has the handle of the runtime; a panic passes through.
    ///
    /// A thread can't be made to stop. So the attempt keeps its slot and its lease until `work` has
    /// returned, whatever becomes of this future: after a timeout, a cancel or the start of a
    /// shutdown, too. `work` can ask [`is_cancelled`](Self::is_cancelled) and return early.
    ///
    /// # Panics
    /// If the operating system has no thread left, or outside a runtime.
    pub async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        #[cfg(feature = "simulation")]
        if crate::machine::is_simulated() {
            return work();
        }
        let (answer, answered) = oneshot::channel();
        let (span, runtime) = (tracing::Span::current(), Handle::current());
        let blocking = Blocking::begin(self.inner.clone());
        let entered = runtime.clone();
        let work = move || {
            let _runtime = entered.enter();
            let returned = catch_unwind(AssertUnwindSafe(|| span.in_scope(work)));
            // Where nobody waits, the value is dropped here, and its drop may panic.
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
            Ok(returned) => returned.unwrap_or_else(|panic| resume_unwind(panic)),
            // The runtime is shutting down and never started it: nobody waits for an answer.
            Err(_) => pending().await,
        }
    }

    /// Whether work of [`run_blocking`](Self::run_blocking) has not returned; for workers.
    #[doc(hidden)]
    pub fn is_blocking(&self) -> bool {
        self.inner.blocking.load(Ordering::Acquire) > 0
    }

    /// Resolves once no such work runs; for workers.
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

    /// The worker's value of type `T`, as a `#[data]` parameter would get it.
    pub fn data<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.inner.data.get()
    }
}

/// Work of `run_blocking`, until it has returned.
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
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::id::QueueName;

    fn context(data: Data) -> Context {
        let id = TaskId::new(QueueName::new("q").unwrap());
        Context::new(id, 2, 7, Instant::now() + Duration::from_secs(3600), Arc::new(data))
    }

    #[test]
    fn a_handler_is_told_what_its_attempt_is() {
        let context = context(Data::new().with(5_u8));
        assert_eq!((context.attempt(), context.fence()), (2, 7));
        assert!(context.remaining() > Duration::from_secs(3000));
        assert_eq!((context.data(), context.data::<u16>()), (Some(5_u8), None));
    }

    #[test]
    fn everyone_who_waits_to_be_cancelled_hears_of_it_and_who_comes_later_does_not_wait() {
        let context = context(Data::new());
        let (mut early, mut other) = (pin!(context.cancelled()), pin!(context.cancelled()));
        assert!(early.as_mut().now_or_never().is_none());
        assert!(other.as_mut().now_or_never().is_none());
        assert!(!context.is_cancelled());
        context.cancel();
        assert!(context.is_cancelled());
        for told in [early.now_or_never(), other.now_or_never()] {
            assert!(told.is_some());
        }
        assert!(context.cancelled().now_or_never().is_some());
    }
}
