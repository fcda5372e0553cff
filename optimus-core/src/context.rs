//! What a running attempt may know of itself: [`Context`].

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use crate::{data::Data, id::TaskId};

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
}

impl Context {
    /// The context of an attempt; for workers, and for handlers called by hand.
    pub fn new(id: TaskId, attempt: u32, fence: u64, deadline: Instant, data: Arc<Data>) -> Self {
        let (cancelled, told) = (AtomicBool::new(false), Notify::new());
        Self { inner: Arc::new(Inner { id, attempt, fence, deadline, cancelled, told, data }) }
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

    /// The worker's value of type `T`, as a `#[data]` parameter would get it.
    pub fn data<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.inner.data.get()
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
