//! The span of a submit, and the context that goes into the headers of the task.

use opentelemetry::{Context, trace::TraceContextExt as _};
use optimus_core::Submission;
use tracing::{Span, field::Empty};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::names::{self, SUBMIT};

/// Makes the span of a submit, as a child of the span that is current. It is a producer.
pub(crate) fn create(call: &Submission) -> Span {
    let task = call.task();
    let span = tracing::info_span!(
        target: "optimus::submit",
        "submit",
        otel.name = SUBMIT.span(task),
        otel.kind = "producer",
        task,
        id = %call.id(),
        otel.status_code = Empty,
    );
    span.set_attribute(names::SYSTEM, names::OPTIMUS);
    span.set_attribute(names::OPERATION_TYPE, SUBMIT.kind);
    span.set_attribute(names::OPERATION_NAME, SUBMIT.name);
    span.set_attribute(names::DESTINATION, call.id().queue().to_string());
    span.set_attribute(names::MESSAGE_ID, call.id().to_string());
    span.set_attribute(names::TASK, task.to_owned());
    span
}

/// Returns the context that a task gets: that of its submit, or of the code that submits if a
/// filter of the program has no span for submits.
pub(crate) fn context(span: &Span) -> Context {
    let has_span = |cx: &Context| cx.span().span_context().is_valid();
    let own = span.context();
    if has_span(&own) {
        return own;
    }
    let around = Span::current().context();
    if has_span(&around) { around } else { Context::current() }
}
