//! The span of an attempt: [`begin`] makes it, [`end`] adds what became of the attempt.

use std::time::Duration;

use opentelemetry::{
    Context as OtelContext, KeyValue,
    baggage::{BaggageExt as _, KeyValueMetadata},
    trace::{Status, TraceContextExt as _},
};
use optimus_core::{Context, End, Outcome};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::names::{self, RUN};

/// The longest text of an error in a span.
const ERROR_CHARS_MAX: usize = 1024;

/// The span of an attempt that runs, as a value of the attempt.
#[derive(Clone)]
struct Begun(OtelContext);

/// Makes the span of an attempt. Its parent is the context that was `stored`, if the first attempt
/// starts within the given time after the submit. Else it begins a trace of its own, which links to
/// that context: a trace should end, and retries of a task may follow each other for days.
pub(crate) fn begin(ctx: &Context, stored: OtelContext, child_within: Duration) -> Span {
    let task = ctx.task();
    // The name, target and level are those of the worker's span, which this one replaces.
    let span = tracing::error_span!(
        target: "optimus::task",
        parent: None,
        "task",
        otel.name = RUN.span(task),
        otel.kind = "consumer",
        task,
        id = %ctx.id(),
        attempt = ctx.attempt(),
    );
    let submit = stored.span().span_context().clone();
    let is_child = ctx.attempt() == 1 && ctx.age().is_none_or(|age| age < child_within);
    let parent = if is_child { stored } else { without_span(&stored) };
    // A subscriber without OpenTelemetry has only the span.
    if span.set_parent(parent).is_err() {
        return span;
    }
    if !is_child {
        span.add_link(submit);
    }
    span.set_attribute(names::SYSTEM, names::OPTIMUS);
    span.set_attribute(names::OPERATION_TYPE, RUN.kind);
    span.set_attribute(names::OPERATION_NAME, RUN.name);
    span.set_attribute(names::DESTINATION, ctx.queue().to_string());
    span.set_attribute(names::MESSAGE_ID, ctx.id().to_string());
    span.set_attribute(names::TASK, task);
    span.set_attribute(names::ATTEMPT, i64::from(ctx.attempt()));
    ctx.insert(Begun(span.context()));
    span
}

/// Returns a context with the same baggage. A span that is not valid would not do: samplers that
/// follow the parent would not sample its children.
fn without_span(cx: &OtelContext) -> OtelContext {
    let baggage = cx.baggage().into_iter();
    let entries = baggage.map(|(key, (value, metadata))| {
        KeyValueMetadata::new(key.clone(), value.clone(), metadata.clone())
    });
    OtelContext::new().with_baggage(entries)
}

/// Ends the span of an attempt, at the time at which the handler ended.
pub(crate) fn end(ctx: &Context, end: &End) {
    let Some(Begun(cx)) = ctx.data::<Begun>() else { return };
    let span = cx.span();
    span.set_attribute(KeyValue::new(names::OUTCOME, word(&end.outcome)));
    if let calls @ 2.. = ctx.calls().len() {
        let calls = i64::try_from(calls).unwrap_or(i64::MAX);
        span.set_attribute(KeyValue::new(names::BATCH_COUNT, calls));
    }
    if let Some(error) = end.error() {
        span.set_attribute(KeyValue::new(names::ERROR_TYPE, error.reason.to_string()));
        let text: String = error.message.chars().take(ERROR_CHARS_MAX).collect();
        span.set_status(Status::error(text));
    }
    span.end_with_timestamp(end.at);
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Success => "success",
        Outcome::Retry { .. } => "retry",
        Outcome::Dead(_) => "dead",
        Outcome::Cancelled => "cancelled",
        Outcome::Snoozed(_) => "snoozed",
        Outcome::GivenBack => "given_back",
        Outcome::Stale => "stale",
        _ => "other",
    }
}
