//! Whether a thread runs the code of an attempt at this moment: [`OnThread`].

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use crate::attempts::Attempt;

pin_project! {
    /// All that the runtime runs for an attempt. While it is polled, the attempt says so. A handler
    /// that blocks its thread is on it, and a handler that has no thread because of others is not.
    pub(crate) struct OnThread<F> {
        attempt: Arc<Attempt>,
        #[pin]
        inner: F,
    }
}

impl<F> OnThread<F> {
    pub(crate) fn new(attempt: Arc<Attempt>, inner: F) -> Self {
        Self { attempt, inner }
    }
}

impl<F: Future> Future for OnThread<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.attempt.takes_thread();
        // If this panics, the runtime drops the future, and the attempt with it.
        let poll = this.inner.poll(cx);
        this.attempt.leaves_thread();
        poll
    }
}

pin_project! {
    /// A handler that is not polled any more once its attempt has ended. The maintenance thread
    /// ends an attempt that is not on a thread, and then its task may run elsewhere.
    pub(crate) struct UntilSettled<'a, F> {
        attempt: &'a Attempt,
        #[pin]
        handler: F,
    }
}

impl<'a, F> UntilSettled<'a, F> {
    pub(crate) fn new(attempt: &'a Attempt, handler: F) -> Self {
        Self { attempt, handler }
    }
}

impl<F: Future> Future for UntilSettled<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        // The executor drops the handler, because its deadline has passed.
        if this.attempt.is_settled() { Poll::Pending } else { this.handler.poll(cx) }
    }
}
