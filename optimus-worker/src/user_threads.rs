//! The threads of the runtime that run code of the program outside of handlers: [`UserThreads`].

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use tokio::sync::Notify;

/// Counts the threads that are in rounds of shards, scans of sources, calls of layers after an
/// attempt, services, or functions for credentials. Slots count handlers.
///
/// A value in a future would not do: a runtime that ends drops each future that is not on a thread,
/// and then waits for the threads. So a thread counts while the frame of its call is on its stack.
#[derive(Debug, Default)]
pub(crate) struct UserThreads {
    count: AtomicUsize,
    left: Notify,
}

/// While this value lives, its thread counts.
struct Entered<'a>(&'a UserThreads);

/// A future whose thread counts while the future is polled or dropped.
pub(crate) struct OnUserThread<F> {
    threads: Arc<UserThreads>,
    code: Option<Pin<Box<F>>>,
}

impl UserThreads {
    fn enter(&self) -> Entered<'_> {
        self.count.fetch_add(1, Ordering::SeqCst);
        Entered(self)
    }

    /// Runs code that begins a future, and then that future.
    pub(crate) fn run<F: Future>(self: &Arc<Self>, begin: impl FnOnce() -> F) -> OnUserThread<F> {
        let entered = self.enter();
        let code = Some(Box::pin(begin()));
        drop(entered);
        OnUserThread { threads: self.clone(), code }
    }

    /// Returns how many threads are in such code.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Resolves once no thread is in such code. Only one thread may wait for it.
    pub(crate) async fn all_left(&self) {
        while self.count() > 0 {
            self.left.notified().await;
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.left.notify_one();
        }
    }
}

impl<F: Future> Future for OnUserThread<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { threads, code } = self.get_mut();
        let _entered = threads.enter();
        code.as_mut().map_or(Poll::Pending, |code| code.as_mut().poll(cx))
    }
}

impl<F> Drop for OnUserThread<F> {
    fn drop(&mut self) {
        let _entered = self.threads.enter();
        drop(self.code.take());
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, panic::catch_unwind};

    use futures_util::FutureExt;

    use super::*;

    struct Counts(Arc<UserThreads>, usize);

    impl Drop for Counts {
        fn drop(&mut self) {
            assert_eq!(self.0.count(), self.1);
        }
    }

    #[test]
    fn a_thread_counts_only_while_it_begins_polls_or_drops_such_code() {
        let threads = Arc::new(UserThreads::default());
        let seen = Counts(threads.clone(), 1);
        let mut code = threads.run(|| {
            assert_eq!(seen.0.count(), 1);
            poll_fn(move |_| {
                assert_eq!(seen.0.count(), 1);
                Poll::<()>::Pending
            })
        });
        assert_eq!(threads.count(), 0, "it has begun");
        assert!((&mut code).now_or_never().is_none());
        assert_eq!(threads.count(), 0, "it waits");
        assert!(threads.all_left().now_or_never().is_some());
        drop(code);
        let panics = threads.run(|| async { panic!("boom") });
        assert!(catch_unwind(|| panics.now_or_never()).is_err());
        assert_eq!(threads.count(), 0, "a panic leaves, too");
        let entered = threads.enter();
        assert!(threads.all_left().now_or_never().is_none());
        drop(entered);
    }
}
