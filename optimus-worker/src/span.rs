//! A future within a tracing span whose subscriber may panic: [`InSpan`].

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;
use tracing::Span;

use crate::user_code::{discard, guarded};

pin_project! {
    /// A future in a span, like `tracing::Instrumented`. But if the subscriber or one of its layers
    /// panics, only the span is lost, and the future continues.
    pub(crate) struct InSpan<F> {
        span: Span,
        #[pin]
        inner: F,
    }
}

impl<F> InSpan<F> {
    pub(crate) fn new(span: Span, inner: F) -> Self {
        Self { span, inner }
    }
}

impl<F: Future> Future for InSpan<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let entered = guarded(|| this.span.enter());
        let poll = this.inner.poll(cx);
        discard(entered);
        poll
    }
}
