//! The layer that programs add: [`Traces`].

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use opentelemetry::{propagation::TextMapPropagator, trace::TraceContextExt as _};
use optimus_core::{BoxError, Context, End, Layer, Span, Submission};

use crate::{
    carrier::{Sent, Stored},
    propagation::Propagation,
    run_span, submit_span,
};

/// How long a task may wait and still belong to the trace of its submit.
const CHILD_WITHIN: Duration = Duration::from_secs(15 * 60);

/// Passes traces through the queue. Add it to each client and worker:
///
/// ```no_run
/// # use optimus_core as optimus;
/// # async fn start() -> Result<(), optimus::Error> {
/// use optimus::Client;
/// use optimus_otel::Traces;
///
/// Client::builder("redis://127.0.0.1/").layer(Traces::new()).connect().await?.install();
/// # Ok(())
/// # }
/// ```
///
/// - `submit <task>` is a span of kind producer, a child of the span in which the code submits. Its
///   context is stored in the headers `traceparent` and `tracestate` of the task if it is sampled.
/// - `run <task>` is a span of kind consumer, in which the handler runs. The first attempt is a
///   child of the submit if it starts within 15 minutes. Every other attempt begins a trace of its
///   own with a link to the submit.
///
/// The spans are spans of `tracing`, so the subscriber of the program needs the layer of
/// `tracing-opentelemetry`, and the spans of handlers are children of `run`. Contexts are written
/// and read by the global propagator of `opentelemetry`, or as W3C Trace Context if none is set.
///
/// A header that is no valid context is ignored. A context that does not fit into the headers, and
/// a panic of the subscriber, cost the trace and not the task.
#[derive(Debug, Clone)]
pub struct Traces {
    propagation: Propagation,
    child_within: Duration,
    stores: Stores,
}

/// Which contexts are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stores {
    Sampled,
    All,
}

impl Traces {
    /// Makes the layer.
    pub fn new() -> Self {
        let propagation = Propagation::default();
        Self { propagation, child_within: CHILD_WITHIN, stores: Stores::Sampled }
    }

    /// Uses this propagator instead of the global one.
    pub fn propagator(
        mut self,
        propagator: impl TextMapPropagator + Send + Sync + 'static,
    ) -> Self {
        self.propagation = Propagation::by(propagator);
        self
    }

    /// Sets how long after its submit the first attempt of a task may start as a child of the
    /// submit. The default is 15 minutes. With zero, each attempt begins a trace of its own.
    pub fn child_within(mut self, time: Duration) -> Self {
        self.child_within = time;
        self
    }

    /// Stores contexts that are not sampled, too. Then a worker whose sampler follows the parent
    /// does not sample these tasks either. Each such task takes about 70 bytes more in Redis.
    pub fn store_unsampled(mut self) -> Self {
        self.stores = Stores::All;
        self
    }

    fn store(&self, call: &mut Submission) {
        let span = submit_span::create(call);
        let cx = submit_span::context(&span);
        if cx.span().span_context().is_sampled() || self.stores == Stores::All {
            self.propagation.inject(&cx, &mut Sent(call));
        }
    }
}

impl Default for Traces {
    fn default() -> Self {
        Self::new()
    }
}

impl Layer for Traces {
    async fn submit(&self, call: &mut Submission) -> Result<(), BoxError> {
        // The subscriber and the propagator are user code, and a panic here would refuse the call.
        let store = AssertUnwindSafe(|| self.store(call));
        catch_unwind(store).unwrap_or_else(mem::forget);
        Ok(())
    }

    fn span(&self, ctx: &Context) -> Option<Span> {
        let stored = self.propagation.extract(&Stored(ctx.headers()));
        Some(run_span::begin(ctx, stored, self.child_within))
    }

    async fn ended(&self, ctx: &Context, end: &End) {
        run_span::end(ctx, end);
    }
}
